//! Model providers: those of the file, and those that the vendors' own environment variables define.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use petasos_models::{ProviderConfig, ProviderKind};
use secrecy::SecretString;

use super::file::Provider;
use crate::env::{self, Environment};

/// A provider that environment variables can define.
struct Vendor {
    name: &'static str,
    kind: ProviderKind,
    api_key: &'static str,
    base_url: &'static str,
}

const VENDORS: [Vendor; 2] = [
    Vendor {
        name: "openai",
        kind: ProviderKind::Openai,
        api_key: env::OPENAI_API_KEY,
        base_url: env::OPENAI_BASE_URL,
    },
    Vendor {
        name: "anthropic",
        kind: ProviderKind::Anthropic,
        api_key: env::ANTHROPIC_API_KEY,
        base_url: env::ANTHROPIC_BASE_URL,
    },
];

/// The providers, and what is odd about them but no reason not to start.
#[derive(Default)]
pub(super) struct Providers {
    pub(super) all: BTreeMap<String, ProviderConfig>,
    pub(super) warnings: Vec<String>,
}

/// Puts the providers of the file and of the environment together. The file wins, field by field.
pub(super) fn providers(
    mut file: BTreeMap<String, Provider>,
    environment: &Environment,
) -> Result<Providers> {
    for vendor in &VENDORS {
        let defined =
            environment.secret(vendor.api_key)?.is_some() || environment.text(vendor.base_url)?.is_some();
        if defined {
            file.entry(vendor.name.to_owned()).or_default();
        }
    }
    let mut providers = Providers::default();
    for (name, provider) in file {
        check_name(&name)?;
        let vendor = VENDORS.iter().find(|vendor| vendor.name == name);
        let config = resolve(&name, provider, vendor, environment, &mut providers.warnings)?;
        providers.all.insert(name, config);
    }
    Ok(providers)
}

fn check_name(name: &str) -> Result<()> {
    if name == "demo" {
        bail!("providers.demo: demo is built in; choose another name");
    }
    if name.is_empty() || name.contains('/') {
        bail!("providers: {name:?} cannot be the name of a provider; a model is written as name/model");
    }
    Ok(())
}

fn resolve(
    name: &str,
    provider: Provider,
    vendor: Option<&Vendor>,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<ProviderConfig> {
    let Some(kind) = provider.kind.or(vendor.map(|vendor| vendor.kind)) else {
        bail!("providers.{name}: kind is missing; write kind: openai, openai-responses or anthropic");
    };
    // A provider that only shares the name must not be sent the vendor's key.
    let vendor = vendor.filter(|vendor| vendor.kind.default_base_url() == kind.default_base_url());
    let from_file = match (provider.api_key, &provider.api_key_env) {
        (Some(_), Some(_)) => bail!("providers.{name}: give api_key or api_key_env, not both"),
        (Some(key), None) => Some(key),
        (None, Some(variable)) => {
            let key = environment.secret(variable)?;
            if key.is_none() {
                warnings.push(format!("providers.{name}: the environment variable {variable} is not set"));
            }
            key
        }
        (None, None) => vendor_key(vendor, environment)?,
    };
    let base_url = match (provider.base_url, vendor) {
        (Some(url), _) => Some(url),
        (None, Some(vendor)) => environment.text(vendor.base_url)?,
        (None, None) => None,
    };
    let base_url = base_url.unwrap_or_else(|| kind.default_base_url().to_owned());
    if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
        bail!("providers.{name}: the base URL must start with http:// or https://");
    }
    let images = provider.images.unwrap_or(true);
    Ok(ProviderConfig { kind, base_url, api_key: from_file, headers: provider.headers, images })
}

fn vendor_key(vendor: Option<&Vendor>, environment: &Environment) -> Result<Option<SecretString>> {
    vendor.map_or(Ok(None), |vendor| environment.secret(vendor.api_key))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn resolved<const N: usize>(file: &str, variables: [(&str, &str); N]) -> Result<Providers> {
        let file: super::super::file::File = serde_saphyr::from_str(file).unwrap();
        providers(file.providers, &Environment::from(variables))
    }

    fn key(provider: &ProviderConfig) -> Option<&str> {
        provider.api_key.as_ref().map(|key| key.expose_secret())
    }

    #[test]
    fn the_environment_alone_defines_the_vendors() {
        assert!(resolved("{}", []).unwrap().all.is_empty());
        let found = resolved("{}", [("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")]).unwrap();
        assert_eq!(found.all["openai"].base_url, "http://127.0.0.1:1/v1");
        assert_eq!(key(&found.all["openai"]), None);
        let found = resolved("{}", [("ANTHROPIC_API_KEY", "a\n"), ("OPENAI_API_KEY", "")]).unwrap();
        assert_eq!(found.all.len(), 1);
        assert_eq!(key(&found.all["anthropic"]), Some("a"));
        assert_eq!(found.all["anthropic"].base_url, "https://api.anthropic.com");
    }

    #[test]
    fn the_file_wins_field_by_field() {
        let variables = [("OPENAI_API_KEY", "env"), ("OPENAI_BASE_URL", "http://env/v1")];
        let found = resolved("providers: { openai: { base_url: 'http://file/v1' } }", variables).unwrap();
        assert_eq!(found.all["openai"].base_url, "http://file/v1");
        assert_eq!(key(&found.all["openai"]), Some("env"));
        let file = "providers: { openai: { kind: openai-responses, api_key: file } }";
        let found = resolved(file, variables).unwrap();
        assert_eq!(found.all["openai"].kind, ProviderKind::OpenaiResponses);
        assert_eq!(found.all["openai"].base_url, "http://env/v1");
        assert_eq!(key(&found.all["openai"]), Some("file"));
    }

    #[test]
    fn a_key_goes_only_where_it_belongs() {
        let variables = [("OPENAI_API_KEY", "env"), ("OTHER", "other")];
        let found = resolved("providers: { openai: { kind: anthropic } }", variables).unwrap();
        assert_eq!(key(&found.all["openai"]), None);
        let file = "providers: { local: { kind: openai, base_url: 'http://l/v1', api_key_env: OTHER } }";
        assert_eq!(key(&resolved(file, variables).unwrap().all["local"]), Some("other"));
        let found = resolved(file, []).unwrap();
        assert_eq!(key(&found.all["local"]), None);
        assert!(found.warnings[0].contains("OTHER"));
    }

    #[test]
    fn mistakes_are_named() {
        let problem = |file| resolved(file, []).err().unwrap().to_string();
        assert!(problem("providers: { x: {} }").contains("providers.x: kind is missing"));
        assert!(problem("providers: { demo: { kind: openai } }").contains("built in"));
        assert!(problem("providers: { x: { kind: openai, base_url: host } }").contains("http://"));
        assert!(
            problem("providers: { x: { kind: openai, api_key: a, api_key_env: b } }").contains("not both")
        );
    }
}
