//! How much workspaces may take on the disk.
//!
//! To measure a workspace means to look at all of its files, so that is done seldom: between measurements, the bytes
//! that file tools write are added up, and while a command runs, the room that is left on the disk says whether it can
//! have written too much. Measurements take at most a twentieth of the time. What others remove from the disk meanwhile
//! can hide what a command writes, so a small workspace is measured every time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use petasos_sandbox::FileWrites;
use rustix::fs::{CWD, Mode, OFlags, openat, statvfs};
use rustix::io::Errno;

use crate::disk_usage::disk_usage;
use crate::file_pool::{FileOwner, FilePool};

/// How often it is looked at the room on the disk while a command runs.
const TICK: Duration = Duration::from_millis(500);
/// How long a measurement may take.
const MAX_MEASURING: Duration = Duration::from_secs(20);
/// For how long one counts at least, and for how many times as long as it took.
const FRESH: Duration = Duration::from_secs(10);
const FRESH_TIMES: u32 = 20;
/// A measurement that takes less is made every time.
const QUICK: Duration = Duration::from_millis(10);
/// How many workspaces are remembered.
const MAX_METERS: usize = 1000;
/// How much a workspace that is over its limit may still grow during a command that makes room there, by directories.
const SLACK: u64 = 4 * 1024 * 1024;

/// How much workspaces may take on the disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceLimits {
    /// One workspace.
    pub max_bytes: u64,
    /// All together, if that is limited.
    pub total_max_bytes: Option<u64>,
}

impl Default for WorkspaceLimits {
    fn default() -> Self {
        WorkspaceLimits { max_bytes: 10_000_000_000, total_max_bytes: None }
    }
}

/// The limits of all workspaces, and what is known of how much they take. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    limits: WorkspaceLimits,
    root: Arc<Path>,
    meters: Arc<Mutex<HashMap<PathBuf, Arc<Meter>>>>,
}

/// What is known of how much a directory takes.
#[derive(Debug, Default)]
struct Meter {
    reading: Mutex<Option<Reading>>,
    /// Held while it is measured.
    measuring: Mutex<()>,
    /// Whether a command that could write to no file made it larger. Room that is made ends it.
    has_grown: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    bytes: u64,
    at: Instant,
    took: Duration,
    /// What was used on the whole disk then.
    disk_used: u64,
}

impl Reading {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < FRESH.max(self.took * FRESH_TIMES)
    }

    /// Whether it could be looked again already.
    fn may_be_repeated(&self) -> bool {
        self.at.elapsed() >= self.took * 2
    }
}

/// A limit, with the directory that it is about.
#[derive(Clone)]
struct Limit {
    setting: &'static str,
    /// Whether it is about the workspaces of all tenants.
    is_total: bool,
    path: PathBuf,
    max: u64,
    meter: Arc<Meter>,
}

impl Quota {
    pub(crate) fn new(root: &Path, limits: WorkspaceLimits) -> Self {
        Quota { limits, root: root.into(), meters: Arc::default() }
    }

    /// Refuses to write so many bytes more if there is no room for them. This blocks.
    pub(crate) fn make_sure_of_room(&self, workspace: &Path, bytes: u64) -> Result<(), String> {
        for limit in self.limits_of(workspace) {
            let has_room = |known: u64| known.saturating_add(bytes) <= limit.max;
            let mut reading = limit.meter.last();
            if !reading.is_some_and(|reading| reading.is_fresh() && has_room(reading.bytes)) {
                reading = limit.measure()?.or(reading);
            }
            let known = reading.map_or(0, |reading| reading.bytes);
            if !has_room(known) {
                return Err(limit.refusal(known));
            }
        }
        self.limits_of(workspace).iter().for_each(|limit| limit.meter.add(bytes));
        Ok(())
    }

    /// Watches a workspace during a command that begins now. Where there is too much already, the command can make room
    /// and writes to no file. This blocks.
    ///
    /// # Errors
    /// If an earlier command of the workspace grew it all the same.
    pub(crate) fn watch(&self, workspace: &Path) -> Result<QuotaWatch, String> {
        let limits = self.limits_of(workspace);
        let Some((over, known)) = limits.iter().find_map(|limit| Some((limit, limit.excess()?))) else {
            let watched = limits.into_iter().map(|limit| (limit.max, limit)).collect();
            return Ok(QuotaWatch { limits: watched, over: None });
        };
        let own = self.own_limit(workspace);
        let has_grown = own.meter.has_grown.load(Ordering::Relaxed);
        let before = own.measure()?.or(own.meter.last()).map_or(0, |reading| reading.bytes);
        if has_grown {
            return Err(format!("{} No command runs until there is room.", over.refusal(known)));
        }
        Ok(QuotaWatch { limits: [(before.saturating_add(SLACK), own)].into(), over: Some(over.clone()) })
    }

    fn own_limit(&self, workspace: &Path) -> Limit {
        Limit {
            setting: "workspaces.max_bytes",
            is_total: false,
            path: workspace.to_owned(),
            max: self.limits.max_bytes,
            meter: self.meter(workspace),
        }
    }

    fn limits_of(&self, workspace: &Path) -> Vec<Limit> {
        let own = self.own_limit(workspace);
        let total = self.limits.total_max_bytes.map(|max| Limit {
            setting: "workspaces.total_max_bytes",
            is_total: true,
            path: self.root.to_path_buf(),
            max,
            meter: self.meter(&self.root),
        });
        std::iter::once(own).chain(total).collect()
    }

