//! What of the system a command sees.

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

/// What a command may read and execute: programs and what the settings add, without what is hidden.
pub(super) fn programs(settings: &Settings) -> Vec<PathBuf> {
    let roots = PROGRAMS.iter().map(PathBuf::from).chain(settings.read.iter().cloned());
    // A root may be a link: what matters is where it leads.
    let roots = roots.filter_map(|root| root.canonicalize().ok());
    let hidden: Vec<PathBuf> =
        settings.hidden.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect();
    roots.flat_map(|root| without(root, &hidden)).collect()
}

/// Those of them that are links, such as `/bin`, with where they lead.
pub(super) fn links() -> impl Iterator<Item = (&'static str, PathBuf)> {
    PROGRAMS.iter().filter_map(|&root| Some((root, std::fs::read_link(root).ok()?)))
}

/// `root`, or if something hidden lies below it, everything else below it.
fn without(root: PathBuf, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if hidden.iter().any(|hidden| root.starts_with(hidden)) {
        return Vec::new();
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(&root)) {
        return vec![root];
    }
    children(&root).into_iter().flat_map(|child| without(child, hidden)).collect()
}

fn children(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    // A link needs no rule of its own, and its target must not get one by it.
    let real = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    let mut children: Vec<PathBuf> = real.map(|entry| entry.path()).collect();
    children.sort();
    children
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
        let hidden = [root.join("data/ours")];
        assert_eq!(without(root.clone(), &hidden), [root.join("data/theirs"), root.join("programs")]);
        assert_eq!(without(root.join("programs"), &hidden), [root.join("programs")]);
        assert!(without(root.join("data/ours/deep"), &hidden).is_empty());
    }
}
