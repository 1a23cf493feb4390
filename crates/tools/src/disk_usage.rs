//! How much a directory takes on the disk, with everything in it.
//!
//! Blocks that are allocated count, so that a sparse file is as large as what is in it, and a file with several names
//! counts once. The walk goes by handle and through no link. However deep a tree is, only some directories are open:
//! above those the walk goes back by `..` and makes sure that this is where it came from. A directory that is closed to
//! its owner, who we are, is opened for as long as the walk is in it.

use std::collections::HashSet;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Instant;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, chmod, fchmod, fstat, openat, statat};
use rustix::io::{Errno, Result};
use rustix::process::geteuid;

/// The size of the blocks in which the kernel counts.
const BLOCK: u64 = 512;
/// How many directories are open at once.
const MAX_OPEN: usize = 32;
/// How many files with several names are known again.
const MAX_KNOWN: usize = 1_000_000;
/// What the owner of a directory needs to look at everything in it.
const LOOK: u32 = 0o500;
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskUsage {
    /// Bytes that are allocated.
    pub(crate) bytes: u64,
    /// Whether all of it was looked at. It is not if the time was up, or the tree changed under the walk.
    pub(crate) is_complete: bool,
}

/// Measures the directory of a handle that was opened as a path, as far as that is done by `deadline`.
///
/// # Errors
/// If part of it cannot be measured although it is ours.
pub(crate) fn disk_usage(handle: impl AsFd, deadline: Instant) -> Result<DiskUsage> {
    let found = fstat(&handle)?;
    let mut walk = Walk { bytes: 0, known: HashSet::new(), device: found.st_dev };
    walk.count(&found);
    let mut levels = vec![Level::enter(handle.as_fd(), c".", &found)?];
    let mut looked_at = 0u32;
    loop {
        looked_at = looked_at.wrapping_add(1);
        let is_over = looked_at.is_multiple_of(256) && Instant::now() >= deadline;
        if is_over {
            return Ok(DiskUsage { bytes: walk.bytes, is_complete: false });
        }
        let Some(level) = levels.last_mut() else {
            return Ok(DiskUsage { bytes: walk.bytes, is_complete: true });
        };
        let Some(directory) = &mut level.open else { return Ok(walk.changed()) };
        match directory.read() {
            Some(Ok(entry)) => {
                level.resume = entry.offset();
                if let Some(below) = walk.look_at(directory.fd()?, &entry)? {
                    levels.push(below);
                    let depth = levels.len();
                    if depth > MAX_OPEN
                        && let Some(above) = levels.get_mut(depth - 2)
                    {
                        above.open = None;
                    }
                }
            }
            // The end, or a directory that cannot be read further.
            Some(Err(_)) | None => {
                let left = levels.pop();
                if !reopen(levels.last_mut(), left.as_ref())? {
                    return Ok(walk.changed());
                }
            }
        }
    }
}

/// A directory that the walk is in.
struct Level {
    id: (u64, u64),
    /// None where it was closed because too many are open.
    open: Option<Dir>,
    /// Where to read on.
    resume: i64,
    /// The permissions that it had, if it was closed to its owner.
    closed: Option<Mode>,
}

impl Level {
    /// Enters a directory: the one of this name, or with the name `.` the one of the handle itself.
    fn enter(parent: BorrowedFd<'_>, name: &CStr, found: &Stat) -> Result<Level> {
        let is_ours = found.st_uid == geteuid().as_raw();
        if !is_ours || found.st_mode & LOOK == LOOK {
            let open = Dir::new(openat(parent, name, DIRECTORY, Mode::empty())?)?;
            return Ok(Level { id: id(found), open: Some(open), resume: 0, closed: None });
        }
        let beneath;
        let handle = if name == c"." {
            parent
        } else {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            beneath = openat(parent, name, flags, Mode::empty())?;
            beneath.as_fd()
        };
        // There is no other way to change what a handle like this one is of.
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        let mode = Mode::from_raw_mode(found.st_mode & 0o7777);
        chmod(path, mode | Mode::from_raw_mode(LOOK))?;
        let open = Dir::new(openat(handle, ".", DIRECTORY, Mode::empty())?)?;
        Ok(Level { id: id(found), open: Some(open), resume: 0, closed: Some(mode) })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        if let (Some(mode), Some(directory)) = (self.closed, &self.open)
            && let Ok(directory) = directory.fd()
        {
            // Otherwise it stays open to its owner, which harms nobody.
            let _ = fchmod(directory, mode);
        }
    }
}

