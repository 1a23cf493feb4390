//! What can be set: providers, and the bounds of a call.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use petasos_net::backoff;
use secrecy::SecretString;
use serde::Deserialize;

/// The wire format that a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// OpenAI's chat completions, which most other providers and local servers speak too.
    Openai,
    /// OpenAI's responses.
    OpenaiResponses,
    /// Anthropic's messages.
    Anthropic,
}

impl ProviderKind {
    /// The vendor's own base URL.
    pub fn default_base_url(self) -> &'static str {
        match self {
            ProviderKind::Openai | ProviderKind::OpenaiResponses => "https://api.openai.com/v1",
            ProviderKind::Anthropic => "https://api.anthropic.com",
        }
    }
}

/// One provider.
#[derive(Clone)]
pub struct ProviderConfig {
    /// What it speaks.
    pub kind: ProviderKind,
    /// Where it is, see [`ProviderKind::default_base_url`]. OpenAI's ends in `/v1`, Anthropic's does not.
    pub base_url: String,
    /// Its key; local servers need none.
    pub api_key: Option<SecretString>,
    /// Sent with every request; they replace our own headers of the same name. They may hold keys and are
    /// never shown.
    pub headers: BTreeMap<String, String>,
    /// Whether its models take pictures.
    pub images: bool,
    /// Whether its models write their reasoning into the text, between `<think>` tags.
    pub thinks_in_text: bool,
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("kind", &self.kind)
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key)
            .field("headers", &self.headers.keys())
            .field("images", &self.images)
            .finish()
    }
}

impl ProviderConfig {
    /// A provider at the vendor's own address.
    pub fn new(kind: ProviderKind, api_key: Option<SecretString>) -> Self {
        ProviderConfig {
            kind,
            base_url: kind.default_base_url().to_owned(),
            api_key,
            headers: BTreeMap::new(),
            images: true,
            thinks_in_text: false,
        }
    }
}

/// The bounds of one model call. How long connecting may take is set in [`petasos_net::Options`].
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How often a failed call is tried again, and how long.
    pub retry: backoff::Policy,
    /// How long the provider may be silent before it has said anything.
    pub first_byte_timeout: Duration,
    /// How long it may be silent once it has started to answer.
    pub stall_timeout: Duration,
    /// How long a call may take, all attempts together.
    pub time_limit: Duration,
    /// The most characters of text, reasoning and arguments that an answer may have.
    pub max_output_chars: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            retry: backoff::Policy::default(),
            first_byte_timeout: Duration::from_secs(300),
            stall_timeout: Duration::from_secs(90),
            time_limit: Duration::from_secs(30 * 60),
            max_output_chars: 2_000_000,
        }
    }
}
