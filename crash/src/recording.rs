//! A home with a known log: what the other checks damage and take away.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use petasos_testkit::Client;
use petasos_testkit::client::message;
use serde_json::{Value, json};

use crate::drive;
use crate::model::SKILL;

/// What every session showed, by its id.
pub(crate) type Logs = BTreeMap<String, Vec<Value>>;

/// Makes sessions of one agent.
pub(crate) async fn sessions(client: &Client, count: usize) -> Vec<String> {
    drive::create_sessions(client, count).await
}

/// Lets every session take a few turns, one of them with a long message, and returns all logs.
pub(crate) async fn record(client: &Client, sessions: &[String]) -> Logs {
    let mut logs = Logs::new();
    for session in sessions {
        let mut stream = client.stream(session, "").await;
        let long = format!("do plain-0 {}", "and so on ".repeat(1500));
        for text in ["do plain-1", &long, "do thinking-2", "do todo-3"] {
            client.event(session, message(text)).await.expect(200);
            assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
        }
        logs.insert(session.clone(), client.events(session).await);
    }
    logs
}

/// The user for whom things are kept.
const USER: &str = "userId=anna";

/// Has an agent note something about a user, and learn a skill with them.
pub(crate) async fn keep(client: &Client) {
    let agent = first_agent(client).await;
    for note in 0..3 {
        let note = json!({ "content": format!("Anna likes tea, and this is note {note} about her.") });
        client.post(&format!("/v1/agents/{agent}/memories?{USER}"), note).await.expect(201);
    }
    let new = json!({ "userId": "anna" });
    let session = client.post(&format!("/v1/agents/{agent}/sessions"), new).await.expect(201);
    let session = session["id"].as_str().unwrap_or_default().to_owned();
    let mut stream = client.stream(&session, "").await;
    client.event(&session, message("do learn-1")).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
}

/// Where what is kept is shown.
pub(crate) async fn kept(client: &Client) -> [String; 3] {
    let agent = first_agent(client).await;
    [
        format!("/v1/agents/{agent}/memories?{USER}"),
        format!("/v1/agents/{agent}/learned-skills?{USER}"),
        format!("/v1/agents/{agent}/learned-skills/{SKILL}?{USER}"),
    ]
}

/// The agent that was made first, but for the one that the server makes itself.
async fn first_agent(client: &Client) -> String {
    let agents = client.get("/v1/agents?limit=100").await.expect(200);
    let mut ids = agents["data"].as_array().into_iter().flatten().filter_map(|agent| agent["id"].as_str());
    ids.rfind(|id| *id != "interactiveAgent").expect("an agent").to_owned()
}

/// Copies the files of a directory.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
