//! File systems of our own, where the system allows them.

use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use tempfile::TempDir;

/// A mounted directory. Dropping it takes the mount away.
pub(crate) struct Mount {
    directory: TempDir,
}

impl Mount {
    /// An empty disk of a few bytes; the reason if the system does not allow it.
    pub(crate) fn small_disk(bytes: u64) -> Result<Mount, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let size = format!("size={bytes}");
        mount(Some("none"), directory.path(), Some("tmpfs"), MsFlags::empty(), Some(size.as_str()))
            .map_err(|error| format!("a tmpfs cannot be mounted here: {error}"))?;
        Ok(Mount { directory })
    }

    /// The same files as in `home`, which nobody can change there.
    pub(crate) fn read_only(home: &Path) -> Result<Mount, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let none = None::<&str>;
        let refused = |error| format!("a read-only directory cannot be mounted here: {error}");
        mount(Some(home), directory.path(), none, MsFlags::MS_BIND, none).map_err(refused)?;
        let mounted = Mount { directory };
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(none, mounted.directory.path(), none, flags, none).map_err(refused)?;
        Ok(mounted)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = umount2(self.directory.path(), MntFlags::MNT_DETACH) {
            eprintln!("{} stays mounted: {error}", self.directory.path().display());
        }
    }
}
