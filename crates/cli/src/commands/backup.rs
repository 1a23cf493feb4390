//! `petasos backup`.
//!
//! The server writes the copy to its own disk. Where that is this machine's, the copy is moved to where it was asked
//! for; it is never sent over the network.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Format;
use crate::api::{Api, path};
use crate::private_file;
use crate::table::{field, plain};

/// Makes a backup, and moves it to `file` if that is given.
pub(crate) async fn run(api: &Api, file: Option<PathBuf>, format: Format) -> Result<()> {
    if let Some(file) = file.as_deref().filter(|file| file.exists() && !file.is_dir()) {
        bail!("{} exists already; name a file that is not there yet, or a directory", file.display());
    }
    if let Some(file) = file.as_deref().filter(|file| names_directory(file) && !file.is_dir()) {
        bail!("there is no directory {}", file.display());
    }
    if let Some(parent) =
        file.as_deref().and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty())
        && !parent.is_dir()
    {
        bail!("there is no directory {}", parent.display());
    }
    let mut backup = api.post_long(&path(&["backup"])).await?;
    if let Some(file) = file {
        let made = PathBuf::from(field(&backup, "path"));
        if !(api.is_local() && made.is_file()) {
            bail!(
                "the backup is {} on the server's machine, which cannot be reached from here; fetch it from there",
                plain(&made.display().to_string())
            );
        }
        let file = if file.is_dir() { file.join(made.file_name().unwrap_or_default()) } else { file };
        let file = std::path::absolute(&file).with_context(|| format!("find {}", file.display()))?;
        move_to(&made, &file).with_context(|| {
            format!("the backup is at {}, and cannot be moved to {}", made.display(), file.display())
        })?;
        backup["path"] = json!(file.display().to_string());
    }
    format.show(&backup, text)
}

/// Whether a path says that it is a directory, there or not.
fn names_directory(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn text(backup: &Value) -> String {
    format!("{}  {} bytes", plain(&field(backup, "path")), field(backup, "bytes"))
}

/// Moves a file without ever replacing another one. Nobody sees a part of it under its new name.
fn move_to(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) => {}
        // It is on another disk, or on one without links.
        Err(_) => copy(from, to)?,
    }
    private_file::sync_parent(to)?;
    fs::remove_file(from)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let new = private_file::beside(to);
    let copied = copy_to_new(from, &new).and_then(|()| match to.exists() {
        true => Err(io::ErrorKind::AlreadyExists.into()),
        false => fs::rename(&new, to),
    });
    if copied.is_err() {
        // What matters is why it failed.
        let _ = private_file::remove(&new);
    }
    copied
}

fn copy_to_new(from: &Path, new: &Path) -> io::Result<()> {
    // A crash may have left one behind.
    private_file::remove(new)?;
    let mut target = private_file::create_new(new)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_to_another_disk_replaces_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::write(&from, "a backup").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "a backup");
        fs::write(&to, "mine").unwrap();
        assert!(copy(&from, &to).is_err() && move_to(&from, &to).is_err());
        assert_eq!(fs::read_to_string(&to).unwrap(), "mine");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
