//! Kills the server three times in a row while the same work is under way, and checks that the fourth start serves
//! everybody else, tries that work by itself after ten seconds, and gives up what it dies of then.
//!
//! `calls` kills from outside while a tool, a model and a receiver do not answer. Everything else is work that nobody
//! outside can hold up: there a rule of the shim kills the process in the very call of the system that does it
//! (`case`).

mod calls;
mod case;
mod expiry;
mod import;
mod index;
mod removal;
mod run;
mod schedule;
mod wake;

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use futures_util::future::{BoxFuture, FutureExt, try_join_all};

use self::case::{Ending, crash_loop};

/// Which work.
#[derive(clap::Args)]
pub(crate) struct Works {
    /// Only work of this kind.
    #[arg(long)]
    only: Option<String>,
}

pub(crate) async fn run(binary: &Path, works: &Works) -> Result<()> {
    let began = Instant::now();
    let mut all: Vec<(&str, BoxFuture<'_, Result<()>>)> =
        vec![("calls", calls::run(binary).boxed()), ("import", import::run(binary).boxed())];
    for ending in [Ending::Success, Ending::GivenUp] {
        all.push(("removal", crash_loop::<removal::Removal>(binary, ending).boxed()));
        all.push(("schedule", crash_loop::<schedule::ScheduledRun>(binary, ending).boxed()));
        all.push(("run", crash_loop::<run::AcceptedRun>(binary, ending).boxed()));
        all.push(("expiry", crash_loop::<expiry::Expiry>(binary, ending).boxed()));
        all.push(("index", crash_loop::<index::Index>(binary, ending).boxed()));
        all.push(("wake", crash_loop::<wake::Wake>(binary, ending).boxed()));
    }
    let is_wanted = |name: &str| works.only.as_deref().is_none_or(|only| only == name);
    // They wait most of the time, so they do it together.
    let wanted = all.into_iter().filter(|(name, _)| is_wanted(name)).map(|(_, work)| work);
    let count = try_join_all(wanted).await?.len();
    println!("crash loops: {count} passed, 0 failed, in {} s", began.elapsed().as_secs());
    Ok(())
}
