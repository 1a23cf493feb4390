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

    /// Its name, as it is written in files.
    pub fn as_str(self) -> &'static str {
        match self {
            ProviderKind::Openai => "openai",
            ProviderKind::OpenaiResponses => "openai-responses",
            ProviderKind::Anthropic => "anthropic",
        }
    }
}

/// Headers that hold keys.
const KEY_HEADERS: [&str; 4] = ["authorization", "api-key", "x-api-key", "x-goog-api-key"];

/// One provider.
#[derive(Clone)]
pub struct ProviderConfig {
    /// What it speaks.
    pub kind: ProviderKind,
    /// Where it is, see [`ProviderKind::default_base_url`]. OpenAI's ends in `/v1`, Anthropic's does not. A query in
    /// it, such as Azure's `?api-version=`, goes with every request.
    pub base_url: String,
    /// Its key; local servers need none.
    pub api_key: Option<SecretString>,
    /// Sent with every request; they replace our own headers of the same name. They may hold keys and are
    /// never shown.
    pub headers: BTreeMap<String, String>,
    /// Whether its models take pictures, as far as nothing more is known about one of them.
    pub images: bool,
    /// Whether its models may think in their text, between `<think>` and `</think>`, as many local ones do.
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
            .field("thinks_in_text", &self.thinks_in_text)
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

    /// The address of something below the base URL, whose query stays at the end.
    pub fn url(&self, path: &str) -> String {
        let (base, query) = match self.base_url.split_once('?') {
            Some((base, query)) => (base, format!("?{query}")),
            None => (self.base_url.as_str(), String::new()),
        };
        format!("{}{path}{query}", base.trim_end_matches('/'))
    }

    /// Whether it has a key, in a header of its own or in the usual one.
    pub fn has_key(&self) -> bool {
        let holds_key = |name: &String| KEY_HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header));
        self.api_key.is_some() || self.headers.keys().any(holds_key)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_the_base_url_stays_behind_the_path() {
        let mut config = ProviderConfig::new(ProviderKind::Openai, None);
        assert_eq!(config.url("/models"), "https://api.openai.com/v1/models");
        config.base_url =
            "https://x.openai.azure.com/openai/deployments/d/?api-version=2024-10-21".to_owned();
        let url = "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21";
        assert_eq!(config.url("/chat/completions"), url);
    }

    #[test]
    fn a_key_may_be_in_a_header() {
        let mut config = ProviderConfig::new(ProviderKind::Openai, None);
        config.headers.insert("x-team".to_owned(), "a".to_owned());
        assert!(!config.has_key());
        config.headers.insert("Api-Key".to_owned(), "b".to_owned());
        assert!(config.has_key());
    }
}
