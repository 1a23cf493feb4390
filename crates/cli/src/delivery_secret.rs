//! The secret that the credentials of deliveries follow from, kept in the home unless the configuration gives one.

use std::fs;
use std::io::ErrorKind;

use anyhow::{Context, Result};
use petasos_net::webhook::{self, Signer};
use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

use crate::home::Home;
use crate::private_file;

/// The home's secret, which is made if there is none.
pub(crate) fn read(home: &Home) -> Result<SecretString> {
    let path = home.delivery_secret();
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let secret = webhook::secret(&random_key());
            let text = format!("{}\n", secret.expose_secret());
            private_file::write(&path, &text)
                .with_context(|| format!("cannot keep the secret of deliveries in {}", path.display()))?;
            text
        }
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot read the secret of deliveries in {}", path.display()));
        }
    };
    let secret = SecretString::from(text.trim());
    Signer::try_from(&secret).with_context(|| {
        format!(
            "the secret of deliveries in {} cannot be used; put it back, or remove the file and the next start makes a \
             new one, which receivers must be told",
            path.display()
        )
    })?;
    Ok(secret)
}

/// Two random UUIDs are 244 random bits from the system's generator.
fn random_key() -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(Uuid::new_v4().as_bytes());
    key[16..].copy_from_slice(Uuid::new_v4().as_bytes());
    key
}
