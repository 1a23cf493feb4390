//! What must hold of a log after a crash.

use std::collections::BTreeMap;
use std::path::Path;

use petasos_testkit::Client;
use petasos_testkit::client::message;
use serde_json::Value;

use crate::ledger::Ledger;
use crate::model::{RUNS, final_text};

/// Checks one session against everything that was acknowledged, once its turn is idle or paused.
pub(crate) async fn session(client: &Client, session: &str, ledger: &Ledger) {
    wait_until_idle(client, session).await;
    let events = client.events(session).await;
    let account = ledger.account(session);
    let sequences: Vec<u64> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b), "{session}: sequences go up");
    let by_sequence: BTreeMap<u64, &Value> = sequences.iter().copied().zip(&events).collect();

    for (sequence, acknowledged) in &account.acknowledged {
        let found = by_sequence.get(sequence);
        let found = found.unwrap_or_else(|| panic!("{session}: acknowledged event {sequence} is lost"));
        for field in ["id", "type", "payload", "createdAt"] {
            assert_eq!(found[field], acknowledged[field], "{session}: event {sequence} changed");
        }
    }
    for seen in &account.seen {
        let found = by_sequence[&seen["sequence"].as_u64().unwrap()];
        assert_eq!(found["payload"], seen["payload"], "{session}: the log was rewritten");
    }
    check_tools(session, &events);
    check_messages(session, &events, &account.sent);
    ledger.update(session, |account| account.seen = events);
}

async fn wait_until_idle(client: &Client, session: &str) {
    let mut stream = client.stream(session, "?after=0").await;
    let shown = client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    if shown["status"] == "idle" {
        return;
    }
    let newest =
        client.events(session).await.last().and_then(|event| event["sequence"].as_u64()).unwrap_or(0);
    stream
        .until(|frame| {
            frame.event == "session.status_idle"
                && frame.data["sequence"].as_u64().is_some_and(|at| at >= newest)
        })
        .await;
}

/// Every tool use has exactly one result, and no answer was taken twice.
fn check_tools(session: &str, events: &[Value]) {
    let mut results: BTreeMap<&str, usize> = BTreeMap::new();
    for event in events {
        let payload = &event["payload"];
        let answered = match event["type"].as_str().unwrap() {
            "agent.tool_result" | "user.custom_tool_result" => payload["tool_use_id"].as_str(),
            "user.clarify_result" => payload["request_id"].as_str(),
            _ => None,
        };
        if let Some(id) = answered {
            *results.entry(id).or_default() += 1;
        }
    }
    assert!(results.values().all(|count| *count == 1), "{session}: something was answered twice");
    for event in events.iter().filter(|event| event["type"] == "agent.tool_use") {
        let id = event["payload"]["id"].as_str().unwrap();
        assert_eq!(results.get(id), Some(&1), "{session}: tool use {id} has no result");
    }
}

/// No command ran twice, and one that was said to have run did.
pub(crate) fn side_effects(home: &Path, ledger: &Ledger, sessions: &[String]) {
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    count_runs(&home.join("workspaces"), &mut runs);
    let twice: Vec<_> = runs.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "commands ran more than once: {twice:?}");
    for session in sessions {
        let account = ledger.account(session);
        let commands = account.seen.iter().filter(|event| event["payload"]["tool"] == "terminal");
        let (uses, results): (Vec<&Value>, Vec<&Value>) =
            commands.map(|event| &event["payload"]).partition(|payload| payload["id"].is_string());
        for result in results.iter().filter(|result| result["is_error"] == false) {
            let used = uses.iter().find(|used| used["id"] == result["tool_use_id"]).unwrap();
            let command = used["input"]["command"].as_str().unwrap();
            let name = command.split(' ').nth(1).unwrap();
            assert!(runs.contains_key(name), "{session}: {name} is said to have run, and did not");
        }
    }
}

fn count_runs(directory: &Path, runs: &mut BTreeMap<String, usize>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            count_runs(&path, runs);
        } else if path.file_name().is_some_and(|name| name == RUNS) {
            for name in std::fs::read_to_string(&path).unwrap().lines() {
                *runs.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
}

/// Nothing is said twice: each message was taken at most once, and finished at most once.
fn check_messages(session: &str, events: &[Value], sent: &std::collections::BTreeSet<String>) {
    let texts = |kind: &str| {
        let of_kind = events.iter().filter(|event| event["type"] == kind);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for event in of_kind {
            *counts
                .entry(event["payload"]["content"][0]["text"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
        counts
    };
    let (asked, said) = (texts("user.message"), texts("agent.message"));
    for name in sent {
        let asked = asked.get(&format!("do {name}")).copied().unwrap_or(0);
        assert!(asked <= 1, "{session}: {name} was taken {asked} times");
        // A steer that arrives late makes the model speak once more, so a final text can come again in one turn.
        let finished = said.get(&final_text(name)).copied().unwrap_or(0);
        let steers = events.iter().filter(|event| event["type"] == "user.steer").count();
        assert!(finished <= asked * (1 + steers), "{session}: {name} was finished {finished} times");
    }
}

/// Whatever happened, the session takes the next message and answers it.
pub(crate) async fn takes_another_turn(client: &Client, session: &str) {
    let mut stream = client.stream(session, "").await;
    client.event(session, message("do plain-last")).await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    assert!(frames.iter().any(|frame| !frame.is_delta() && frame.text() == final_text("plain-last")));
}

/// Everything acknowledged is there and as it was.
pub(crate) async fn holds(client: &Client, sessions: &[String], ledger: &Ledger) {
    for session in sessions {
        let events = client.events(session).await;
        for (sequence, acknowledged) in &ledger.account(session).acknowledged {
            let found: Option<&Value> = events.iter().find(|event| event["sequence"] == *sequence);
            let found = found.unwrap_or_else(|| panic!("{session}: acknowledged event {sequence} is lost"));
            assert_eq!(found["payload"], acknowledged["payload"], "{session}: event {sequence} changed");
        }
    }
}
