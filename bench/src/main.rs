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
mod conversation;
mod deliveries;
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
use crate::report::Report;

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
    /// Where the tables go. Unless this is given, they go to bench/RESULTS.md, and after --quick or --only nowhere.
    #[arg(long)]
    results: Option<PathBuf>,
    /// Be the stub model.
    #[arg(long, hide = true)]
    stub: bool,
}

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
    let results = options.results.or_else(|| everything.then(|| PathBuf::from("bench/RESULTS.md")));
    if let Some(path) = &results {
        report::can_write(path)?;
    }
    let binary = options.binary.context("--binary is missing")?;
    let binary = binary.canonicalize().with_context(|| format!("there is no {}", binary.display()))?;
    let bench = Bench { binary, scale: Scale { quick: options.quick }, stub: Stub::start().await? };
    let wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let started = Instant::now();
    let mut report = Report::default();
    report.head(&bench)?;
    if wanted("turn") {
        report.show(turn::measure(&bench).await?);
    }
    if wanted("commands") {
        report.show(commands::measure(&bench).await?);
    }
    if wanted("hooks") {
        report.show(hooks::measure(&bench).await?);
    }
    if wanted("relay") {
        report.show(relay::measure(&bench).await?);
    }
    if wanted("aap") {
        report.show(aap::measure(&bench).await?);
    }
    if wanted("deliveries") {
        report.show(deliveries::measure(&bench).await?);
    }
    if wanted("poll") {
        report.show(poll::measure(&bench).await?);
    }
    if wanted("memory") {
        report.show(memory::measure(&bench).await?);
    }
    if wanted("search") {
        report.show(search::measure(&bench).await?);
    }
    if wanted("startup") || wanted("growth") {
        let directory = bench.directory()?;
        let filled = startup::fill(&bench, directory.path()).await?;
        if wanted("startup") {
            report.show(startup::measure(&bench, directory.path(), &filled).await?);
        }
        if wanted("growth") {
            report.show(growth::measure(&bench, directory.path(), &filled).await?);
        }
    }
    report.tail(started.elapsed());
    if let Some(path) = results {
        report.write(&path)?;
    }
    Ok(())
}
