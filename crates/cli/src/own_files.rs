//! What is the server's own must not lie where commands of agents write. It is cut out of what they read, but what
//! they write is given to them whole: the kernel's rules only ever add.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use petasos_sandbox::Settings;

use crate::home::Home;

/// Refuses settings that let commands change the configuration, the database or what the home is there for.
pub(crate) fn refuse_writable(settings: &Settings, home: &Home, database: &[PathBuf]) -> Result<()> {
    let of_home = home.own();
    let own = || settings.hidden.iter().chain(&of_home).chain(database);
    for write in &settings.write {
        let place = real(write);
        let touches = |path: &Path| path.starts_with(&place) || place.starts_with(path);
        // Who can replace a link needs not reach what it leads to.
        if let Some(own) = own().find(|own| touches(&real(own)) || touches(&itself(own))) {
            bail!(
                "sandbox.write has {}, where commands of agents could read and change {}, which is the server's own; \
                 take it out or name a directory without the server's files, or keep these elsewhere (--data-dir, \
                 --config, --database-url)",
                write.display(),
                own.display()
            );
        }
    }
    Ok(())
}

/// Where a path leads, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    there
        .and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?)))
        .unwrap_or_else(|| path.to_owned())
}

/// Where a path is, if it is a link or not.
fn itself(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Environment;

    #[test]
    fn what_holds_or_is_in_something_of_ours_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("home/plugins")).unwrap();
        std::fs::create_dir(root.join("etc")).unwrap();
        std::fs::create_dir(root.join("data")).unwrap();
        std::fs::write(root.join("data/real.yaml"), "").unwrap();
        std::os::unix::fs::symlink(root.join("data/real.yaml"), root.join("etc/config.yaml")).unwrap();
        std::os::unix::fs::symlink(root.join("home"), root.join("link")).unwrap();
        let home = Home::find(Some(&root.join("home")), &Environment::default()).unwrap();
        let refused = |write: &str| {
            let (write, hidden) = (vec![root.join(write)], vec![root.join("etc/config.yaml")]);
            let settings = Settings { write, hidden, ..Settings::default() };
            refuse_writable(&settings, &home, &[root.join("db/p.db")]).is_err()
        };
        for write in
            ["", "home", "home/plugins/mine", "link", "etc", "data", "db", "db/p.db", "home/admin.key"]
        {
            assert!(refused(write), "{write:?}");
        }
        for write in ["other", "home/shared", "home/workspaces", "db/p", "data/more"] {
            assert!(!refused(write), "{write:?}");
        }
    }
}
