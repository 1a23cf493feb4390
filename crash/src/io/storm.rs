//! Faults come and go while many write, and the server is killed in the middle: whatever was acknowledged is there.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use petasos_net::Method;
use petasos_testkit::{Client, ModelServer, within};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Fault, rules};
use crate::ledger::Ledger;
use crate::process::Process;
use crate::shim::Shim;
use crate::{check, model, recording};

/// Sessions that are written to at the same time.
const SESSIONS: usize = 12;
/// Faults between two kills.
const FAULTS: usize = 4;

/// What the writers share.
#[derive(Default)]
struct Counts {
    ledger: Ledger,
    refused: watch::Sender<u64>,
}

pub(super) async fn run(binary: &Path, kills: u32, seed: u64) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    let (home, shim, model) = (tempfile::tempdir()?, Shim::build().await?, ModelServer::start().await);
    model.respond(model::reply);
    shim.set(&rules(None))?;
    let counts = Arc::new(Counts::default());
    let mut server = Process::start_with(binary, home.path(), &model, &shim).await?;
    let sessions = recording::sessions(&server.client(), SESSIONS).await;
    for _ in 0..kills {
        let writers: Vec<_> = sessions
            .iter()
            .map(|session| write(server.client(), session.clone(), Arc::clone(&counts)))
            .collect();
        for _ in 0..FAULTS {
            counts.ledger.wait_for(counts.ledger.acknowledged() + random.random_range(1..=24)).await;
            shim.set(&rules(Fault::ALL.choose(&mut random).copied()))?;
            refused(&counts, random.random_range(1..=12)).await?;
            shim.set(&rules(None))?;
        }
        if random.random_bool(0.5) {
            counts.ledger.wait_for(counts.ledger.acknowledged() + random.random_range(1..=24)).await;
        }
        server.kill().await?;
        for writer in writers {
            writer.await.context("a writer failed")?;
        }
        server = Process::start_with(binary, home.path(), &model, &shim)
            .await
            .context("the server does not start again")?;
        check::holds(&server.client(), &sessions, &counts.ledger).await;
    }
    let health = server.client().get("/health").await.expect(200);
    assert_eq!(health["status"], "ok", "{health}");
    for session in &sessions {
        check::takes_another_turn(&server.client(), session).await;
    }
    server.stop().await?;
    let refused = *counts.refused.borrow();
    println!(
        "failing disks: {} writes acknowledged and {refused} refused over {kills} kills, none lost",
        counts.ledger.acknowledged()
    );
    Ok(())
}

/// Waits until this many more writes were refused.
async fn refused(counts: &Counts, more: u64) -> Result<()> {
    let mut changes = counts.refused.subscribe();
    let until = *changes.borrow() + more;
    within("writes to be refused", changes.wait_for(|count| *count >= until)).await?;
    Ok(())
}

/// Writes to a session until the server is gone.
fn write(client: Client, session: String, counts: Arc<Counts>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let path = format!("/v1/sessions/{session}/events");
        for number in 0_u64.. {
            let event = json!({ "type": "user.steer", "message": format!("{number} of {session}") });
            let body = json!({ "events": [event] }).to_string();
            let Some(answer) = client.try_send(Method::Post, &path, Some(body.into())).await else { return };
            match (answer.status, answer.body["error"].as_str()) {
                (200, _) => counts.ledger.acknowledge(&session, &answer.body["data"]),
                (500, Some("server_error")) | (507, Some("store_full")) => {
                    counts.refused.send_modify(|count| *count += 1);
                }
                _ => panic!("{}: {}", answer.status, answer.body),
            }
        }
    })
}
