//! A full disk: writes are refused with a clear answer, reads go on, nothing acknowledged is lost, and everything works
//! again as soon as there is room.

use std::path::Path;

use anyhow::Result;
use petasos_testkit::{Client, ModelServer};

use crate::ledger::Ledger;
use crate::mounts::Mount;
use crate::process::Process;
use crate::{check, drive, model, recording};

const DISK_BYTES: u64 = 8 << 20;
const BALLAST_BYTES: usize = 2 << 20;
/// Far more than fit on the disk.
const ATTEMPTS: usize = 2000;

pub(crate) async fn run(binary: &Path) -> Result<()> {
    let disk = match Mount::small_disk(DISK_BYTES) {
        Ok(disk) => disk,
        Err(reason) => {
            println!("full disk: SKIPPED, {reason}");
            return Ok(());
        }
    };
    let (home, ballast) = (disk.path().join("home"), disk.path().join("ballast"));
    std::fs::write(&ballast, vec![0; BALLAST_BYTES])?;
    let model = ModelServer::start().await;
    model.respond(model::reply);
    let ledger = Ledger::default();
    let mut server = Process::start(binary, &home, &model).await?;
    let client = server.client();
    let sessions = recording::sessions(&client, 4).await;
    let unused = recording::sessions(&client, 1).await;

    let accepted = fill(&client, &sessions, &ledger).await;
    check::holds(&client, &sessions, &ledger).await;
    health_is(&client, "degraded").await;
    std::fs::remove_file(&ballast)?;
    for session in &sessions {
        let answer = drive::steer(&client, session, "There is room.").await.expect(200);
        ledger.acknowledge(session, &answer["data"]);
    }
    health_is(&client, "ok").await;
    check::takes_another_turn(&client, &unused[0]).await;
    check::holds(&client, &sessions, &ledger).await;

    let again = fill(&client, &sessions, &ledger).await;
    server.kill().await?;
    let mut server = Process::start(binary, &home, &model).await?;
    check::holds(&server.client(), &sessions, &ledger).await;
    server.kill().await?;
    println!("full disk: 1 passed, 0 failed ({accepted} and {again} writes acknowledged before it was full)");
    Ok(())
}

/// Sends steering, which is kept at once and starts no turn, until the disk is full.
async fn fill(client: &Client, sessions: &[String], ledger: &Ledger) -> usize {
    let text = "🏛".repeat(19_000);
    for (accepted, session) in sessions.iter().cycle().take(ATTEMPTS).enumerate() {
        let answer = drive::steer(client, session, &text).await;
        if answer.status != 200 {
            answer.expect_error(507, "store_full");
            // Whoever tries again is told the same, or finds a little room.
            for session in sessions {
                let answer = drive::steer(client, session, &text).await;
                match answer.status {
                    200 => ledger.acknowledge(session, &answer.body["data"]),
                    _ => drop(answer.expect_error(507, "store_full")),
                }
            }
            return accepted;
        }
        ledger.acknowledge(session, &answer.body["data"]);
    }
    panic!("the disk is never full");
}

async fn health_is(client: &Client, status: &str) {
    let health = client.get("/health").await.expect(200);
    assert_eq!(health["status"], status, "{health}");
}
