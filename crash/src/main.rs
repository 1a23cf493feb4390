//! The crash suite: drives many sessions of a real server, kills it with SIGKILL at a random moment, starts it again
//! on the same data, and checks the log against everything that was acknowledged. Round after round.
//!
//! The model and the application that runs custom tools live in this process, outside the server, and survive.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a check that fails ends the program with its reason"
)]

mod check;
mod drive;
mod ledger;
mod model;
mod process;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use petasos_testkit::{Client, ModelServer};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::drive::Driver;
use crate::ledger::Ledger;
use crate::process::Process;

/// Kills a petasos server over and over and checks that nothing acknowledged is lost or done twice.
#[derive(Parser)]
struct Options {
    /// The petasos binary.
    #[arg(long)]
    binary: PathBuf,
    /// How often the server is killed.
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// How many sessions are driven at the same time.
    #[arg(long, default_value_t = 24)]
    sessions: usize,
    /// Repeats a run's random choices. The moments at which the system schedules things stay random.
    #[arg(long)]
    seed: Option<u64>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let seed = options.seed.unwrap_or_else(rand::random);
    println!("crash suite: {} rounds, {} sessions, --seed {seed}", options.rounds, options.sessions);
    let mut random = StdRng::seed_from_u64(seed);
    let home = tempfile::tempdir()?;
    let model = ModelServer::start().await;
    model.respond(model::reply);
    let ledger = Arc::new(Ledger::default());
    let started = Instant::now();

    let mut server = Process::start(&options.binary, home.path(), &model).await?;
    let sessions = drive::create_sessions(&server.client(), options.sessions).await;
    for round in 1..=options.rounds {
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

        server = Process::start(&options.binary, home.path(), &model)
            .await
            .context("the server does not start again")?;
        for session in &sessions {
            check::session(&server.client(), session, &ledger).await;
        }
        if round % 10 == 0 || round == options.rounds {
            println!(
                "round {round}: {} events acknowledged, {} s",
                ledger.acknowledged(),
                started.elapsed().as_secs()
            );
        }
    }
    finish(&server.client(), &sessions, &ledger).await;
    server.kill().await?;
    println!("{} passed, 0 failed", options.rounds);
    Ok(())
}

/// Answers what is still open, and checks that every session ends and takes one more turn.
async fn finish(client: &Client, sessions: &[String], ledger: &Ledger) {
    for session in sessions {
        drive::settle(client, session, ledger).await;
        check::session(client, session, ledger).await;
        check::takes_another_turn(client, session).await;
    }
}
