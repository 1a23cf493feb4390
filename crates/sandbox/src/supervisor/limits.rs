//! Limits that the kernel keeps for each process. They are set here and inherited.

use rustix::io;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::settings::Limits;

/// Files that a process may have open; the server may have raised its own far above.
const OPEN_FILES: u64 = 4096;

pub(super) fn set(limits: &Limits) -> io::Result<()> {
    // Not the address space: many runtimes reserve far more of it than they ever use.
    lower(Resource::Data, limits.memory_bytes)?;
    lower(Resource::Fsize, limits.file_bytes)?;
    lower(Resource::Cpu, limits.cpu_seconds)?;
    lower(Resource::Nofile, OPEN_FILES)?;
    lower(Resource::Core, 0)
}

fn lower(resource: Resource, most: u64) -> io::Result<()> {
    let now = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let most = Some(most.min(now));
    setrlimit(resource, Rlimit { current: most, maximum: most })
}
