//! A home with a known log: what the other checks damage and take away.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use petasos_testkit::Client;
use petasos_testkit::client::message;
use serde_json::Value;

use crate::drive;

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
