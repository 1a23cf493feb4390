//! What the system says about itself and about processes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::samples::Samples;

/// Memory of a process, in KB.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// All pages that are in memory, those of the program file included.
    pub(crate) resident: u64,
    /// The pages among them that are its own.
    pub(crate) own: u64,
}

pub(crate) fn memory(process: u32) -> Result<Memory> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let field = |name: &str| -> Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such field")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    };
    Ok(Memory { resident: field("VmRSS:")?, own: field("RssAnon:")? })
}

/// Brings a program file into memory from the disk, from its beginning to its end. How much of it is resident later
/// depends on how it lies there: a file that was just copied shows several MB more.
pub(crate) fn read_afresh(program: &Path) -> Result<()> {
    let mut file = File::open(program).with_context(|| format!("open {}", program.display()))?;
    file.sync_all()?;
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    std::io::copy(&mut file, &mut std::io::sink())?;
    Ok(())
}

/// Time that a process spent on processors.
pub(crate) fn processor_time(process: u32) -> Result<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(process.try_into()?))?;
    Ok(clock_gettime(clock)?.into())
}

pub(crate) fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub(crate) fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name"));
    name.and_then(|line| line.split_once(": ")).map_or("unknown", |(_, name)| name).to_owned()
}

/// The commit of the source, with a mark if files were changed since.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        let output = command.args(arguments).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|_| output.status.success())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".to_owned() };
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", "crates"]);
    if changed.is_some_and(|changed| !changed.is_empty()) { format!("{commit} with changes") } else { commit }
}

/// What it costs to bring 8 KB to the disk in a directory, in milliseconds.
pub(crate) fn fsync(directory: &Path, count: u64) -> Result<Samples> {
    let path = directory.join("fsync");
    let file = File::create(&path)?;
    let mut samples = Samples::default();
    for index in 0..count {
        file.write_all_at(&[b'x'; 8192], index % 64 * 8192)?;
        let started = Instant::now();
        file.sync_data()?;
        samples.time(started.elapsed());
    }
    std::fs::remove_file(path)?;
    Ok(samples)
}
