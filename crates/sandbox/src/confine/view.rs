//! A command's own view of the files: what it may see is mounted into an empty root, all else is not there.
//!
//! Everything but its workspace and what the settings let it write is mounted read-only, so that not even permissions,
//! owners and times can be changed. Landlock controls none of these.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use crate::job::Confinement;

/// Where the system's own root is while the view is made.
const OLD: &str = "/.old";
/// Directories over which the new root can be laid. Nobody else sees it.
const BASES: [&str; 4] = ["/tmp", "/run", "/var", "/usr"];
/// Devices that do no harm.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];
const NOTHING: Option<&str> = None;

/// Moves this process into the view that the confinement describes. `terminal` is the path of the command's own.
pub(crate) fn enter(confinement: &Confinement, terminal: Option<&Path>) -> Result<(), String> {
    let failed =
        |what: &str, error: io::Error| format!("a view of the files could not be made: {what}: {error}");
    // What a path leads to is found out before there is another root.
    let sources = sources(confinement);
    start_root().map_err(|error| failed("root", error))?;
    for (link, target) in &confinement.links {
        create_parent(link).and_then(|()| symlink(target, link)).map_err(|error| failed("links", error))?;
    }
    for (source, target) in &sources {
        bind(source, target).map_err(|error| failed(&target.display().to_string(), error))?;
    }
    let terminals = devices(terminal).map_err(|error| failed("/dev", error))?;
    let own_processes = confinement.namespaces.is_some_and(|namespaces| namespaces.processes);
    processes(own_processes).map_err(|error| failed("/proc", error))?;
    umount2(OLD, MntFlags::MNT_DETACH).map_err(|error| failed("unmount", error.into()))?;
    std::fs::remove_dir(OLD).map_err(|error| failed("unmount", error))?;
    let writable = confinement.write.iter().map(PathBuf::as_path).chain([terminals]);
    make_read_only(&writable.collect::<Vec<_>>()).map_err(|error| failed("read-only", error))
}

/// What is to be seen and where it really is. What contains something else comes before it.
fn sources(confinement: &Confinement) -> Vec<(PathBuf, PathBuf)> {
    let paths = confinement.execute.iter().chain(&confinement.read).chain(&confinement.write);
    let paths = paths.filter(|path| path.as_path() != Path::new("/proc"));
    let mut sources: Vec<(PathBuf, PathBuf)> =
        paths.filter_map(|path| Some((path.canonicalize().ok()?, path.clone()))).collect();
    sources.sort_by_key(|(_, target)| target.components().count());
    sources
}

/// Makes an empty root, with the system's own root below it.
fn start_root() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // Nothing that is mounted here is mounted for anybody else.
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)?;
    let base = BASES.iter().map(Path::new).find(|base| base.is_dir()).ok_or(io::ErrorKind::NotFound)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), base, Some("tmpfs"), flags, Some("mode=755,size=1m"))?;
    let old = base.join(OLD.trim_start_matches('/'));
    std::fs::create_dir(&old)?;
    rustix::process::pivot_root(base, &old)?;
    std::env::set_current_dir("/")
}

fn bind(source: &Path, target: &Path) -> io::Result<()> {
    let source = Path::new(OLD).join(source.strip_prefix("/").unwrap_or(source));
    if source.is_dir() {
        std::fs::create_dir_all(target)?;
    } else if !target.exists() {
        create_parent(target)?;
        std::fs::File::create(target)?;
    }
    // With all that is mounted below: a user namespace lets nobody take that away.
    Ok(mount(Some(&source), target, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)?)
}

fn create_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)
}

/// Puts devices in place, and terminals that only this command has. Returns where these are.
fn devices(own: Option<&Path>) -> io::Result<&'static Path> {
    for device in DEVICES.map(Path::new) {
        bind(device, device)?;
    }
    for (link, target) in DEVICE_LINKS {
        symlink(target, link)?;
    }
    // The command's own terminal keeps its name, in a directory in which there is no other.
    let (terminals, multiplexer) = match own {
        Some(own) => {
            bind(own, own)?;
            ("/dev/pty", "pty/ptmx")
        }
        None => ("/dev/pts", "pts/ptmx"),
    };
    std::fs::create_dir_all(terminals)?;
    let options = Some("newinstance,ptmxmode=0666,mode=620");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount(Some("devpts"), terminals, Some("devpts"), flags, options)?;
    symlink(multiplexer, "/dev/ptmx")?;
    Ok(Path::new(terminals))
}

/// What the system says about processes: about the command's alone if they have a namespace.
fn processes(own: bool) -> io::Result<()> {
    std::fs::create_dir("/proc")?;
    if !own {
        return bind(Path::new("/proc"), Path::new("/proc"));
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, NOTHING)?;
    // Not every kernel lets us, and nothing depends on it.
    let _ = number_processes_apart();
    Ok(())
}

/// Has processes numbered in the upper half, from a place that differs from command to command. A number from inside that
/// somebody takes for one of the system's is then hardly ever that of another process.
fn number_processes_apart() -> io::Result<()> {
    let number = |text: &str| text.trim().parse::<u64>().map_err(io::Error::other);
    let half = number(&std::fs::read_to_string("/proc/sys/kernel/pid_max")?)? / 2;
    // The number that this process has outside.
    let outside = number(&std::fs::read_link("/.old/proc/self")?.to_string_lossy())?;
    let first = half + (outside * 16) % half.saturating_sub(1000).max(1);
    std::fs::write("/proc/sys/kernel/ns_last_pid", first.to_string())
}

/// Makes everything read-only but what is at or below these paths.
fn make_read_only(writable: &[&Path]) -> io::Result<()> {
    let mounts = std::fs::read("/proc/self/mountinfo")?;
    for line in mounts.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b' ').skip(4);
        let (Some(point), Some(options)) = (fields.next(), fields.next()) else { continue };
        let point = unescaped(point);
        if writable.iter().any(|path| point.starts_with(path)) {
            continue;
        }
        // Flags that are there must stay.
        let flags = flags(options) | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
        match mount(NOTHING, &point, NOTHING, flags, NOTHING) {
            // Something else lies over it, so that nobody reaches it.
            Ok(()) | Err(nix::Error::ENOENT | nix::Error::ENOTDIR | nix::Error::EACCES) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn flags(options: &[u8]) -> MsFlags {
    let known = |option: &[u8]| match option {
        b"nosuid" => MsFlags::MS_NOSUID,
        b"nodev" => MsFlags::MS_NODEV,
        b"noexec" => MsFlags::MS_NOEXEC,
        b"noatime" => MsFlags::MS_NOATIME,
        b"nodiratime" => MsFlags::MS_NODIRATIME,
        b"relatime" => MsFlags::MS_RELATIME,
        _ => MsFlags::empty(),
    };
    options.split(|byte| *byte == b',').map(known).collect()
}

/// A path as the kernel writes it: spaces, tabs, line ends and backslashes as three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut path = Vec::new();
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if first == b'\\' => {
                path.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            _ => {
                path.push(first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn paths_of_mounts_are_read_as_the_kernel_writes_them() {
        for (text, path) in [("/a\\040b\\134c", "/a b\\c"), ("/plain", "/plain"), ("/x\\04", "/x\\04")] {
            assert_eq!(unescaped(text.as_bytes()), Path::new(path));
        }
        let kept = flags(b"rw,nosuid,noexec,relatime");
        assert_eq!(kept, MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC | MsFlags::MS_RELATIME);
        let bytes = OsString::from_vec(vec![b'/', 0xff]);
        assert_eq!(unescaped(bytes.as_bytes()), PathBuf::from(bytes));
    }
}
