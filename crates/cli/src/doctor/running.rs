//! What a server that runs in the home says about itself.

use std::time::Duration;

use petasos_net::{Client, Method, Options};
use petasos_store::{WorkFound, WorkRecord, WorkState};
use serde_json::Value;

use super::Check;
use crate::home::Home;
use crate::server_file::ServerFile;

const ANSWER_TIME: Duration = Duration::from_secs(5);
const MAX_ANSWER: usize = 64 * 1024;
const SET_ASIDE_CURE: &str =
    "look at the log of the server for why it died; docs/operations.md says how to get it going again";

/// The problems that it names. One that does not answer has been found out about elsewhere.
pub(super) async fn check(home: &Home) -> Vec<Check> {
    let Ok(Some(server)) = ServerFile::read(home) else { return Vec::new() };
    let asked = tokio::time::timeout(ANSWER_TIME, health(&server.url)).await;
    let health = asked.ok().flatten().unwrap_or_default();
    let problems = health["problems"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let cure = "look at the log of the server, and mend or switch off what it names";
    let problems = problems.map(|problem| Check::fail("running server", problem, cure));
    let set_aside = health["setAside"].as_array().into_iter().flatten();
    problems.chain(set_aside.map(set_aside_work)).collect()
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
