//! The crash suite: what must hold when things go wrong outside the server, checked on the real binary.
//!
//! Without a subcommand it drives many sessions, kills the server with SIGKILL at a random moment, starts it again on
//! the same data, and checks the log against everything that was acknowledged, round after round (`rounds`). The
//! subcommands damage its files (`damage`), take its disk away (`disk`), crowd it (`connections`), kill it while runs of a
//! routine are triggered (`runs`), kill it while the same work is under way each time (`loops`), set its clock (`clock`),
//! and let its disk fail and be slow (`io`).
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
mod clock;
mod connections;
mod damage;
mod drive;
mod full_disk;
mod io;
mod ledger;
mod loops;
mod model;
mod mounts;
mod process;
mod read_only;
mod recording;
mod rounds;
mod runs;
mod shim;
mod webhooks;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::connections::Crowd;
use crate::io::Faults;
use crate::loops::Works;
use crate::rounds::Rounds;
use crate::runs::Triggers;

/// Kills a petasos server over and over and checks that nothing acknowledged is lost or done twice.
#[derive(Parser)]
struct Options {
    /// The petasos binary.
    #[arg(long)]
    binary: PathBuf,
    /// Repeats a run's random choices. The moments at which the system schedules things stay random.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    rounds: Rounds,
    #[command(subcommand)]
    check: Option<Check>,
}

/// Other ways to go wrong.
#[derive(Subcommand)]
enum Check {
    /// Cuts and changes the database's files, and starts the server on what is left.
    Damage {
        /// How often.
        #[arg(long, default_value_t = 20)]
        times: u32,
    },
    /// Runs the server on a full disk and on a read-only one. Needs the right to mount.
    Disk,
    /// Opens thousands of connections and streams that say nothing.
    Connections(Crowd),
    /// Triggers runs of a routine while the server is killed.
    Runs(Triggers),
    /// Kills the server over and over while the same work is under way.
    Loops(Works),
    /// Sets the clock forward and back while the server runs.
    Clock,
    /// Lets the disk fail, fill up and be slow while the server runs.
    Io(Faults),
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let seed = options.seed.unwrap_or_else(rand::random);
    match options.check {
        None => rounds::run(&options.binary, &options.rounds, seed).await,
        Some(Check::Damage { times }) => damage::run(&options.binary, times, seed).await,
        Some(Check::Disk) => {
            full_disk::run(&options.binary).await?;
            read_only::run(&options.binary).await
        }
        Some(Check::Connections(crowd)) => connections::run(&options.binary, &crowd).await,
        Some(Check::Loops(works)) => loops::run(&options.binary, &works).await,
        Some(Check::Clock) => clock::run(&options.binary).await,
        Some(Check::Io(faults)) => io::run(&options.binary, &faults, seed).await,
        Some(Check::Runs(triggers)) => runs::run(&options.binary, &triggers).await,
    }
}
