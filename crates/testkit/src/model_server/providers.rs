//! The model server as the providers of a product.

use std::collections::BTreeMap;
use std::time::Duration;

use petasos_models::{Models, ProviderConfig, ProviderKind, Settings};
use secrecy::SecretString;

use super::ModelServer;

/// Settings with which a failed call is tried again at once, so that no test waits for it.
pub fn quick_retries() -> Settings {
    let mut settings = Settings::default();
    settings.retry.base_delay = Duration::from_millis(1);
    settings.retry.max_delay = Duration::from_millis(5);
    settings
}

impl ModelServer {
    /// Models of which `openai/…`, `responses/…` and `anthropic/…` are this server, and `nobody/…` is not there.
    pub fn models(&self, settings: Settings) -> Models {
        let provider = |kind: ProviderKind, base_url: String| {
            let mut config = ProviderConfig::new(kind, Some(SecretString::from("sk-test")));
            config.base_url = base_url;
            config
        };
        let providers = BTreeMap::from([
            ("openai".to_owned(), provider(ProviderKind::Openai, self.openai_base_url())),
            ("responses".to_owned(), provider(ProviderKind::OpenaiResponses, self.openai_base_url())),
            ("anthropic".to_owned(), provider(ProviderKind::Anthropic, self.anthropic_base_url())),
            ("nobody".to_owned(), provider(ProviderKind::Openai, "http://127.0.0.1:9/v1".to_owned())),
        ]);
        let client = petasos_net::Client::new(&petasos_net::Options::default());
        Models::new(providers, settings, client)
    }
}
