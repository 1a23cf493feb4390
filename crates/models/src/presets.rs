//! Vendors and local servers that Petasos knows by name: where they are, what they speak, which variables set them up.
//!
//! A table and nothing else. The command line reads the variables that it names.

use crate::ProviderKind;

/// A vendor, a gateway or a local server.
#[derive(Debug, PartialEq)]
pub struct Preset {
    /// The name of the provider unless it is given another.
    pub name: &'static str,
    /// What it speaks.
    pub kind: ProviderKind,
    /// Where it is. `{endpoint}` and `{region}` stand for what a variable of [`Preset::place`] says.
    pub base_url: &'static str,
    /// Variables of its key, the first one that is set counts.
    pub keys: &'static [&'static str],
    /// Variables of another base URL, likewise.
    pub urls: &'static [&'static str],
    /// Variables that say which of the vendor's addresses is meant, likewise.
    pub place: &'static [&'static str],
    /// Whose machine it is on, and so what is expected of it.
    pub host: Host,
}

/// Where a preset usually runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// At a vendor, which answers nobody without a key.
    Vendor,
    /// On one's own machine, in front of models that are elsewhere; at this port.
    Gateway(u16),
    /// On one's own machine with models of its own, which may think in their text; at this port.
    Local(u16),
}

impl Preset {
    /// The port on which it usually listens on one's own machine.
    pub fn port(&self) -> Option<u16> {
        match self.host {
            Host::Vendor => None,
            Host::Gateway(port) | Host::Local(port) => Some(port),
        }
    }

    /// The header that its key goes into, if that is not the usual one.
    pub fn key_header(&self) -> Option<&'static str> {
        (self.name == "azure").then_some("api-key")
    }
}

const fn vendor(
    name: &'static str,
    kind: ProviderKind,
    base_url: &'static str,
    keys: &'static [&'static str],
    urls: &'static [&'static str],
    place: &'static [&'static str],
) -> Preset {
    Preset { name, kind, base_url, keys, urls, place, host: Host::Vendor }
}

const fn own(
    name: &'static str,
    host: Host,
    base_url: &'static str,
    keys: &'static [&'static str],
    urls: &'static [&'static str],
) -> Preset {
    Preset { name, kind: Chat, base_url, keys, urls, place: &[], host }
}

use ProviderKind::{Anthropic, Openai as Chat, OpenaiResponses as Responses};

/// All of them, a line each.
#[rustfmt::skip]
pub const PRESETS: [Preset; 16] = [
    vendor("openai", Responses, "https://api.openai.com/v1", &["OPENAI_API_KEY"], &["OPENAI_BASE_URL"], &[]),
    vendor("anthropic", Anthropic, "https://api.anthropic.com", &["ANTHROPIC_API_KEY"], &["ANTHROPIC_BASE_URL"], &[]),
    vendor("gemini", Chat, "https://generativelanguage.googleapis.com/v1beta/openai", &["GEMINI_API_KEY", "GOOGLE_API_KEY"], &["GEMINI_BASE_URL"], &[]),
    vendor("openrouter", Chat, "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"], &["OPENROUTER_BASE_URL"], &[]),
    vendor("groq", Chat, "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], &["GROQ_BASE_URL"], &[]),
    vendor("mistral", Chat, "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"], &["MISTRAL_BASE_URL"], &[]),
    vendor("deepseek", Chat, "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"], &["DEEPSEEK_BASE_URL"], &[]),
    vendor("moonshot", Chat, "https://api.moonshot.ai/v1", &["MOONSHOT_API_KEY"], &["MOONSHOT_BASE_URL"], &[]),
    vendor("xai", Chat, "https://api.x.ai/v1", &["XAI_API_KEY"], &["XAI_BASE_URL"], &[]),
    vendor("azure", Chat, "{endpoint}/openai/v1", &["AZURE_OPENAI_API_KEY"], &["AZURE_OPENAI_BASE_URL"], &["AZURE_OPENAI_ENDPOINT"]),
    vendor("bedrock", Chat, "https://bedrock-runtime.{region}.amazonaws.com/openai/v1", &["AWS_BEARER_TOKEN_BEDROCK"], &["AWS_BEDROCK_BASE_URL", "BEDROCK_BASE_URL"], &["AWS_REGION", "AWS_DEFAULT_REGION"]),
    own("ollama", Host::Local(11434), "http://127.0.0.1:11434/v1", &["OLLAMA_API_KEY"], &["OLLAMA_BASE_URL", "OLLAMA_HOST"]),
    own("vllm", Host::Local(8000), "http://127.0.0.1:8000/v1", &["VLLM_API_KEY"], &["VLLM_BASE_URL"]),
    own("llamacpp", Host::Local(8080), "http://127.0.0.1:8080/v1", &["LLAMACPP_API_KEY", "LLAMA_API_KEY"], &["LLAMACPP_BASE_URL"]),
    own("lmstudio", Host::Local(1234), "http://127.0.0.1:1234/v1", &["LM_STUDIO_API_KEY", "LM_API_TOKEN"], &["LM_STUDIO_BASE_URL", "LMSTUDIO_BASE_URL"]),
    own("litellm", Host::Gateway(4000), "http://127.0.0.1:4000/v1", &["LITELLM_API_KEY"], &["LITELLM_BASE_URL"]),
];

/// The preset of a name.
pub fn named(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// The vendor whose own address this is.
pub(crate) fn at(base_url: &str) -> Option<&'static Preset> {
    let base_url = base_url.trim_end_matches('/');
    PRESETS.iter().find(|preset| preset.host == Host::Vendor && preset.base_url == base_url)
}

/// The variable that gives a vendor's provider its key, if it is known by name.
pub fn key_variable(provider: &str) -> Option<&'static str> {
    let preset = named(provider).filter(|preset| preset.host == Host::Vendor);
    preset.and_then(|preset| preset.keys.first().copied())
}
