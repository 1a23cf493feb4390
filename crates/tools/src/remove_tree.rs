//! Removes a directory with everything in it, however deep or wide it is and whatever happens there meanwhile.
//!
//! Nothing is reached by a path: each directory is opened by its name in the handle of the one above, through no link.
//! A directory two levels down that is not empty is moved up into the top, so that no more than three handles are open
//! and nothing is remembered. The tree itself says what is left to do, so the work can stop at any moment.

use std::cell::Cell;
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, renameat, unlinkat};
use rustix::io::{Errno, Result};

/// Everything that the owner of a directory may do with it.
const OWNER: u32 = 0o700;

/// How far a removal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RemovalProgress {
    /// Nothing is left.
    #[default]
    Removed,
    /// The time was up first. Go on by removing it again.
    OutOfTime,
}

/// Removes the file, link or directory at `path` with everything in it, as far as that is done by `deadline`. A path
/// where nothing is needs no removing. Links are removed, never followed, and other file systems are left alone. This
/// blocks.
///
/// # Errors
/// What cannot be removed, after everything else was. A directory to which something is added meanwhile is
/// [`io::ErrorKind::DirectoryNotEmpty`].
pub fn remove_tree(path: &Path, deadline: Option<Instant>) -> io::Result<RemovalProgress> {
    let Some(name) = path.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = match openat(CWD, parent, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(RemovalProgress::Removed),
        parent => parent?,
    };
    match unlinkat(&parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(RemovalProgress::Removed),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let Some(top) = Top::open(&parent, name, deadline)? else { return Ok(RemovalProgress::Removed) };
    let progress = top.empty()?;
    if progress == RemovalProgress::Removed {
        removed(unlinkat(&parent, name, AtFlags::REMOVEDIR))?;
    }
    Ok(progress)
}

/// The directory that everything below is moved into before it goes.
struct Top {
    handle: OwnedFd,
    device: u64,
    deadline: Option<Instant>,
    /// Tell apart what is moved here.
    run: String,
    moves: Cell<u64>,
}

/// What one look at all entries of the top came to.
#[derive(Default)]
struct Pass {
    entries: usize,
    /// How many names went, and how many directories moved up.
    changes: usize,
    first_error: Option<Errno>,
    out_of_time: bool,
}

impl Pass {
    fn note(&mut self, done: Result<()>) {
        match done {
            Ok(()) => self.changes += 1,
            Err(Errno::NOENT) => {}
            Err(error) => _ = self.first_error.get_or_insert(error),
        }
    }
}

impl Top {
    fn open(parent: impl AsFd, name: &OsStr, deadline: Option<Instant>) -> Result<Option<Self>> {
        let handle = match open_child(parent.as_fd(), name) {
            Err(Errno::NOENT) => return Ok(None),
            handle => handle?,
        };
        let device = fstat(&handle)?.st_dev;
        let run = uuid::Uuid::now_v7().simple().to_string();
        Ok(Some(Top { handle, device, deadline, run, moves: Cell::new(0) }))
    }

    /// Removes everything in it.
    fn empty(&self) -> Result<RemovalProgress> {
        loop {
            let pass = self.pass()?;
            if pass.out_of_time {
                return Ok(RemovalProgress::OutOfTime);
            }
            if pass.entries == 0 {
                return Ok(RemovalProgress::Removed);
            }
            if pass.changes == 0 {
                return Err(pass.first_error.unwrap_or(Errno::NOTEMPTY));
            }
        }
    }

    fn pass(&self) -> Result<Pass> {
        let mut pass = Pass::default();
        for_each(self.handle.as_fd(), |name, kind| {
            pass.entries += 1;
            if kind == FileType::Directory || kind == FileType::Unknown {
                let emptied = self.remove_child(name, &mut pass);
                pass.note(emptied);
            } else {
                pass.note(unlinkat(&self.handle, name, AtFlags::empty()));
            }
            pass.out_of_time |= self.is_over();
            !pass.out_of_time
        })?;
        Ok(pass)
    }

    /// Removes a directory of the top. Directories in it that are not empty are moved beside it.
    fn remove_child(&self, name: &CStr, pass: &mut Pass) -> Result<()> {
        match remove(self.handle.as_fd(), name) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS) => {}
            done => return done,
        }
        let child = open_child(self.handle.as_fd(), name)?;
        if fstat(&child)?.st_dev != self.device {
            // What is mounted here belongs to somebody else.
            return Err(Errno::BUSY);
        }
        for_each(child.as_fd(), |inner, kind| {
            let done = match kind {
                FileType::Directory | FileType::Unknown => self.remove_or_move(&child, inner),
                _ => unlinkat(&child, inner, AtFlags::empty()),
            };
            pass.note(done);
            pass.out_of_time |= self.is_over();
            !pass.out_of_time
        })?;
        unlinkat(&self.handle, name, AtFlags::REMOVEDIR)
    }

    fn remove_or_move(&self, child: &OwnedFd, name: &CStr) -> Result<()> {
        match remove(child.as_fd(), name) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS) => {}
            done => return done,
        }
        let number = self.moves.replace(self.moves.get() + 1);
        let to = format!(".removed-{}-{number}", self.run);
        let moved = || renameat(child, name, &self.handle, to.as_str());
        match moved() {
            // Only who may write to a directory may move it elsewhere.
            Err(Errno::ACCESS) => {
                unlock(child.as_fd(), name)?;
                moved()
            }
            done => done,
        }
    }

    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Removes a name, whatever it is.
