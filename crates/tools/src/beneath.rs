//! Opens what lies beneath a directory, by its handle and through no link.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

/// No link at the end, no waiting for a pipe's other side, no new controlling terminal.
const ALWAYS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// Opens a directory. The path has only names of directories.
pub(crate) fn open_directory(handle: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    open(handle, path, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// Opens a regular file to read it. Anything else is an error of the kind `InvalidInput`.
pub(crate) fn open_regular_file(handle: impl AsFd, path: &Path) -> io::Result<std::fs::File> {
    let file = open(handle, path, OFlags::RDONLY).map_err(|error| match error.raw_os_error() {
        // A link, and a socket.
        Some(code) if code == Errno::LOOP.raw_os_error() || code == Errno::NXIO.raw_os_error() => {
            not_regular()
        }
        _ => error,
    })?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file.into()),
        _ => Err(not_regular()),
    }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")
}

fn open(handle: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(&handle, path, flags | ALWAYS, Mode::empty(), resolve) {
        // Kernels before 5.6, and sandboxes that do not know the call, resolve the path here.
        Err(Errno::NOSYS | Errno::PERM) => open_by_parts(handle, path, flags),
        // Something above was renamed while the kernel resolved `..`, of which there is none here, or a mount changed.
        Err(Errno::AGAIN) => open_by_parts(handle, path, flags),
        opened => Ok(opened?),
    }
}

fn open_by_parts(handle: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | ALWAYS;
    let mut parts = path.components().filter(|part| *part != Component::CurDir).peekable();
    let mut current = openat(handle, ".", directory, Mode::empty())?;
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(io::Error::from_raw_os_error(Errno::XDEV.raw_os_error()));
        };
        let flags = if parts.peek().is_some() { directory } else { flags | ALWAYS };
        current = openat(&current, name, flags, Mode::empty())?;
    }
    Ok(current)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    type Open = fn(&fs::File, &Path, OFlags) -> io::Result<OwnedFd>;

    #[test]
    fn no_link_is_followed_and_nothing_above_is_opened() {
        let home = tempfile::tempdir().unwrap();
        let below = home.path().join("below");
        fs::create_dir_all(below.join("a/b")).unwrap();
        fs::write(below.join("a/b/file"), "x").unwrap();
        fs::write(home.path().join("secret"), "x").unwrap();
        symlink("a", below.join("inner")).unwrap();
        symlink("../..", below.join("a/outer")).unwrap();
        symlink("b/file", below.join("a/link")).unwrap();
        let handle = fs::File::open(&below).unwrap();
        for open in [(|handle, path, flags| open(handle, path, flags)) as Open, |handle, path, flags| {
            open_by_parts(handle, path, flags)
        }] {
            for path in ["a/b/file", "./a/./b/file"] {
                open(&handle, path.as_ref(), OFlags::RDONLY).unwrap();
            }
            for path in
                ["inner/b/file", "a/outer/secret", "a/link", "../secret", "a/../../secret", "/etc/passwd"]
            {
                assert!(open(&handle, path.as_ref(), OFlags::RDONLY).is_err(), "{path}");
            }
        }
    }

    #[test]
    fn only_regular_files_are_opened() {
        let home = tempfile::tempdir().unwrap();
        let handle = fs::File::open(home.path()).unwrap();
        rustix::fs::mkfifoat(&handle, "pipe", Mode::from_raw_mode(0o600)).unwrap();
        fs::create_dir(home.path().join("directory")).unwrap();
        symlink("/dev/zero", home.path().join("zero")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(home.path().join("socket")).unwrap();
        for name in ["pipe", "directory", "zero", "socket"] {
            let opened = open_regular_file(&handle, name.as_ref());
            assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        drop(socket);
        let missing = open_regular_file(&handle, "missing".as_ref());
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
