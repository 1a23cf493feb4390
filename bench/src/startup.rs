//! From the start of the process to its first answer, with nothing and with a lot stored.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::Bench;
use crate::fill::{Filling, ROUND};
use crate::report::{Section, Target, milliseconds, whole};
use crate::samples::Samples;

/// A home with many sessions.
pub(crate) struct Filled {
    pub(crate) home: PathBuf,
    pub(crate) agent: String,
    sessions: u64,
}

pub(crate) async fn fill(bench: &Bench, directory: &Path) -> Result<Filled> {
    let home = directory.join("filled");
    let server = bench.serve(&home).await?;
    let agent = server.api().await?.agent("single-1").await?;
    server.stop().await?;
    let sessions = bench.scale.of(100_000, 5_000);
    let (database, name) = (home.join("petasos.db"), agent.clone());
    tokio::task::spawn_blocking(move || {
        let filling = Filling::open(&database, &name)?;
        for _ in 0..sessions {
            filling.session(ROUND)?;
        }
        filling.finish()
    })
    .await??;
    Ok(Filled { home, agent, sessions })
}

pub(crate) async fn measure(bench: &Bench, directory: &Path, filled: &Filled) -> Result<Section> {
    let empty = directory.join("empty");
    let (mut first, mut again, mut full) = (Samples::default(), Samples::default(), Samples::default());
    for index in 0..bench.scale.of(15, 3) {
        let fresh = directory.join(format!("fresh-{index}"));
        for (home, samples) in [(&fresh, &mut first), (&empty, &mut again), (&filled.home, &mut full)] {
            let server = bench.serve(home).await?;
            samples.time(server.started_in);
            server.stop().await?;
        }
    }
    let mut section = Section::new("Start");
    section.note("From the start of the process to the first answer on `/health`, one after the other.");
    section.header(&["", "p50", "worst"]);
    let many = format!("{} sessions, {} events", whole(filled.sessions), whole(filled.sessions * ROUND));
    let rows = [("no home: makes one", &first), ("an empty store", &again), (many.as_str(), &full)];
    for (name, samples) in rows {
        section.row([name.to_owned(), milliseconds(samples.p50()), milliseconds(samples.quantile(1.0))]);
    }
    section.cost("Start, no home", first.p50(), "ms");
    section.cost("Start, an empty store", again.p50(), "ms");
    section.cost("Start, a million events", full.p50(), "ms");
    section.target(Target::at_most("Start to healthy, empty store", again.p50(), 100.0, "ms"));
    section.target(Target::at_most("Start to healthy, a million events", full.p50(), 200.0, "ms"));
    Ok(section)
}
