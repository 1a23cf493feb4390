//! What a server that runs in the home says about itself.

use std::time::Duration;

use petasos_models::presets::key_variable;
use petasos_net::{Client, Method, Options};
use petasos_store::{WorkFound, WorkRecord, WorkState};
use serde_json::Value;

use super::Check;
use crate::admin_key::AdminKey;
use crate::api::{Api, path};
use crate::config::Config;
use crate::env::Environment;
use crate::home::Home;
use crate::server_file::ServerFile;

const ANSWER_TIME: Duration = Duration::from_secs(5);
const MAX_ANSWER: usize = 64 * 1024;
const SET_ASIDE_CURE: &str =
    "look at the log of the server for why it died; docs/operations.md says how to get it going again";

/// The problems that it names, and the providers that this shell has and it has not. One that does not answer has been
/// found out about elsewhere.
pub(super) async fn check(home: &Home, config: Option<&Config>, environment: &Environment) -> Vec<Check> {
    let Ok(Some(server)) = ServerFile::read(home) else { return Vec::new() };
    let asked = tokio::time::timeout(ANSWER_TIME, health(&server.url)).await;
    let health = asked.ok().flatten().unwrap_or_default();
    let problems = health["problems"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let cure = "look at the log of the server, and mend or switch off what it names";
    let problems = problems.map(|problem| Check::fail("running server", problem, cure));
    let set_aside = health["setAside"].as_array().into_iter().flatten();
    let mut checks: Vec<Check> = problems.chain(set_aside.map(set_aside_work)).collect();
    if let Some(config) = config {
        checks.extend(providers(&server, home, config, environment).await);
    }
    checks
}

/// The server has the environment and the configuration that it was started with, not those of this shell.
async fn providers(
    server: &ServerFile,
    home: &Home,
    config: &Config,
    environment: &Environment,
) -> Vec<Check> {
    let key = AdminKey::find(home, environment).ok().flatten().map(|found| found.key);
    let Some(key) = key.or_else(|| server.key.clone().map(Into::into)) else { return Vec::new() };
    let api = Api::new(&server.url, key, None);
    let about = tokio::time::timeout(ANSWER_TIME, async { api.get(&path(&["server"]), &[]).await }).await;
    let Ok(Ok(about)) = about else { return Vec::new() };
    // A server of an earlier release does not tell.
    let Some(there) = about["providers"].as_array() else { return Vec::new() };
    let kind_there =
        |name: &str| there.iter().find(|provider| provider["name"] == name).map(|found| &found["kind"]);
    let mut checks = Vec::new();
    for (name, provider) in &config.providers {
        let what = format!("running server, provider {name}");
        let kind = provider.kind.as_str();
        match kind_there(name) {
            None => {
                let detail = format!("this shell has it, and the running server at {} has not", server.url);
                let cure = match key_variable(name) {
                    Some(variable) => format!("set {variable} in the server's environment and restart it"),
                    None => "add it to the server's config.yaml and restart it".to_owned(),
                };
                checks.push(Check::warn(what, detail, cure));
            }
            Some(other) if *other != kind => {
                let detail = format!(
                    "is of kind {kind} here and of kind {} there",
                    other.as_str().unwrap_or_default()
                );
                checks.push(Check::warn(
                    what,
                    detail,
                    "restart the server, so that it reads its configuration again",
                ));
            }
            Some(_) => {}
        }
    }
    checks
}

/// Work that the server set aside because it died over and over while the work was under way.
fn set_aside_work(work: &Value) -> Check {
    let text = |name: &str| work[name].as_str().map(str::to_owned);
    let session = text("sessionId").map(|id| format!("session {id}"));
    let names: Vec<String> = [text("kind"), text("id"), session].into_iter().flatten().collect();
    let detail = format!("{}: {}", names.join(", "), text("message").unwrap_or_default());
    Check::warn("set aside", detail, SET_ASIDE_CURE)
}

/// The same, as the last server recorded it.
pub(super) fn recorded(record: &WorkRecord) -> Option<Check> {
    if record.state == WorkState::Counted {
        return None;
    }
    let WorkFound { key, session_id, .. } = &record.found;
    let session = session_id.as_ref().filter(|id| id.as_str() != key.id);
    let session = session.map(|id| format!(", session {id}")).unwrap_or_default();
    let detail = format!(
        "{}, {}{session}: was under way when the server died several times",
        key.kind.as_str(),
        key.id
    );
    Some(Check::warn("set aside", detail, SET_ASIDE_CURE))
}

async fn health(url: &str) -> Option<Value> {
    let client = Client::new(&Options::default());
    let response = client.request(Method::Get, &format!("{url}/health"), &[], None).await.ok()?;
    serde_json::from_slice(&response.bytes_bounded(MAX_ANSWER).await.ok()?).ok()
}
