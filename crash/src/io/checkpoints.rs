//! The database itself cannot be written, while its write-ahead log can: writes go on, and are copied when that works
//! again.

use std::path::Path;

use anyhow::Result;
use futures_util::future::try_join_all;
use petasos_testkit::ModelServer;
use serde_json::json;

use crate::ledger::Ledger;
use crate::process::Process;
use crate::shim::{Call, EIO, Rule, Shim};
use crate::{check, model, recording};

/// The database without what is beside it.
const DATABASE: &str = "*/petasos.db";
/// Characters of four bytes each, and events of one request.
const CHARACTERS: usize = 19_000;
const EVENTS: usize = 16;
/// How long the log is when it is copied into the database: 4,000 pages.
const COPIED_AT: u64 = 4000 * 4096;
/// Requests that make the log longer than that.
const REQUESTS: usize = 15;

pub(super) async fn run(binary: &Path) -> Result<()> {
    let faults = [
        vec![Rule::fail(EIO, Call::Write, DATABASE)],
        vec![Rule::track(DATABASE), Rule::lose(EIO, DATABASE)],
    ];
    try_join_all(faults.map(|rules| async move { without_checkpoints(binary, &rules).await })).await?;
    println!("failing disks: writes go on while the log cannot be copied into the database");
    Ok(())
}

async fn without_checkpoints(binary: &Path, rules: &[Rule]) -> Result<()> {
    let (home, shim, model) = (tempfile::tempdir()?, Shim::build().await?, ModelServer::start().await);
    model.respond(model::reply);
    let ledger = Ledger::default();
    let mut server = Process::start_with(binary, home.path(), &model, &shim).await?;
    let sessions = recording::sessions(&server.client(), REQUESTS).await;
    shim.set(rules)?;
    let steer = json!({ "type": "user.steer", "message": "🏛".repeat(CHARACTERS) });
    let request = json!({ "events": vec![steer; EVENTS] });
    for session in &sessions {
        let path = format!("/v1/sessions/{session}/events");
        let answer = server.client().post(&path, request.clone()).await.expect(200);
        ledger.acknowledge(session, &answer["data"]);
    }
    let log = || std::fs::metadata(home.path().join("petasos.db-wal")).map_or(0, |log| log.len());
    assert!(log() > COPIED_AT, "the log was never to be copied");
    // Once killed while nothing was copied, and once stopped after that works again.
    server.kill().await?;
    let server = Process::start_with(binary, home.path(), &model, &shim).await?;
    check::holds(&server.client(), &sessions, &ledger).await;
    shim.set(&[])?;
    check::takes_another_turn(&server.client(), &sessions[0]).await;
    server.stop().await?;
    assert_eq!(log(), 0, "the log was copied");
    let server = Process::start_with(binary, home.path(), &model, &shim).await?;
    check::holds(&server.client(), &sessions, &ledger).await;
    server.stop().await?;
    Ok(())
}
