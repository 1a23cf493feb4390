//! Finds the model behind `provider/model`.

use std::collections::BTreeMap;
use std::sync::Arc;

use petasos_net::Client;

use crate::call::HttpModel;
use crate::demo::Demo;
use crate::provider::Provider;
use crate::{Catalog, Error, Model, ProviderConfig, Settings, presets};

/// The name of the provider that is always there.
const DEMO: &str = "demo";

/// All providers, by name.
pub struct Models {
    providers: BTreeMap<String, Provider>,
    settings: Settings,
    client: Client,
    catalog: Arc<Catalog>,
}

impl Models {
    /// Takes the configured providers. `demo` is added; a configured provider of that name is ignored.
    pub fn new(providers: BTreeMap<String, ProviderConfig>, settings: Settings, client: Client) -> Self {
        let provider = |(name, config): (String, ProviderConfig)| {
            let provider = Provider::new(&name, Arc::new(config));
            (name, provider)
        };
        let providers = providers.into_iter().map(provider).collect();
        Models { providers, settings, client, catalog: Arc::default() }
    }

    /// The same with what is known about models.
    #[must_use]
    pub fn with_catalog(self, catalog: Catalog) -> Self {
        Models { catalog: Arc::new(catalog), ..self }
    }

    /// What is known about models.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The names that can stand before the slash, sorted.
    pub fn provider_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.providers.keys().map(String::as_str).collect();
        if !names.contains(&DEMO) {
            names.push(DEMO);
        }
        names.sort_unstable();
        names
    }

    /// The same with what each of them speaks.
    pub fn provider_kinds(&self) -> Vec<(&str, &'static str)> {
        let kind = |name| self.providers.get(name).map_or(DEMO, |provider| provider.config.kind.as_str());
        self.provider_names().into_iter().map(|name| (name, kind(name))).collect()
    }

    /// Whether a model takes pictures. Of one that cannot be found nothing is expected.
    ///
    /// What was configured about the model counts, then what was configured about its provider, then what is known
    /// about its family.
    pub fn takes_images(&self, name: &str) -> bool {
        let Some(config) = self.config(name) else { return false };
        let configured = self.catalog.configured_images(name);
        configured.unwrap_or_else(|| config.images && self.catalog.takes_images(name).unwrap_or(true))
    }

    /// Whether a model takes files such as PDFs as they are.
    pub fn takes_files(&self, name: &str) -> bool {
        self.config(name).is_some() && self.catalog.takes_files(name)
    }

    fn config(&self, name: &str) -> Option<&ProviderConfig> {
        let (provider, _) = name.split_once('/').filter(|(provider, _)| *provider != DEMO)?;
        self.providers.get(provider).map(|provider| &*provider.config)
    }

    /// Finds a model and its name at the provider, which is everything after the first slash.
    pub fn resolve(&self, name: &str) -> Result<(Arc<dyn Model>, String), Error> {
        let Some((provider, model)) = name.split_once('/').filter(|(p, m)| !p.is_empty() && !m.is_empty())
        else {
            let message = format!("{name:?} is not the name of a model: write it as provider/model");
            return Err(Error::new(Error::UNKNOWN_PROVIDER, message));
        };
        if provider == DEMO {
            return Ok((Arc::new(Demo), model.to_owned()));
        }
        let Some(provider) = self.providers.get(provider) else {
            return Err(self.unknown(name, provider));
        };
        provider.check_key(model)?;
        let http = HttpModel {
            provider: provider.clone(),
            settings: self.settings.clone(),
            client: self.client.clone(),
            takes_images: self.takes_images(name),
            max_output_tokens: self.catalog.max_output_tokens(name),
        };
        Ok((Arc::new(http), model.to_owned()))
    }

    fn unknown(&self, name: &str, provider: &str) -> Error {
        let known = self.provider_names().join(", ");
        let cure = match presets::named(provider) {
            Some(preset) => match (preset.host, preset.keys.first()) {
                (presets::Host::Vendor, Some(key)) => {
                    format!("Set {key}, or add `{provider}` under `providers:` in config.yaml")
                }
                _ => format!("Add `{provider}: {{}}` under `providers:` in config.yaml"),
            },
            None => {
                "Add it under `providers:` in config.yaml, or set OPENAI_API_KEY or ANTHROPIC_API_KEY for \
                     `openai` or `anthropic`"
                    .to_owned()
            }
        };
        let message = format!("{name}: there is no provider {provider:?}. Known ones: {known}. {cure}");
        Error::new(Error::UNKNOWN_PROVIDER, message)
    }
}
