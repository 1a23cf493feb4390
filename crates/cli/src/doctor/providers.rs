//! Checks of the models' providers.

use std::time::Duration;

use futures_util::StreamExt;
use petasos_core::event::Block;
use petasos_core::model::{Message, Request};
use petasos_models::{Delta, Models, ProviderConfig, ProviderKind};
use petasos_net::{Client, Method};
use secrecy::ExposeSecret;

use super::{Check, local_models};
use crate::config::Config;

/// How long a provider may take.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Checks the demo model and every configured provider.
pub(super) async fn check(config: &Config) -> Vec<Check> {
    let client = Client::new(&config.net);
    let models = Models::new(config.providers.clone(), config.models.clone(), client.clone());
    let mut checks = vec![demo(&models).await];
    if config.providers.is_empty() {
        checks.push(Check::warn(
            "providers",
            "none is configured, only demo models work",
            "set OPENAI_API_KEY, ANTHROPIC_API_KEY or the key of another vendor, or add one under providers: in \
             config.yaml (docs/models.md)",
        ));
    }
    if let Some(Err(error)) = config.default_model.as_deref().map(|model| models.resolve(model)) {
        let cure = "name another under default_model: in config.yaml, or add its provider";
        checks.push(Check::warn("default_model", error.to_string(), cure));
    }
    for (name, provider) in &config.providers {
        // The registry knows which providers need a key.
        match models.resolve(&format!("{name}/model")) {
            Err(error) => {
                checks.push(Check::fail(format!("provider {name}"), "has no key", error.to_string()));
            }
            Ok(_) => checks.push(reach(name, provider, &client).await),
        }
    }
    checks.extend(local_models::check(config, &client).await);
    checks
}

/// Which proxies are used, if any.
pub(super) fn proxies(config: &Config) -> Option<Check> {
    let proxies = &config.net.proxies;
    let named = [("http", &proxies.http), ("https", &proxies.https)];
    let named =
        named.into_iter().filter_map(|(scheme, proxy)| Some(format!("{scheme}:// by {}", proxy.as_ref()?)));
    let named: Vec<String> = named.collect();
    let callers = if proxies.callers { "; also for what callers name" } else { "" };
    (!named.is_empty()).then(|| Check::ok("proxy", format!("{}{callers}", named.join(", "))))
}

async fn demo(models: &Models) -> Check {
    let what = "provider demo";
    let (model, name) = match models.resolve("demo/fast") {
        Ok(found) => found,
        Err(error) => return Check::failed(what, &error.into()),
    };
    let request = Request {
        model: name,
        system: String::new(),
        messages: vec![Message::User(vec![Block::text("Hello")])],
        tools: Vec::new(),
        settings: petasos_core::model_settings::ModelSettings::default(),
    };
    let mut deltas = model.stream(request);
    while let Some(delta) = deltas.next().await {
        match delta {
            Ok(Delta::Finished(_)) => return Check::ok(what, "answers"),
            Ok(_) => {}
            Err(error) => return Check::failed(what, &error.into()),
        }
    }
    Check::fail(what, "does not answer", "this is a mistake of petasos; please report it")
}

/// Asks a provider for its models, which costs nothing.
async fn reach(name: &str, provider: &ProviderConfig, client: &Client) -> Check {
    let what = format!("provider {name}");
    let base = provider.base_url.split('?').next().unwrap_or_default().trim_end_matches('/');
    let url = match provider.kind {
        ProviderKind::Anthropic => provider.url("/v1/models"),
        ProviderKind::Openai | ProviderKind::OpenaiResponses => provider.url("/models"),
    };
    let key = provider.api_key.as_ref().map(|key| key.expose_secret());
    let bearer = key.map(|key| format!("Bearer {key}"));
    let mut headers: Vec<(&str, &str)> = match (provider.kind, key, &bearer) {
        (ProviderKind::Anthropic, Some(key), _) => {
            vec![("x-api-key", key), ("anthropic-version", "2023-06-01")]
        }
        (_, _, Some(bearer)) => vec![("authorization", bearer.as_str())],
        _ => Vec::new(),
    };
    headers.extend(provider.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let request = client.request(Method::Get, &url, &headers, None);
    let cure = format!("check the network and base_url of providers.{name}");
    match tokio::time::timeout(ANSWER_TIME, request).await {
        Err(_) => Check::fail(what, format!("{base} does not answer within 5 seconds"), cure),
        Ok(Err(error)) => Check::fail(what, format!("{base} cannot be reached: {error}"), cure),
        Ok(Ok(response)) => judge(what, base, response.status(), provider.has_key(), name),
    }
}

/// What a status means. Any answer at all means that the provider can be reached.
fn judge(what: String, base: &str, status: u16, has_key: bool, name: &str) -> Check {
    let key = if has_key { "a key is set" } else { "no key is set" };
    match status {
        200..=299 => Check::ok(what, format!("{base} is reachable; {key}")),
        401 | 403 => Check::warn(
            what,
            format!("{base} is reachable, but answers {status} ({key})"),
            format!("set the right key for providers.{name}"),
        ),
        404 | 405 => {
            Check::ok(what, format!("{base} is reachable; {key}; it does not list models ({status})"))
        }
        _ => Check::warn(
            what,
            format!("{base} is reachable, but answers {status}"),
            format!("check base_url of providers.{name}, or try again later"),
        ),
    }
}
