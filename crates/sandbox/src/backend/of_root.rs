//! What below `/etc` is not there for everybody: passwords and private keys. The commands of a server that runs as root
//! own it, those of another may have it by their group, so nothing but our leaving it out keeps them from it.

use std::collections::VecDeque;
use std::fs::{DirEntry, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::visible::SYSTEM_SETTINGS;

/// How much is looked at for each command, which takes some milliseconds. Most systems have a tenth of it.
const MOST: usize = 10_000;

/// What others may not read of what commands may see of `/etc`. It is looked for again for each command: such a file may
/// be made at any time.
pub(super) fn find() -> Vec<PathBuf> {
    let seen = SYSTEM_SETTINGS.iter().map(|name| Path::new("/etc").join(name));
    below(seen.collect(), MOST)
}

/// What at or below these paths others may not read. Links are not followed: where one leads is no business of this place.
fn below(paths: Vec<PathBuf>, most: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = most;
    // What lies deep is looked at last.
    let mut directories = VecDeque::new();
    for path in paths {
        match std::fs::symlink_metadata(&path).map(|metadata| look_at(&metadata)) {
            Ok(Entry::OfRoot) => found.push(path),
            Ok(Entry::Directory) => directories.push_back(path),
            Ok(Entry::Other) | Err(_) => {}
        }
    }
    while let Some(directory) = directories.pop_front() {
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) if left > 0 => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            // What nobody has looked at might be anything.
            _ => {
                found.push(directory);
                continue;
            }
        };
        for entry in entries.flatten() {
            if left == 0 {
                found.push(directory);
                break;
            }
            left -= 1;
            match look_at_entry(&entry) {
                Entry::OfRoot => found.push(entry.path()),
                Entry::Directory => directories.push_back(entry.path()),
                Entry::Other => {}
            }
        }
    }
    found
}

enum Entry {
    OfRoot,
    Directory,
    Other,
}

fn look_at_entry(entry: &DirEntry) -> Entry {
    // Half of it is links, and what they are is known without a look at each.
    if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
        return Entry::Other;
    }
    match entry.metadata() {
        Ok(metadata) => look_at(&metadata),
        Err(error) if error.kind() == ErrorKind::NotFound => Entry::Other,
        Err(_) => Entry::OfRoot,
    }
}

fn look_at(metadata: &Metadata) -> Entry {
    match metadata.permissions().mode() & 0o004 {
        _ if metadata.is_symlink() => Entry::Other,
        0 => Entry::OfRoot,
        _ if metadata.is_dir() => Entry::Directory,
        _ => Entry::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_others_may_not_read_is_found_at_any_depth() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for (path, mode) in [("shadow", 0o640), ("hosts", 0o644), ("a/b/c/key", 0o600), ("a/b/cert", 0o644)] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir_all(root.join("private/below")).unwrap();
        fs::set_permissions(root.join("private"), fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink("..", root.join("a/around")).unwrap();
        let names = |most: usize| {
            let mut found = below(vec![root.to_owned()], most);
            found.sort();
            found
                .into_iter()
                .map(|path| path.strip_prefix(root).unwrap().display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(MOST), ["a/b/c/key", "private", "shadow"]);
        // What is beyond the bound is left out as a whole.
        assert_eq!(names(4), ["a", "private", "shadow"]);
        fs::remove_file(root.join("shadow")).unwrap();
        assert_eq!(names(MOST), ["a/b/c/key", "private"]);
    }
}
