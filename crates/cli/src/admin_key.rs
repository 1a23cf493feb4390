//! The admin key: given by the environment, or kept in the home.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};
use secrecy::{ExposeSecret, SecretString};

use crate::env::{self, Environment};
use crate::home::Home;
use crate::private_file;

/// Where an admin key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// `PETASOS_API_KEY`.
    Environment,
    /// `admin.key`, which was there.
    File,
    /// Made just now.
    New,
}

/// An admin key and where it comes from.
#[derive(Debug, Clone)]
pub(crate) struct AdminKey {
    /// The key.
    pub(crate) key: SecretString,
    /// Where it comes from.
    pub(crate) source: Source,
}

impl AdminKey {
    /// The key that there is: the environment's, else that of `admin.key`; none if there is neither.
    pub(crate) fn find(home: &Home, environment: &Environment) -> Result<Option<AdminKey>> {
        if let Some(key) = environment.secret(env::API_KEY)? {
            check(&key).with_context(|| format!("{} cannot be used", env::API_KEY))?;
            return Ok(Some(AdminKey { key, source: Source::Environment }));
        }
        let path = home.admin_key();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let cure = format!(
                    "cannot read the admin key in {}; let this user read it, or set {}",
                    path.display(),
                    env::API_KEY
                );
                return Err(error).context(cure);
            }
        };
        let key = SecretString::from(text.trim());
        check(&key).with_context(|| {
            format!(
                "the admin key in {} cannot be used; put the key back, or remove the file and the next \
                 `petasos serve` makes a new one",
                path.display()
            )
        })?;
        warn_if_open(&path);
        Ok(Some(AdminKey { key, source: Source::File }))
    }

    /// A new random key, which is not kept anywhere yet.
    pub(crate) fn make() -> AdminKey {
        AdminKey { key: SecretString::from(petasos_engine::new_key()), source: Source::New }
    }

    /// Keeps a new key in the home, for the owner only. A key that came from elsewhere stays where it is.
    pub(crate) fn keep(&self, home: &Home) -> Result<()> {
        if self.source != Source::New {
            return Ok(());
        }
        let path = home.admin_key();
        private_file::write(&path, &format!("{}\n", self.key.expose_secret()))
            .with_context(|| format!("cannot keep the admin key in {}", path.display()))
    }
}

/// Warns if others than the owner may read the key.
#[cfg(unix)]
fn warn_if_open(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    if fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0) {
        tracing::warn!("others can read the admin key; run: chmod 600 {}", path.display());
    }
}

#[cfg(not(unix))]
fn warn_if_open(_path: &Path) {}

/// Says why a key could not be sent in a header, without repeating it.
fn check(key: &SecretString) -> Result<()> {
    let key = key.expose_secret();
    if key.is_empty() {
        bail!("it is empty");
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("it has characters other than letters, digits and signs, which cannot be sent in a header");
    }
    Ok(())
}
