//! What a server that runs in the home says about itself.

use std::time::Duration;

use petasos_net::{Client, Method, Options};
use serde_json::Value;

use super::Check;
use crate::home::Home;
use crate::server_file::ServerFile;

const ANSWER_TIME: Duration = Duration::from_secs(5);
const MAX_ANSWER: usize = 64 * 1024;

/// The problems that it names. One that does not answer has been found out about elsewhere.
pub(super) async fn check(home: &Home) -> Vec<Check> {
    let Ok(Some(server)) = ServerFile::read(home) else { return Vec::new() };
    let asked = tokio::time::timeout(ANSWER_TIME, health(&server.url)).await;
    let health = asked.ok().flatten().unwrap_or_default();
    let problems = health["problems"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let cure = "look at the log of the server, and mend or switch off what it names";
    problems.map(|problem| Check::fail("running server", problem, cure)).collect()
}

async fn health(url: &str) -> Option<Value> {
    let client = Client::new(&Options::default());
    let response = client.request(Method::Get, &format!("{url}/health"), &[], None).await.ok()?;
    serde_json::from_slice(&response.bytes_bounded(MAX_ANSWER).await.ok()?).ok()
}
