//! Models: their providers, how they are called and what is known about them.

use std::collections::BTreeMap;
use std::num::NonZero;

use petasos_models::ProviderKind;
use secrecy::SecretString;
use serde::Deserialize;

use super::amounts::{Price, Seconds, Share};

/// One model provider.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Provider {
    /// What it speaks.
    #[cfg_attr(test, schemars(with = "Option<String>", extend("enum" = ["openai", "openai-responses", "anthropic"])))]
    pub(crate) kind: Option<ProviderKind>,
    /// Where it is.
    pub(crate) base_url: Option<String>,
    /// Its key.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) api_key: Option<SecretString>,
    /// The environment variable that holds its key.
    pub(crate) api_key_env: Option<String>,
    /// Sent with every request.
    pub(crate) headers: BTreeMap<String, String>,
    /// Whether its models take pictures.
    pub(crate) images: Option<bool>,
}

/// How models are called.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Models {
    /// Attempts in all, the first one included.
    pub(crate) max_attempts: Option<NonZero<u32>>,
    /// The wait after the first failure; it doubles with each further one.
    pub(crate) retry_delay_seconds: Option<Seconds>,
    /// The longest wait.
    pub(crate) retry_max_delay_seconds: Option<Seconds>,
    /// How long a failing call is tried again.
    pub(crate) retry_total_seconds: Option<Seconds>,
    /// How long making a connection may take.
    pub(crate) connect_seconds: Option<Seconds>,
    /// How long a provider may be silent before it has said anything.
    pub(crate) first_byte_seconds: Option<Seconds>,
    /// How long it may be silent once it has started to answer.
    pub(crate) stall_seconds: Option<Seconds>,
    /// How long a call may take, all attempts together.
    pub(crate) call_seconds: Option<Seconds>,
    /// The most characters that an answer may have.
    pub(crate) output_chars: Option<NonZero<usize>>,
}

/// What is known about a model.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Facts {
    /// Tokens that it can read.
    pub(crate) context_window: Option<NonZero<u64>>,
    /// What it costs.
    pub(crate) prices: Option<Prices>,
}

/// What a model costs, per million tokens.
#[derive(Deserialize, Clone, Copy)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Prices {
    /// For what it reads.
    pub(crate) input: Price,
    /// For what it writes.
    pub(crate) output: Price,
    /// For what it reads from the provider's cache; as any other input unless set.
    pub(crate) cached_input: Option<Price>,
    /// For what is written to the provider's cache; as any other input unless set.
    pub(crate) cache_write: Option<Price>,
}

/// How contexts are kept short enough for their models.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Compaction {
    /// The part of what the model can read at which a context is compacted.
    pub(crate) at: Option<Share>,
}
