//! `server.json`: where the running server is, for the commands that want to talk to it.
//!
//! The file only counts while the database is in use: the server that wrote it may have been killed, and whoever
//! opens the database next removes what that one left behind.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::private_file;

/// Whose the server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Owner {
    /// Nobody's: `petasos serve` runs it for everybody.
    #[default]
    Serve,
    /// A chat's, with which it ends.
    Chat,
}

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerFile {
    /// Where the server is.
    pub(crate) url: String,
    /// Its process.
    pub(crate) pid: u32,
    /// The database that it has open.
    pub(crate) database: PathBuf,
    /// Its admin key, if that is kept nowhere else. Only the owner may read this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// Whose it is.
    #[serde(default)]
    pub(crate) owner: Owner,
}

impl ServerFile {
    /// Reads the file; none if there is none.
    pub(crate) fn read(home: &Home) -> Result<Option<ServerFile>> {
        let path = home.server();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let file = serde_json::from_str(&text);
        file.map(Some).with_context(|| format!("{} cannot be used; remove it", path.display()))
    }

    /// Says where this process serves. `key` is the admin key if it is kept nowhere else.
    pub(crate) fn write(
        home: &Home,
        url: String,
        database: &Path,
        key: Option<String>,
        owner: Owner,
    ) -> Result<()> {
        let file = ServerFile { url, pid: std::process::id(), database: database.to_owned(), key, owner };
        let path = home.server();
        private_file::write(&path, &serde_json::to_string(&file)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Removes what a server left behind that was killed. Only for the process that has `database` open: whoever
    /// wrote that it has that database open is gone.
    pub(crate) fn remove_stale(home: &Home, database: &Path) -> Result<()> {
        match ServerFile::read(home) {
            Ok(Some(other)) if other.database != database => Ok(()),
            _ => remove(home),
        }
    }

    /// Removes the file if this process wrote it. To be called before the database is closed: afterwards the file
    /// may be somebody else's.
    pub(crate) fn remove_own(home: &Home) -> Result<()> {
        match ServerFile::read(home)? {
            Some(file) if file.pid == std::process::id() => remove(home),
            _ => Ok(()),
        }
    }
}

fn remove(home: &Home) -> Result<()> {
    let path = home.server();
    private_file::remove(&path).with_context(|| format!("cannot remove {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Environment;

    #[test]
    fn only_what_is_stale_or_ours_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::find(Some(directory.path()), &Environment::default()).unwrap();
        ServerFile::write(&home, "http://here".to_owned(), Path::new("/a.db"), None, Owner::Serve).unwrap();
        ServerFile::remove_stale(&home, Path::new("/b.db")).unwrap();
        assert_eq!(ServerFile::read(&home).unwrap().unwrap().url, "http://here");
        ServerFile::remove_stale(&home, Path::new("/a.db")).unwrap();
        assert_eq!(ServerFile::read(&home).unwrap(), None);

        std::fs::write(home.server(), r#"{"url":"http://there","pid":0,"database":"/a.db"}"#).unwrap();
        ServerFile::remove_own(&home).unwrap();
        assert!(home.server().exists());
        std::fs::write(home.server(), "{").unwrap();
        ServerFile::remove_stale(&home, Path::new("/a.db")).unwrap();
        assert!(!home.server().exists());
    }
}
