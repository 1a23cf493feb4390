//! The directory that everything of one installation is kept in.

use std::fs::DirBuilder;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::env::{self, Environment};

/// The home directory of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    path: PathBuf,
}

impl Home {
    /// Finds the home: `--data-dir`, else `$PETASOS_HOME`, else `~/.petasos`. Makes nothing.
    pub(crate) fn find(data_dir: Option<&Path>, environment: &Environment) -> Result<Home> {
        let named = data_dir.map(Path::to_owned).or_else(|| environment.path(env::HOME));
        let usual = || environment.user_home().map(|home| home.join(".petasos"));
        let Some(path) = named.or_else(usual) else {
            bail!("there is no home directory to keep data in; name one with --data-dir or PETASOS_HOME");
        };
        // What is printed and written down must hold in every working directory.
        let path = std::path::absolute(&path).with_context(|| format!("find {}", path.display()))?;
        Ok(Home { path })
    }

    /// Makes the directory, for its owner only, unless it is there.
    pub(crate) fn create(&self) -> Result<()> {
        create_private(&self.path)
    }

    /// Makes the directory in which hooks may keep logs, unless it is there.
    pub(crate) fn create_logs(&self) -> Result<()> {
        create_private(&self.path.join("logs"))
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration file.
    pub(crate) fn config(&self) -> PathBuf {
        self.path.join("config.yaml")
    }

    /// The database.
    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("petasos.db")
    }

    /// The directory with backups.
    pub(crate) fn backups(&self) -> PathBuf {
        self.path.join("backups")
    }

    /// The file with the admin key.
    pub(crate) fn admin_key(&self) -> PathBuf {
        self.path.join("admin.key")
    }

    /// The file with the secret that deliveries are signed with.
    pub(crate) fn delivery_secret(&self) -> PathBuf {
        self.path.join("delivery.secret")
    }

    /// The directory with agents as files.
    pub(crate) fn agents(&self) -> PathBuf {
        self.path.join("agents")
    }

    /// The directory with routines as files.
    pub(crate) fn routines(&self) -> PathBuf {
        self.path.join("routines")
    }

    /// The directory with the workspaces of agents.
    pub(crate) fn workspaces(&self) -> PathBuf {
        self.path.join("workspaces")
    }

    /// The directory with skills that agents are configured with.
    pub(crate) fn skills(&self) -> PathBuf {
        self.path.join("skills")
    }

    /// The file that remembers which commands may run as hooks.
    pub(crate) fn hook_allowlist(&self) -> PathBuf {
        self.path.join("shell-hooks-allowlist.json")
    }

    /// The directory with plugins.
    pub(crate) fn plugins(&self) -> PathBuf {
        self.path.join("plugins")
    }

    /// The directory with gateway hooks.
    pub(crate) fn hooks(&self) -> PathBuf {
        self.path.join("hooks")
    }

    /// The directory where scripts of hooks are kept by convention.
    fn agent_hooks(&self) -> PathBuf {
        self.path.join("agent-hooks")
    }

    /// The file that says where the running server is.
    pub(crate) fn server(&self) -> PathBuf {
        self.path.join("server.json")
    }

    /// Everything that has a meaning for the server, but for the workspaces, which are there for agents.
    pub(crate) fn own(&self) -> [PathBuf; 13] {
        [
            self.config(),
            self.database(),
            self.backups(),
            self.admin_key(),
            self.delivery_secret(),
            self.agents(),
            self.routines(),
            self.skills(),
            self.hook_allowlist(),
            self.plugins(),
            self.hooks(),
            self.agent_hooks(),
            self.server(),
        ]
    }
}

/// Makes a directory for its owner only, unless it is there.
fn create_private(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).with_context(|| format!("cannot create {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_wins_over_the_environment() {
        let environment = Environment::from([(env::HOME, "/from/env")]);
        let home = Home::find(Some(Path::new("/from/flag")), &environment).unwrap();
        assert_eq!(home.path(), Path::new("/from/flag"));
        assert_eq!(Home::find(None, &environment).unwrap().path(), Path::new("/from/env"));
        assert!(Home::find(None, &Environment::default()).is_err());
    }
}
