//! What of the system a command sees.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::settings::Settings;

/// Programs and what they need.
const PROGRAMS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/run/current-system",
];

/// What the system says about itself. Landlock keeps what `/proc` tells about processes outside to itself.
pub(super) const READ: &[&str] = &["/proc", "/sys/devices/system", "/sys/fs/cgroup", "/run/systemd/resolve"];

/// Devices that do no harm.
pub(super) const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// What of the files a command sees.
#[derive(Default)]
pub(super) struct Files {
    /// What it may read and execute: programs and what the settings add, without what is hidden.
    pub(super) programs: Vec<PathBuf>,
    /// Directories that hold something of root's: their names may be read, but not what is in them.
    pub(super) listed: Vec<PathBuf>,
    /// Links in directories that hold something hidden, and where they lead.
    pub(super) links: BTreeMap<PathBuf, PathBuf>,
}

impl Files {
    /// `of_root` is what besides is left out.
    pub(super) fn of(settings: &Settings, of_root: &[PathBuf]) -> Files {
        let roots = PROGRAMS.iter().map(PathBuf::from).chain(settings.read.iter().cloned());
        let ours: Vec<PathBuf> = settings.hidden.iter().map(|path| real(path)).collect();
        let mut files = Files::default();
        for root in roots {
            if let Ok(target) = std::fs::read_link(&root) {
                files.links.insert(root.clone(), target);
            }
            // A root may be a link: what matters is where it leads.
            if let Ok(root) = root.canonicalize() {
                files.add(root, &ours, of_root);
            }
        }
        files
    }

    /// Adds `path`, or if something hidden lies below it, everything else below it.
    fn add(&mut self, path: PathBuf, ours: &[PathBuf], of_root: &[PathBuf]) {
        let mut hidden = ours.iter().chain(of_root);
        let is_below = |hidden: &PathBuf| hidden.starts_with(&path);
        if hidden.clone().any(|hidden| path.starts_with(hidden)) {
            return;
        }
        if !hidden.any(is_below) {
            self.programs.push(path);
            return;
        }
        let Ok(entries) = std::fs::read_dir(&path) else { return };
        let mut children: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        children.sort();
        for child in children {
            // A link's target must not be seen because of it.
            match std::fs::read_link(&child) {
                Ok(target) => drop(self.links.insert(child, target)),
                Err(_) => self.add(child, ours, of_root),
            }
        }
        if !ours.iter().any(is_below) {
            self.listed.push(path);
        }
    }
}

/// Where a path leads, if what it names is there or not.
fn real(path: &Path) -> PathBuf {
    let beside = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(beside).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_cut_out_of_what_surrounds_it() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        for path in ["programs", "data/ours", "data/theirs"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        std::os::unix::fs::symlink("programs", root.join("link")).unwrap();
        let files = |path: &str, ours: &[PathBuf], of_root: &[PathBuf]| {
            let mut files = Files::default();
            files.add(root.join(path), ours, of_root);
            files
        };
        let hidden = [root.join("data/ours")];
        let found = files("", &hidden, &[]);
        assert_eq!(found.programs, [root.join("data/theirs"), root.join("programs")]);
        assert_eq!(found.links, [(root.join("link"), "programs".into())].into());
        assert!(found.listed.is_empty());
        assert_eq!(files("programs", &hidden, &[]).programs, [root.join("programs")]);
        assert!(files("data/ours/deep", &hidden, &[]).programs.is_empty());
        // What is root's may be listed, unless something of ours is beside it.
        let of_root = [root.join("programs/private")];
        assert_eq!(files("", &[], &of_root).listed, [root.join("programs"), root.clone()]);
        assert_eq!(files("", &hidden, &of_root).listed, [root.join("programs")]);
    }
}
