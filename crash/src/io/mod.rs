//! Disks that fail, fill up or are slow, while the server runs on them: writes are refused with a clear answer, reads go
//! on, nothing acknowledged is lost, and everything works again when the disk does, without a restart.
//!
//! The shim lets the calls of the system fail (`crate::shim`), so that no disk is needed for it.

mod at_start;
mod checkpoints;
mod failing;
mod slow;
mod storm;

use std::path::Path;
use std::time::Instant;

use anyhow::Result;

use crate::shim::{Call, EIO, ENOSPC, Rule};

/// The database with everything beside it.
const DATABASE: &str = "*/petasos.db*";

/// How much goes wrong.
#[derive(clap::Args)]
pub(crate) struct Faults {
    /// How often the server is killed after faults have come and gone.
    #[arg(long, default_value_t = 10)]
    kills: u32,
}

/// A way in which the disk fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    FailsToWrite,
    FailsToSync,
    /// It fails to sync, and what was to be synced is gone.
    LosesOnSync,
    FullOnWrite,
    FullOnSync,
}

impl Fault {
    const ALL: [Fault; 5] =
        [Fault::FailsToWrite, Fault::FailsToSync, Fault::LosesOnSync, Fault::FullOnWrite, Fault::FullOnSync];

    fn rule(self) -> Rule {
        match self {
            Fault::FailsToWrite => Rule::fail(EIO, Call::Write, DATABASE),
            Fault::FailsToSync => Rule::fail(EIO, Call::Sync, DATABASE),
            Fault::LosesOnSync => Rule::lose(EIO, DATABASE),
            Fault::FullOnWrite => Rule::fail(ENOSPC, Call::Write, DATABASE),
            Fault::FullOnSync => Rule::fail(ENOSPC, Call::Sync, DATABASE),
        }
    }

    /// The status and the code that requests get which write.
    fn refusal(self) -> (u16, &'static str) {
        match self {
            Fault::FailsToWrite | Fault::FailsToSync | Fault::LosesOnSync => (500, "server_error"),
            Fault::FullOnWrite | Fault::FullOnSync => (507, "store_full"),
        }
    }
}

/// The rules while the disk works, and those while it fails in some way.
fn rules(fault: Option<Fault>) -> Vec<Rule> {
    std::iter::once(Rule::track(DATABASE)).chain(fault.map(Fault::rule)).collect()
}

pub(crate) async fn run(binary: &Path, faults: &Faults, seed: u64) -> Result<()> {
    println!("failing disks: {} kills, --seed {seed}", faults.kills);
    let began = Instant::now();
    failing::run(binary).await?;
    storm::run(binary, faults.kills, seed).await?;
    checkpoints::run(binary).await?;
    at_start::run(binary).await?;
    slow::run(binary).await?;
    println!("failing disks: 5 passed, 0 failed, in {} s", began.elapsed().as_secs());
    Ok(())
}