fn remove(directory: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    match unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTDIR) => unlinkat(directory, name, AtFlags::empty()),
        done => done,
    }
}

fn removed(done: Result<()>) -> Result<()> {
    if done == Err(Errno::NOENT) { Ok(()) } else { done }
}

/// Calls `each` with the entries of a directory until it returns false.
fn for_each(directory: BorrowedFd<'_>, mut each: impl FnMut(&CStr, FileType) -> bool) -> Result<()> {
    let mut entries = Dir::read_from(directory)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") && !each(name, entry.file_type()) {
            break;
        }
    }
    Ok(())
}

/// Opens a directory, and gives its owner the right to change it: there are programs that take that away.
fn open_child(parent: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let child = match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            unlock(parent, name)?;
            openat(parent, name, flags, Mode::empty())?
        }
        child => child?,
    };
    if fstat(&child)?.st_mode & OWNER != OWNER {
        rustix::fs::fchmod(&child, Mode::from_raw_mode(OWNER))?;
    }
    Ok(child)
}

/// Gives the owner of a directory all rights. It need not be readable, and a link is not followed: the handle names the
/// directory itself, and the kernel takes its rights by that.
fn unlock(parent: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let child = openat(parent, name, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", child.as_raw_fd());
    rustix::fs::chmod(path, Mode::from_raw_mode(OWNER))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::Duration;

    use super::*;

    /// Makes directories in each other, by handle: no path is that long.
    fn nest(top: &Path, levels: usize) {
        let mut handle = OwnedFd::from(fs::File::open(top).unwrap());
        for level in 0..levels {
            rustix::fs::mkdirat(&handle, "d", Mode::from_raw_mode(0o700)).unwrap();
            if level % 1000 == 0 {
                rustix::fs::symlinkat("/", &handle, "root").unwrap();
            }
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
            handle = openat(&handle, "d", flags, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn deep_wide_and_locked_trees_are_removed_and_links_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (top, kept) = (home.path().join("top"), home.path().join("kept"));
        fs::create_dir_all(top.join("locked/below/empty")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        symlink(&kept, top.join("link")).unwrap();
        symlink(kept.join("file"), top.join("locked/below/link")).unwrap();
        for number in 0..1000 {
            fs::write(top.join("locked/below").join(number.to_string()), "x").unwrap();
            fs::create_dir_all(top.join("wide").join(number.to_string()).join("inner")).unwrap();
        }
        nest(&top, 5_000);
        for (path, mode) in [("locked/below/empty", 0o000), ("locked/below", 0o500), ("locked", 0o000)] {
            fs::set_permissions(top.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        assert_eq!(remove_tree(&top, None).unwrap(), RemovalProgress::Removed);
        assert!(!top.exists());
        assert!(kept.join("file").exists());
        assert_eq!(remove_tree(&top, None).unwrap(), RemovalProgress::Removed, "nothing is left to remove");
    }

    #[test]
    fn a_removal_goes_on_where_the_last_one_stopped() {
        let home = tempfile::tempdir().unwrap();
        let top = home.path().join("top");
        fs::create_dir(&top).unwrap();
        nest(&top, 200);
        let mut tries = 0;
        while remove_tree(&top, Some(Instant::now())).unwrap() == RemovalProgress::OutOfTime {
            tries += 1;
        }
        assert!(!top.exists() && tries > 10, "{tries}");
    }

    #[test]
    fn a_link_or_a_file_in_place_of_a_directory_is_removed_itself() {
        let home = tempfile::tempdir().unwrap();
        let kept = home.path().join("kept");
        fs::create_dir_all(kept.join("inner")).unwrap();
        let link = home.path().join("link");
        symlink(&kept, &link).unwrap();
        remove_tree(&link, None).unwrap();
        assert!(link.symlink_metadata().is_err() && kept.join("inner").exists());
        fs::write(&link, "x").unwrap();
        remove_tree(&link, Some(Instant::now() + Duration::from_secs(60))).unwrap();
        assert!(!link.exists());
    }

    #[test]
    fn directories_that_become_links_meanwhile_lead_nowhere() {
        let home = tempfile::tempdir().unwrap();
        let kept = home.path().join("kept");
        for number in 0..50 {
            fs::create_dir_all(kept.join(number.to_string())).unwrap();
        }
        let top = home.path().join("top");
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    // Any of these may fail: the other thread removes them.
                    let _ = fs::create_dir_all(top.join("a/b"));
                    let _ = fs::rename(top.join("a/b"), top.join("c"));
                    let _ = symlink(&kept, top.join("a/b"));
                    let _ = symlink(&kept, top.join("d"));
                    let _ = fs::rename(top.join("d"), top.join("a"));
                }
            });
            for _ in 0..300 {
                // It may be told that something was added meanwhile.
                let _ = remove_tree(&top, None);
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let is_kept = |number: &usize| kept.join(number.to_string()).exists();
        assert!((0..50).all(|number| is_kept(&number)), "something was removed through a link");
    }
}
