//! The benchmark: starts the real release binary and a stub model, and measures the server side by side with what it
//! is built on, in one run, so that a slow or busy machine slows both sides alike.
//!
//! It prints its tables and writes them to `bench/RESULTS.md`. With `--quick` it only shows that everything runs.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program that measures from outside: it prints, dials, starts the binary and fills its database"
)]

mod aap;
mod api;
mod commands;
mod commits;
mod compare;
mod conversation;
mod deliveries;
mod duel;
mod fill;
mod growth;
mod hooks;
mod http;
mod machine;
mod memory;
mod poll;
mod process;
mod relay;
mod report;
mod samples;
mod search;
mod startup;
mod stub;
mod turn;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use tempfile::TempDir;

use crate::process::{Server, Stub};
use crate::report::{Report, Section};

/// Measures a petasos server against the model's stream and the disk.
#[derive(Parser)]
struct Options {
    /// The petasos binary, built with --release.
    #[arg(long, required_unless_present = "stub")]
    binary: Option<PathBuf>,
    /// Few repetitions and small stores: shows that everything runs, not how fast it is.
    #[arg(long)]
    quick: bool,
    /// Runs only these parts: turn, commands, hooks, relay, aap, deliveries, poll, memory, search, startup, growth.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Measures this older binary too, in turns with the other, and writes how they compare.
    #[arg(long)]
    against: Option<PathBuf>,
    /// How often either binary is measured with --against.
    #[arg(long, default_value_t = 5, requires = "against")]
    rounds: usize,
    /// Where the tables go. Unless this is given, they go to bench/RESULTS.md, with --against to
    /// bench/COMPARISON.md, and after --quick or --only nowhere.
    #[arg(long)]
    results: Option<PathBuf>,
    /// Be the stub model.
    #[arg(long, hide = true)]
    stub: bool,
}

/// The parts, in the order in which they are measured.
const PARTS: [&str; 11] = [
    "turn",
    "commands",
    "hooks",
    "relay",
    "aap",
    "deliveries",
    "poll",
    "memory",
    "search",
    "startup",
    "growth",
];

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) quick: bool,
}

impl Scale {
    /// One of two amounts.
    pub(crate) fn of<T>(self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// What every part needs.
pub(crate) struct Bench {
    pub(crate) binary: PathBuf,
    pub(crate) scale: Scale,
    pub(crate) stub: Stub,
}

impl Bench {
    /// A directory on the disk that the binary is on, which is rarely one in memory.
    pub(crate) fn directory(&self) -> Result<TempDir> {
        let beside = self.binary.parent().context("the binary has no directory")?;
        tempfile::Builder::new().prefix("petasos-bench-").tempdir_in(beside).context("make a directory")
    }

    /// Starts the server on a home.
    pub(crate) async fn serve(&self, home: &Path) -> Result<Server> {
        Server::start(&self.binary, home, self.stub.address).await
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    if options.stub {
        return stub::run().await;
    }
    let everything = !options.quick && options.only.is_empty();
    let usual = if options.against.is_some() { "bench/COMPARISON.md" } else { "bench/RESULTS.md" };
    let results = options.results.or_else(|| everything.then(|| PathBuf::from(usual)));
    if let Some(path) = &results {
        report::can_write(path)?;
    }
    let binary = binary_of(&options.binary.context("--binary is missing")?)?;
    let bench = Bench { binary, scale: Scale { quick: options.quick }, stub: Stub::start().await? };
    let wanted: Vec<&str> = PARTS
        .into_iter()
        .filter(|part| options.only.is_empty() || options.only.iter().any(|only| only == part))
        .collect();
    let started = Instant::now();
    let mut report = Report::default();
    report.head(&bench, options.against.is_some())?;
    match &options.against {
        Some(older) => {
            let table = compare::measure(bench, binary_of(older)?, &wanted, options.rounds).await?;
            report.show(table);
        }
        None => sections(&bench, &wanted, |section| report.show(section)).await?,
    }
    report.tail(started.elapsed());
    if let Some(path) = results {
        report.write(&path)?;
    }
    Ok(())
}

/// Measures parts in order and shows each as soon as it is there.
async fn sections(bench: &Bench, parts: &[&str], mut show: impl FnMut(Section)) -> Result<()> {
    // Both need the same large store, which takes long to fill.
    let mut large = None;
    for part in parts {
        let section = match *part {
            "turn" => turn::measure(bench).await?,
            "commands" => commands::measure(bench).await?,
            "hooks" => hooks::measure(bench).await?,
            "relay" => relay::measure(bench).await?,
            "aap" => aap::measure(bench).await?,
            "deliveries" => deliveries::measure(bench).await?,
            "poll" => poll::measure(bench).await?,
            "memory" => memory::measure(bench).await?,
            "search" => search::measure(bench).await?,
            part => {
                if large.is_none() {
                    let directory = bench.directory()?;
                    let filled = startup::fill(bench, directory.path()).await?;
                    large = Some((directory, filled));
                }
                let (directory, filled) = large.as_ref().context("the store was not filled")?;
                match part {
                    "startup" => startup::measure(bench, directory.path(), filled).await?,
                    _ => growth::measure(bench, directory.path(), filled).await?,
                }
            }
        };
        show(section);
    }
    Ok(())
}

fn binary_of(path: &Path) -> Result<PathBuf> {
    let binary = path.canonicalize().with_context(|| format!("there is no {}", path.display()))?;
    machine::read_afresh(&binary)?;
    Ok(binary)
}
