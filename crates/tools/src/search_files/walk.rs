//! The files of a workspace that a search looks at.
//!
//! The walk opens each directory beneath the handle of the workspace and through no link, so that a directory that
//! becomes a link meanwhile leads nowhere. It holds no directory open and keeps a bounded amount of names.

use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use globset::{GlobBuilder, GlobMatcher};
use rustix::fs::{AtFlags, Dir, FileType, statat};

use super::ignore_files::{IgnoreRules, Present};
use super::notes::Notes;
use crate::beneath::open_directory;
use crate::workspace::{OURS, Workspace};

/// How many entries of directories a search looks at.
const MAX_ENTRIES: usize = 1_000_000;
/// How many bytes the names may take that wait for their turn.
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;
/// What an entry takes besides its name.
const ENTRY_BYTES: usize = size_of::<Entry>();
/// The longest path of a directory, which is what the kernel takes.
const MAX_PATH_BYTES: usize = 4000;

/// The longest glob of a caller.
const MAX_GLOB_BYTES: usize = 4096;

/// Files below a directory, by their paths in the workspace, without those that ignore files name.
pub(super) struct Files<'a> {
    workspace: &'a Workspace,
    /// Directories from the start down to the present one.
    open: Vec<Level>,
    /// The only file, if the start is one.
    single: Option<PathBuf>,
    only: Option<GlobMatcher>,
    deadline: Instant,
    entries: usize,
    waiting_bytes: usize,
    pub(super) notes: Notes,
}

/// A directory, with what is left of it.
struct Level {
    path: PathBuf,
    rules: Arc<IgnoreRules>,
    entries: std::vec::IntoIter<Entry>,
}

struct Entry {
    name: OsString,
    is_directory: bool,
}

impl<'a> Files<'a> {
    pub(super) fn below(
        workspace: &'a Workspace,
        path: Option<&str>,
        only: Option<&str>,
        deadline: Instant,
    ) -> Result<Files<'a>, String> {
        let relative = workspace.relative(path.unwrap_or("."))?;
        // A link that is named is followed, as long as it stays in the workspace.
        let explain = |error: std::io::Error| workspace.explain(&relative, &error);
        let start = workspace.directory().canonicalize(&relative).map_err(explain)?;
        let start = if start == Path::new(".") { PathBuf::new() } else { start };
        let only = only.map(glob).transpose()?;
        let mut files = Files {
            workspace,
            open: Vec::new(),
            single: None,
            only,
            deadline,
            entries: 0,
            waiting_bytes: 0,
            notes: Notes::default(),
        };
        if start.as_os_str().is_empty() || workspace.directory().metadata(&start).map_err(explain)?.is_dir() {
            files.descend(start, None);
        } else {
            files.single = Some(start);
        }
        Ok(files)
    }

    /// When the search must have ended.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Reads a directory, so that its entries are next.
    fn descend(&mut self, path: PathBuf, above: Option<&Arc<IgnoreRules>>) {
        if path.as_os_str().len() > MAX_PATH_BYTES {
            // The end of such a path tells nobody anything.
            let shown = || format!("{}…", path.display().to_string().chars().take(200).collect::<String>());
            return self.notes.too_deep(shown);
        }
        let opened = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
        let read = open_directory(self.workspace.directory(), opened).and_then(|handle| {
            let mut directory = Dir::new(handle)?;
            let (entries, present) = self.list(&path, &mut directory)?;
            let rules = IgnoreRules::read(above, &path, directory.fd()?, present, &mut self.notes);
            Ok((entries, rules))
        });
        match read {
            Ok((entries, rules)) => self.open.push(Level { path, rules, entries: entries.into_iter() }),
            // It was removed, or is no directory any more.
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) => {}
            Err(_) => self.notes.unreadable_directory(|| path.display().to_string()),
        }
    }

    /// The entries of a directory by name, and its ignore files.
    fn list(&mut self, path: &Path, directory: &mut Dir) -> std::io::Result<(Vec<Entry>, Present)> {
        let (mut entries, mut present) = (Vec::new(), Present::default());
        while let Some(entry) = directory.read() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            present.see(name);
            if matches!(name, b"." | b".." | b".git") || name == OURS.as_bytes() {
                continue;
            }
            self.entries += 1;
            let bytes = ENTRY_BYTES + name.len();
            if self.entries > MAX_ENTRIES || self.is_over() {
                break;
            }
            if self.waiting_bytes + bytes > MAX_WAITING_BYTES {
                self.notes.cut_directory(|| {
                    if path.as_os_str().is_empty() { ".".into() } else { path.display().to_string() }
                });
                break;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(directory.fd()?, OsStr::from_bytes(name)),
                kind => kind,
            };
            let is_directory = kind == FileType::Directory;
            if is_directory || kind == FileType::RegularFile {
                self.waiting_bytes += bytes;
                entries.push(Entry { name: OsString::from_vec(name.to_owned()), is_directory });
            }
        }
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok((entries, present))
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }
}

fn kind_of(directory: BorrowedFd<'_>, name: &OsStr) -> FileType {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    found.map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode))
}

impl Iterator for Files<'_> {
    type Item = PathBuf;

    fn next(&mut self) -> Option<PathBuf> {
        if let Some(single) = self.single.take() {
            return Some(single).filter(|path| self.only.as_ref().is_none_or(|only| matches(only, path)));
        }
        loop {
            let level = self.open.last_mut()?;
            if Instant::now() >= self.deadline {
                self.notes.out_of_time();
                return None;
            }
            if self.entries > MAX_ENTRIES {
                self.notes.too_many_entries();
                return None;
            }
            let Some(entry) = level.entries.next() else {
                self.open.pop();
                continue;
            };
            self.waiting_bytes -= ENTRY_BYTES + entry.name.len();
            let path = level.path.join(&entry.name);
            if level.rules.leaves_out(&path, entry.is_directory) {
                continue;
            }
            if entry.is_directory {
                let rules = Arc::clone(&level.rules);
                self.descend(path, Some(&rules));
            } else if self.only.as_ref().is_none_or(|only| matches(only, &path)) {
                return Some(path);
            }
        }
    }
}

pub(super) fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    if pattern.len() > MAX_GLOB_BYTES {
        return Err(format!("A glob must not be longer than {MAX_GLOB_BYTES} bytes."));
    }
    let glob = GlobBuilder::new(pattern).literal_separator(pattern.contains('/')).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| format!("The glob is wrong: {error}."))
}

/// Whether a glob fits a path, or the name at its end if the glob has no slash.
pub(super) fn matches(glob: &GlobMatcher, path: &Path) -> bool {
    let name = path.file_name().map(Path::new);
    match name {
        Some(name) if !glob.glob().glob().contains('/') => glob.is_match(name),
        _ => glob.is_match(path),
    }
}