    fn meter(&self, path: &Path) -> Arc<Meter> {
        let mut meters = lock(&self.meters);
        if meters.len() > MAX_METERS {
            meters.retain(|_, meter| Arc::strong_count(meter) > 1);
        }
        Arc::clone(meters.entry(path.to_owned()).or_default())
    }
}

/// The limits that a command must keep.
#[derive(Clone)]
pub(crate) struct QuotaWatch {
    /// Each with what it may come to.
    limits: Arc<[(u64, Limit)]>,
    /// The limit that was exceeded before the command began.
    over: Option<Limit>,
}

impl QuotaWatch {
    /// Whether the command may write to files.
    pub(crate) fn files(&self) -> FileWrites {
        if self.over.is_some() { FileWrites::None } else { FileWrites::Limited }
    }

    /// Why a command failed that could write to no file.
    pub(crate) fn reason(&self) -> Option<String> {
        let over = self.over.as_ref()?;
        Some(over.refusal(over.meter.last()?.bytes))
    }

    /// Waits until a limit is exceeded, and says so. Dropping the future ends the watch.
    pub(crate) async fn exceeded(&self, pool: &FilePool, owner: &FileOwner) -> String {
        loop {
            match self.look(pool, owner).await {
                Some(over) => return over,
                None => tokio::time::sleep(TICK).await,
            }
        }
    }

    /// Whether a limit is exceeded now, as cheaply as that can be told.
    pub(crate) async fn look(&self, pool: &FilePool, owner: &FileOwner) -> Option<String> {
        let watch = self.clone();
        // All of them, so that each knows what the command has written.
        let look = move || {
            let looks: Vec<_> = watch.limits.iter().map(|(allowed, limit)| limit.look(*allowed)).collect();
            let over = looks.into_iter().flatten().next()?;
            if let Some(before) = &watch.over {
                // Files that were mapped into memory grow without a write. Were that free, many commands could add up
                // to any size.
                watch
                    .limits
                    .iter()
                    .for_each(|(_, limit)| limit.meter.has_grown.store(true, Ordering::Relaxed));
                return Some(before.refusal(before.meter.last()?.bytes));
            }
            Some(over)
        };
        // If the disk does not answer, the command does not write either.
        pool.run(owner, look).await.unwrap_or_default()
    }
}

impl Meter {
    fn last(&self) -> Option<Reading> {
        *lock(&self.reading)
    }

    /// Counts what a file tool writes.
    fn add(&self, bytes: u64) {
        if let Some(reading) = lock(&self.reading).as_mut() {
            reading.bytes = reading.bytes.saturating_add(bytes);
        }
    }
}

impl Limit {
    /// How much is taken, if that is known to be too much. This measures again, since what is known may be old.
    fn excess(&self) -> Option<u64> {
        let is_over = |reading: &Reading| reading.bytes > self.max;
        let known = self.meter.last().filter(is_over)?;
        // What cannot be measured is refused when it is watched.
        self.measure().ok().flatten().or(Some(known)).filter(is_over).map(|reading| reading.bytes)
    }

    /// Measures, unless somebody else does or nothing is there.
    ///
    /// # Errors
    /// If it cannot be measured, a refusal: a limit that is not known to be kept is not kept.
    fn measure(&self) -> Result<Option<Reading>, String> {
        let Ok(_measuring) = self.meter.measuring.try_lock() else { return Ok(None) };
        match self.measured() {
            Ok(reading) => {
                *lock(&self.meter.reading) = Some(reading);
                if reading.bytes <= self.max {
                    self.meter.has_grown.store(false, Ordering::Relaxed);
                }
                Ok(Some(reading))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(error) => {
                let Limit { setting, path, .. } = self;
                let path = path.display();
                Err(format!("{path} could not be measured ({error}), so {setting} could not be kept."))
            }
        }
    }

    fn measured(&self) -> Result<Reading, Errno> {
        let at = Instant::now();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(CWD, &self.path, flags, Mode::empty())?;
        let disk_used = disk_used(&self.path)?;
        let bytes = disk_usage(handle, at + MAX_MEASURING)?.bytes;
        Ok(Reading { bytes, at: Instant::now(), took: at.elapsed(), disk_used })
    }

    /// Looks whether more than `allowed` is taken, as cheaply as that can be told.
    fn look(&self, allowed: u64) -> Option<String> {
        let known = self.meter.last();
        let may_be_over = match known {
            None => true,
            Some(reading) => {
                // On a disk that does not say how full it is, anything may be.
                let used = disk_used(&self.path).unwrap_or(u64::MAX);
                let grown = used.saturating_sub(reading.disk_used);
                let is_near = reading.bytes.saturating_add(grown) > allowed;
                !reading.is_fresh() || reading.took < QUICK || (is_near && reading.may_be_repeated())
            }
        };
        let reading = if may_be_over { self.measure() } else { Ok(known) };
        match reading {
            Ok(reading) => {
                let bytes = reading?.bytes;
                (bytes > allowed).then(|| self.refusal(bytes))
            }
            Err(refusal) => Some(refusal),
        }
    }

    fn refusal(&self, known: u64) -> String {
        let Limit { setting, max, .. } = self;
        if self.is_total {
            // How much others have is not for everybody.
            format!("All workspaces together are full: {setting} allows {max} bytes. Remove files first.")
        } else {
            format!("The workspace holds {known} bytes, and {setting} allows {max}. Remove files first.")
        }
    }
}

fn disk_used(path: &Path) -> Result<u64, Errno> {
    let disk = statvfs(path)?;
    Ok(disk.f_blocks.saturating_sub(disk.f_bfree).saturating_mul(disk.f_frsize))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
