//! Models: their providers, how they are called and what is known about them.

use std::collections::BTreeMap;
use std::num::NonZero;

use petasos_models::ProviderKind;
use petasos_models::presets::{self, PRESETS, Preset};
use secrecy::SecretString;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::amounts::{Price, Seconds, Share};

const PRESET_NAMES: [&str; PRESETS.len()] = {
    let mut names = [""; PRESETS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = PRESETS[index].name;
        index += 1;
    }
    names
};

/// Presets, two of which have the name of what they speak, and what else can be spoken.
const KIND_NAMES: [&str; PRESETS.len() + 1] = {
    let mut names = ["openai-responses"; PRESETS.len() + 1];
    let mut index = 0;
    while index < PRESETS.len() {
        names[index] = PRESET_NAMES[index];
        index += 1;
    }
    names
};

/// What `kind` says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// What the provider speaks.
    Speaks(ProviderKind),
    /// What it is.
    Is(&'static Preset),
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let kinds = [ProviderKind::Openai, ProviderKind::OpenaiResponses, ProviderKind::Anthropic];
        let kind = kinds.into_iter().find(|kind| kind.as_str() == name).map(Kind::Speaks);
        let kind = kind.or_else(|| presets::named(&name).map(Kind::Is));
        kind.ok_or_else(|| D::Error::unknown_variant(&name, &KIND_NAMES))
    }
}

fn named_preset<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'static Preset>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let preset = presets::named(&name);
    preset.map(Some).ok_or_else(|| D::Error::unknown_variant(&name, &PRESET_NAMES))
}

/// One model provider.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Provider {
    /// What it speaks, or the preset that says so.
    #[cfg_attr(test, schemars(with = "Option<String>", extend("enum" = KIND_NAMES)))]
    pub(crate) kind: Option<Kind>,
    /// The vendor or local server that it is, if its name does not say that.
    #[cfg_attr(test, schemars(with = "Option<String>", extend("enum" = PRESET_NAMES)))]
    #[serde(deserialize_with = "named_preset")]
    pub(crate) preset: Option<&'static Preset>,
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
    /// Whether its models may think in their text, between <think> and </think>.
    pub(crate) think_tags: Option<bool>,
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
    /// Tokens that it can read and write, both together.
    pub(crate) context_window: Option<NonZero<u64>>,
    /// The most tokens of one answer.
    pub(crate) max_output_tokens: Option<NonZero<u64>>,
    /// Whether it takes pictures.
    pub(crate) images: Option<bool>,
    /// Whether it takes files such as PDFs.
    pub(crate) files: Option<bool>,
    /// Whether it can think before it answers.
    pub(crate) reasoning: Option<bool>,
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
