//! Kills the server with SIGKILL at a random moment, again and again.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use petasos_testkit::receiver::Receiver;
use petasos_testkit::{Client, ModelServer};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::drive::{self, Driver};
use crate::ledger::Ledger;
use crate::process::Process;
use crate::{check, model, webhooks};

/// Rounds after which new sessions take over. Every round reads the whole logs, which must not grow without end.
const FRESH_AFTER: u32 = 25;

/// How much is driven and killed.
#[derive(clap::Args)]
pub(crate) struct Rounds {
    /// How often the server is killed.
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// How many sessions are driven at the same time.
    #[arg(long, default_value_t = 24)]
    sessions: usize,
}

pub(crate) async fn run(binary: &Path, options: &Rounds, seed: u64) -> Result<()> {
    println!("crash suite: {} rounds, {} sessions, --seed {seed}", options.rounds, options.sessions);
    let mut random = StdRng::seed_from_u64(seed);
    let home = tempfile::tempdir()?;
    let receiver = webhooks::receive(home.path()).await?;
    let model = ModelServer::start().await;
    model.respond(model::reply);
    let ledger = Arc::new(Ledger::default());
    let started = Instant::now();

    let mut server = Process::start(binary, home.path(), &model).await?;
    let mut sessions = drive::create_sessions(&server.client(), options.sessions).await;
    for round in 1..=options.rounds {
        if round % FRESH_AFTER == 0 {
            finish(&server.client(), &sessions, &ledger, &receiver).await;
            sessions = drive::create_sessions(&server.client(), options.sessions).await;
        }
        let drivers: Vec<_> = sessions
            .iter()
            .map(|session| {
                Driver::start(server.client(), session.clone(), Arc::clone(&ledger), random.random())
            })
            .collect();
        // The moment of the kill is counted in acknowledged requests, so that every round gets somewhere.
        let acknowledged = ledger.acknowledged() + random.random_range(1..=options.sessions as u64 * 4);
        ledger.wait_for(acknowledged).await;
        server.kill().await?;
        futures_util::future::join_all(drivers.into_iter().map(Driver::join)).await;

        server =
            Process::start(binary, home.path(), &model).await.context("the server does not start again")?;
        for session in &sessions {
            check::session(&server.client(), session, &ledger).await;
        }
        check::side_effects(home.path(), &ledger, &sessions);
        if round % 10 == 0 || round == options.rounds {
            println!(
                "round {round}: {} events acknowledged, {} s",
                ledger.acknowledged(),
                started.elapsed().as_secs()
            );
        }
    }
    finish(&server.client(), &sessions, &ledger, &receiver).await;
    server.kill().await?;
    println!("{} passed, 0 failed", options.rounds);
    Ok(())
}

/// Answers what is still open, and checks that every session ends, takes one more turn, and was told to its receiver.
async fn finish(client: &Client, sessions: &[String], ledger: &Ledger, receiver: &Receiver) {
    for session in sessions {
        drive::settle(client, session, ledger).await;
        check::session(client, session, ledger).await;
        check::takes_another_turn(client, session).await;
    }
    webhooks::check(client, sessions, receiver).await;
}
