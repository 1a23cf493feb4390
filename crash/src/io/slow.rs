//! A slow disk: writes take as long as the disk, many of them share the wait, and reads do not wait at all.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::future::join_all;
use petasos_testkit::{Client, ModelServer};

use super::DATABASE;
use crate::ledger::Ledger;
use crate::process::Process;
use crate::shim::{Call, Rule, Shim};
use crate::{check, drive, model, recording};

/// How long a sync takes.
const SYNC: u32 = 200;
/// Sessions that are written to at the same time.
const SESSIONS: usize = 48;
/// How long one sync takes that others read during.
const ENDLESS: u32 = 5000;
/// Reads of somebody else.
const READS: usize = 50;

pub(super) async fn run(binary: &Path) -> Result<()> {
    let (home, shim, model) = (tempfile::tempdir()?, Shim::build().await?, ModelServer::start().await);
    model.respond(model::reply);
    let ledger = Ledger::default();
    let mut server = Process::start_with(binary, home.path(), &model, &shim).await?;
    let client = server.client();
    let other = client.with_header("x-petasos-tenant", "other");
    let sessions = recording::sessions(&client, SESSIONS).await;
    let others = recording::sessions(&other, 1).await;
    check::takes_another_turn(&other, &others[0]).await;

    shim.set(&[Rule::delay(SYNC, Call::Sync, DATABASE)])?;
    let began = Instant::now();
    join_all(sessions.iter().map(|session| keep(&client, session, &ledger))).await;
    let together = began.elapsed();
    let one_by_one = Duration::from_millis(u64::from(SYNC)) * u32::try_from(SESSIONS)?;
    assert!(together < one_by_one / 2, "{SESSIONS} writes took {together:?}");
    let began = Instant::now();
    check::takes_another_turn(&client, &sessions[0]).await;
    let turn = began.elapsed();

    shim.set(&[Rule::delay(ENDLESS, Call::Sync, DATABASE)])?;
    let write = keep(&client, &sessions[0], &ledger);
    let reads = async {
        for _ in 0..READS {
            other.get(&format!("/v1/sessions/{}/events", others[0])).await.expect(200);
            other.get("/v1/sessions").await.expect(200);
            client.get(&format!("/v1/sessions/{}", sessions[0])).await.expect(200);
        }
        Instant::now()
    };
    let (written, read) = tokio::join!(write, reads);
    assert!(read < written, "reads waited for a write of somebody else");
    shim.set(&[])?;
    check::holds(&client, &sessions, &ledger).await;
    server.kill().await?;
    let server = Process::start_with(binary, home.path(), &model, &shim).await?;
    check::holds(&server.client(), &sessions, &ledger).await;
    server.stop().await?;
    println!(
        "slow disk: with {SYNC} ms per sync, {SESSIONS} writes at once took {} ms and a turn {} ms; others read \
         during a sync of {ENDLESS} ms",
        together.as_millis(),
        turn.as_millis()
    );
    Ok(())
}

/// Writes to a session, and says when that was acknowledged.
async fn keep(client: &Client, session: &str, ledger: &Ledger) -> Instant {
    let answer = drive::steer(client, session, "Keep this.").await.expect(200);
    ledger.acknowledge(session, &answer["data"]);
    Instant::now()
}
