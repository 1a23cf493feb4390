//! Model providers: those of the file, and those that the variables of presets define.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use petasos_models::presets::{self, Host, PRESETS, Preset};
use petasos_models::{ProviderConfig, ProviderKind};
use secrecy::{ExposeSecret, SecretString};

use super::file::{Kind, Provider};
use crate::env::Environment;

/// The providers, and what is odd about them but no reason not to start.
#[derive(Default)]
pub(super) struct Providers {
    pub(super) all: BTreeMap<String, ProviderConfig>,
    /// The vendor behind a provider of another name.
    pub(super) vendors: BTreeMap<String, String>,
    /// Whether the models of a provider take pictures, where the file says so.
    pub(super) images: BTreeMap<String, bool>,
    pub(super) warnings: Vec<String>,
}

/// Puts the providers of the file and of the environment together. The file wins, field by field.
pub(super) fn providers(file: BTreeMap<String, Provider>, environment: &Environment) -> Result<Providers> {
    let mut providers = Providers::default();
    for preset in PRESETS.iter().filter(|preset| !file.contains_key(preset.name)) {
        if is_defined(preset, environment)? {
            let place = Place { name: preset.name, preset: Some(preset) };
            match place.resolve(Provider::default(), environment, &mut providers.warnings) {
                Ok(config) => drop(providers.all.insert(preset.name.to_owned(), config)),
                // Nobody asked for it by name: a variable that another program needs must not keep us from starting.
                Err(problem) => providers.warnings.push(format!("{problem:#}; the provider is left out")),
            }
        }
    }
    for (name, provider) in file {
        check_name(&name)?;
        let place = Place { name: &name, preset: preset(&name, &provider)? };
        if let Some(preset) = place.preset.filter(|preset| preset.name != name) {
            providers.vendors.insert(name.clone(), preset.name.to_owned());
        }
        providers.images.extend(provider.images.map(|images| (name.clone(), images)));
        let config = place.resolve(provider, environment, &mut providers.warnings)?;
        providers.all.insert(name, config);
    }
    Ok(providers)
}

/// Whether the environment alone defines the provider of a preset. A key says nothing about a server of one's own.
fn is_defined(preset: &Preset, environment: &Environment) -> Result<bool> {
    let has_key = !matches!(preset.host, Host::Local(_)) && key(preset, environment)?.is_some();
    Ok(has_key || first(preset.urls, environment)?.is_some())
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

/// The preset that a provider names under `preset` or `kind`, else the one that it is called like.
fn preset(name: &str, provider: &Provider) -> Result<Option<&'static Preset>> {
    match (provider.preset, provider.kind) {
        (Some(one), Some(Kind::Is(other))) if one != other => {
            bail!("providers.{name}: preset and kind name two vendors, {} and {}", one.name, other.name)
        }
        (Some(preset), _) | (None, Some(Kind::Is(preset))) => Ok(Some(preset)),
        _ => Ok(presets::named(name)),
    }
}

/// A provider's name, and what is known about it by that.
struct Place<'a> {
    name: &'a str,
    preset: Option<&'static Preset>,
}

