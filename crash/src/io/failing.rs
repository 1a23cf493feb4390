//! One fault at a time, with everything that a client sees of it.

use std::path::Path;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use petasos_testkit::client::message;
use petasos_testkit::{Client, Gate, ModelServer, Reply, within};
use serde_json::{Value, json};

use super::{Fault, rules};
use crate::ledger::Ledger;
use crate::model::final_text;
use crate::process::Process;
use crate::shim::Shim;
use crate::{check, drive, model, recording};

/// The turn that is under way when the disk begins to fail.
const TURN: &str = "held-1";

pub(super) async fn run(binary: &Path) -> Result<()> {
    try_join_all(
        Fault::ALL
            .map(|fault| async move { under(binary, fault).await.with_context(|| format!("{fault:?}")) }),
    )
    .await?;
    println!("failing disks: each fault is told and passes without a trace");
    Ok(())
}

async fn under(binary: &Path, fault: Fault) -> Result<()> {
    let (home, shim, model) = (tempfile::tempdir()?, Shim::build().await?, ModelServer::start().await);
    shim.set(&rules(None))?;
    let gate = Gate::new();
    let held = gate.clone();
    model.respond(move |request| match request.last_user_text().as_str() {
        "do held-1" => Reply::text(final_text(TURN)).gate(&held),
        _ => model::reply(request),
    });
    let ledger = Ledger::default();
    let mut server = Process::start_with(binary, home.path(), &model, &shim).await?;
    let client = server.client();
    let sessions = recording::sessions(&client, 4).await;
    write(&client, &sessions[1..], &ledger).await;
    let mut turn = client.stream(&sessions[0], "").await;
    let mut quiet = client.stream(&sessions[1], "").await;
    let opened = client.event(&sessions[0], message("do held-1")).await.expect(200);
    ledger.acknowledge(&sessions[0], &opened["data"]);
    within("the model to be asked", gate.reached()).await;
    let before = logs(&client, &sessions).await;

    shim.set(&rules(Some(fault)))?;
    let (status, code) = fault.refusal();
    gate.open();
    for session in &sessions[1..] {
        drive::steer(&client, session, "Nobody keeps this.").await.expect_error(status, code);
        client.event(session, message("do plain-1")).await.expect_error(status, code);
    }
    let agent = json!({ "name": "New", "model": "openai/scripted" });
    client.post("/v1/agents", agent).await.expect_error(status, code);
    assert_eq!(logs(&client, &sessions).await, before, "reads go on, and nothing was added");
    client.get("/v1/sessions").await.expect(200);
    health_is(&client, "degraded").await;

    shim.set(&rules(None))?;
    write(&client, &sessions[1..], &ledger).await;
    health_is(&client, "ok").await;
    quiet.until(|frame| frame.event == "user.steer").await;
    // The turn is taken up again from its log, and ends once.
    let frames = turn.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    let said = client.events(&sessions[0]).await;
    let said = said.iter().filter(|event| event["type"] == "agent.message").count();
    assert_eq!(said, 1, "the turn ended once");
    check::holds(&client, &sessions, &ledger).await;

    server.kill().await?;
    let server = Process::start_with(binary, home.path(), &model, &shim).await?;
    check::holds(&server.client(), &sessions, &ledger).await;
    for session in &sessions {
        check::takes_another_turn(&server.client(), session).await;
    }
    server.stop().await?;
    Ok(())
}

/// Writes to each session, which must work.
async fn write(client: &Client, sessions: &[String], ledger: &Ledger) {
    for session in sessions {
        let answer = drive::steer(client, session, "Keep this.").await.expect(200);
        ledger.acknowledge(session, &answer["data"]);
    }
}

async fn logs(client: &Client, sessions: &[String]) -> Vec<Vec<Value>> {
    let mut logs = Vec::new();
    for session in sessions {
        logs.push(client.events(session).await);
    }
    logs
}

async fn health_is(client: &Client, status: &str) {
    let health = client.get("/health").await.expect(200);
    let is_told = health["problems"].as_array().is_some_and(|problems| !problems.is_empty());
    assert_eq!((&health["status"], is_told), (&json!(status), status == "degraded"), "{health}");
}
