//! Finds and opens the database.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use petasos_store::sqlite::{Options, SqliteStore};

use crate::home::Home;

/// Where the database is: at `--database-url`, else in the home.
pub(crate) fn path(url: Option<&str>, home: &Home) -> Result<PathBuf> {
    let Some(url) = url else {
        return Ok(home.database());
    };
    let Some(path) = url.strip_prefix("sqlite:").map(|rest| rest.strip_prefix("//").unwrap_or(rest)) else {
        // The URL may hold a password, so only its scheme is repeated.
        let scheme = url.split_once(':').map_or("this", |(scheme, _)| scheme);
        bail!(
            "--database-url: {scheme} cannot be used. Only the embedded store exists in this release: \
             leave the flag out, or write sqlite:PATH"
        );
    };
    if path.is_empty() {
        bail!(
            "--database-url: the path is missing; write sqlite:PATH, for example sqlite:/var/lib/petasos.db"
        );
    }
    std::path::absolute(path).with_context(|| format!("find {path}"))
}

/// Opens the database without blocking the runtime.
pub(crate) async fn open(path: PathBuf) -> Result<Result<SqliteStore, petasos_store::Error>> {
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(Options::new(path)));
    opened.await.context("open the database")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::env::Environment;

    #[test]
    fn only_the_embedded_store_is_accepted() {
        let home = Home::find(Some(Path::new("/home")), &Environment::default()).unwrap();
        assert_eq!(path(None, &home).unwrap(), Path::new("/home/petasos.db"));
        assert_eq!(path(Some("sqlite:/a/b.db"), &home).unwrap(), Path::new("/a/b.db"));
        assert_eq!(path(Some("sqlite:///a/b.db"), &home).unwrap(), Path::new("/a/b.db"));
        assert!(path(Some("sqlite:"), &home).is_err());
        let problem = path(Some("postgres://u:secret@h/d"), &home).unwrap_err().to_string();
        assert!(problem.contains("Only the embedded store exists in this release"), "{problem}");
        assert!(!problem.contains("secret"), "{problem}");
    }
}