impl Place<'_> {
    fn resolve(
        &self,
        provider: Provider,
        environment: &Environment,
        warnings: &mut Vec<String>,
    ) -> Result<ProviderConfig> {
        let name = self.name;
        let written = match provider.kind {
            Some(Kind::Speaks(kind)) => Some(kind),
            _ => None,
        };
        let Some(usual) = written.or(self.preset.map(|preset| preset.kind)) else {
            bail!(
                "providers.{name}: kind is missing; write kind: openai, openai-responses or anthropic, or name a \
                 vendor under preset"
            );
        };
        // A provider that only shares the name must not be sent the vendor's key.
        let preset = self.preset.filter(|preset| is_anthropic(preset.kind) == is_anthropic(usual));
        let key = self.key(&provider, preset, environment, warnings)?;
        let base_url = match (provider.base_url, preset) {
            (Some(url), preset) => completed(url, preset),
            (None, Some(preset)) => self.usual_url(preset, environment)?,
            (None, None) => usual.default_base_url().to_owned(),
        };
        if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
            bail!("providers.{name}: the base URL must start with http:// or https://");
        }
        let kind = written.unwrap_or_else(|| kind_at(usual, &base_url));
        let mut config = ProviderConfig::new(kind, None);
        config.base_url = base_url;
        match (key, preset.and_then(Preset::key_header)) {
            (Some(key), Some(header)) => {
                config.headers.insert(header.to_owned(), key.expose_secret().to_owned());
            }
            (key, _) => config.api_key = key,
        }
        config.headers.extend(provider.headers);
        config.images = provider.images.unwrap_or(true);
        let is_local = preset.is_some_and(|preset| matches!(preset.host, Host::Local(_)));
        config.thinks_in_text = provider.think_tags.unwrap_or(is_local);
        Ok(config)
    }

    fn key(
        &self,
        provider: &Provider,
        preset: Option<&Preset>,
        environment: &Environment,
        warnings: &mut Vec<String>,
    ) -> Result<Option<SecretString>> {
        let name = self.name;
        match (&provider.api_key, &provider.api_key_env) {
            (Some(_), Some(_)) => bail!("providers.{name}: give api_key or api_key_env, not both"),
            (Some(key), None) => Ok(Some(key.clone())),
            (None, Some(variable)) => {
                let key = environment.secret(variable)?;
                if key.is_none() {
                    warnings
                        .push(format!("providers.{name}: the environment variable {variable} is not set"));
                }
                Ok(key)
            }
            (None, None) => preset.map_or(Ok(None), |preset| key(preset, environment)),
        }
    }

    /// Where a preset is: where the environment says, else at its usual address.
    fn usual_url(&self, preset: &Preset, environment: &Environment) -> Result<String> {
        for variable in preset.urls {
            if let Some(url) = environment.text(variable)? {
                let url = if *variable == "OLLAMA_HOST" { ollama_host(&url) } else { url };
                return Ok(completed(url, Some(preset)));
            }
        }
        let Some(variable) = preset.place.first() else { return Ok(preset.base_url.to_owned()) };
        let Some(place) = first(preset.place, environment)? else {
            bail!("providers.{}: set {variable}, or write its base_url", self.name);
        };
        let place = place.trim().trim_end_matches('/');
        if preset.base_url.starts_with("{endpoint}") {
            // An address that names a path already is taken as it is.
            let path = place.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
            return Ok(
                path.map_or_else(|| preset.base_url.replace("{endpoint}", place), |_| place.to_owned())
            );
        }
        if !place.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            bail!("{variable}: {place:?} is no region; write it like eu-central-1");
        }
        Ok(preset.base_url.replace("{region}", place))
    }
}

fn is_anthropic(kind: ProviderKind) -> bool {
    kind == ProviderKind::Anthropic
}

/// OpenAI's newer models take tools at `/responses` only, which hardly anybody else has: servers that stand in for
/// OpenAI get chat completions unless a kind is written.
fn kind_at(usual: ProviderKind, base_url: &str) -> ProviderKind {
    let rest = base_url.strip_prefix("https://").unwrap_or_default();
    let host = rest.split(['/', '?', ':']).next().unwrap_or_default();
    let is_openai = host == "api.openai.com" || host.ends_with(".api.openai.com");
    if usual == ProviderKind::OpenaiResponses && !is_openai { ProviderKind::Openai } else { usual }
}

fn key(preset: &Preset, environment: &Environment) -> Result<Option<SecretString>> {
    for variable in preset.keys {
        if let Some(key) = environment.secret(variable)? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

fn first(variables: &[&str], environment: &Environment) -> Result<Option<String>> {
    for variable in variables {
        if let Some(text) = environment.text(variable)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// A base URL with the preset's usual path if it has none. OpenAI's is taken as it is: servers that stand in for it
/// may well be at the root.
fn completed(url: String, preset: Option<&Preset>) -> String {
    let usual = preset.filter(|preset| preset.name != "openai").map(|preset| preset.base_url);
    let path = usual.and_then(|usual| usual.split_once("://")?.1.split_once('/')).map(|(_, path)| path);
    let trimmed = url.trim().trim_end_matches('/');
    let has_path = trimmed.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?']));
    match path {
        Some(path) if !has_path => format!("{trimmed}/{path}"),
        _ => url,
    }
}

/// The address in `OLLAMA_HOST`, which Ollama itself reads too: often only a host, and often one to listen on.
fn ollama_host(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let (scheme, place) = host.split_once("://").unwrap_or(("http", host));
    let place = place.replacen("0.0.0.0", "127.0.0.1", 1).replacen("[::]", "[::1]", 1);
    let place = if place.starts_with(':') { format!("127.0.0.1{place}") } else { place };
    let (authority, path) = place.split_once('/').map_or((place.as_str(), ""), |(a, path)| (a, path));
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if has_port || host.contains("://") { "" } else { ":11434" };
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    format!("{scheme}://{authority}{port}{path}")
}

#[cfg(test)]
mod tests;