/// Opens the directory above one that is done, if it was closed. False if it is not there any more.
fn reopen(above: Option<&mut Level>, left: Option<&Level>) -> Result<bool> {
    let (Some(above), Some(left)) = (above, left) else { return Ok(true) };
    if above.open.is_some() {
        return Ok(true);
    }
    let Some(directory) = &left.open else { return Ok(false) };
    let parent = openat(directory.fd()?, "..", DIRECTORY, Mode::empty())?;
    if id(&fstat(&parent)?) != above.id {
        return Ok(false);
    }
    let mut parent = Dir::new(parent)?;
    parent.seek(above.resume)?;
    above.open = Some(parent);
    Ok(true)
}

struct Walk {
    bytes: u64,
    known: HashSet<(u64, u64)>,
    device: u64,
}

impl Walk {
    /// Counts an entry. Returns the directory that it is, entered.
    fn look_at(&mut self, directory: BorrowedFd<'_>, entry: &rustix::fs::DirEntry) -> Result<Option<Level>> {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            return Ok(None);
        }
        let found = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if found.st_dev == self.device => found,
            Ok(_) | Err(Errno::NOENT) => return Ok(None),
            Err(error) => return self.skip(directory, error),
        };
        self.count(&found);
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            return Ok(None);
        }
        match Level::enter(directory, name, &found) {
            // Another one may have taken its place.
            Ok(mut level) => {
                let now = level.open.as_ref().map(|open| open.stat()).transpose()?;
                let Some(now) = now.filter(|now| now.st_dev == self.device) else { return Ok(None) };
                level.id = id(&now);
                Ok(Some(level))
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(_) if found.st_uid != geteuid().as_raw() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Leaves out what cannot be looked at because its directory is somebody else's, who is not a command.
    fn skip(&self, directory: BorrowedFd<'_>, error: Errno) -> Result<Option<Level>> {
        if fstat(directory)?.st_uid == geteuid().as_raw() { Err(error) } else { Ok(None) }
    }

    fn count(&mut self, found: &Stat) {
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        let has_more_names = found.st_nlink > 1 && !is_directory;
        if !has_more_names || self.known.len() >= MAX_KNOWN || self.known.insert(id(found)) {
            self.bytes += u64::try_from(found.st_blocks).unwrap_or_default() * BLOCK;
        }
    }

    fn changed(&self) -> DiskUsage {
        DiskUsage { bytes: self.bytes, is_complete: false }
    }
}

fn id(found: &Stat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use rustix::fs::CWD;

    use super::*;

    fn usage(path: &std::path::Path) -> DiskUsage {
        let handle = openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        disk_usage(handle, Instant::now() + Duration::from_secs(60)).unwrap()
    }

    #[test]
    fn directories_that_are_closed_to_their_owner_are_measured_and_closed_again() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path();
        let modes = [("top", 0o000), ("top/unreadable", 0o300), ("top/listed", 0o400), ("top/shut", 0o1000)];
        for (name, _) in modes {
            fs::create_dir(path.join(name)).unwrap();
            fs::write(path.join(name).join("file"), vec![1; 1 << 20]).unwrap();
        }
        for (name, mode) in modes.iter().rev() {
            fs::set_permissions(path.join(name), Permissions::from_mode(*mode)).unwrap();
        }
        for found in [usage(path), usage(&path.join("top"))] {
            assert!(found.is_complete && found.bytes >= 4 << 20, "{found:?}");
        }
        for (name, mode) in modes {
            let is = fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o7777;
            assert_eq!(is, mode, "{name}");
            fs::set_permissions(path.join(name), Permissions::from_mode(0o700)).unwrap();
        }
    }

    #[test]
    fn allocated_blocks_count_and_names_of_one_file_once() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path();
        let empty = usage(path).bytes;
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/file"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(path.join("a/b/file"), path.join("a/same")).unwrap();
        File::create(path.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        std::os::unix::fs::symlink("/", path.join("root")).unwrap();
        let grown = usage(path);
        assert!(grown.is_complete);
        let grown = grown.bytes - empty;
        assert!((1 << 20..(1 << 20) + 200_000).contains(&grown), "{grown}");
    }

    #[test]
    fn deep_trees_are_measured_to_their_end_and_siblings_after_them() {
        let home = tempfile::tempdir().unwrap();
        let mut handle = OwnedFd::from(File::open(home.path()).unwrap());
        for level in 0..3000 {
            // Names on both sides of the directory, in whatever order they are read.
            for name in ["a", "z"] {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
                let file = openat(&handle, name, flags, Mode::from_raw_mode(0o600)).unwrap();
                if level % 100 == 0 {
                    rustix::io::write(&file, &[1; 65536]).unwrap();
                }
            }
            rustix::fs::mkdirat(&handle, "d", Mode::from_raw_mode(0o700)).unwrap();
            handle = openat(&handle, "d", DIRECTORY, Mode::empty()).unwrap();
        }
        let usage = usage(home.path());
        assert!(usage.is_complete && usage.bytes >= 30 * 2 * 65536, "{usage:?}");
        crate::remove_tree::remove_tree(home.path(), None).unwrap();
    }
}
