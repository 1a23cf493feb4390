//! Signatures of webhooks, as Standard Webhooks describes them.
//!
//! What is signed is the id, the time of the attempt and the body, so that a receiver can tell a repeated delivery and
//! an old recording from the real thing.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// What a secret begins with.
const PREFIX: &str = "whsec_";
/// How many bytes a key may have.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Signs webhooks with one secret.
#[derive(Clone)]
pub struct Signer {
    mac: Hmac<Sha256>,
}

impl Signer {
    /// The value of the header `webhook-signature`. The time is in seconds since 1970.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut mac = self.mac.clone();
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
    }

    /// Signs with a key as it is, without the form that people share.
    pub fn from_key(key: &[u8; 32]) -> Self {
        // HMAC fills a key that is shorter than a block with zeros.
        let mut block = [0; 64];
        block[..key.len()].copy_from_slice(key);
        Signer { mac: KeyInit::new(&block.into()) }
    }

    /// Another key, which tells nothing about the secret that it is derived from.
    pub fn derive(&self, label: &str) -> [u8; 32] {
        let mut mac = self.mac.clone();
        mac.update(label.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

/// A secret with this key, as it is shared with receivers.
pub fn secret(key: &[u8; 32]) -> SecretString {
    SecretString::from(format!("{PREFIX}{}", BASE64.encode(key)))
}

impl TryFrom<&SecretString> for Signer {
    type Error = InvalidSecret;

    fn try_from(secret: &SecretString) -> Result<Self, InvalidSecret> {
        secret.expose_secret().parse()
    }
}

impl FromStr for Signer {
    type Err = InvalidSecret;

    fn from_str(text: &str) -> Result<Self, InvalidSecret> {
        let key = text.strip_prefix(PREFIX).and_then(|key| BASE64.decode(key).ok());
        let key = key.filter(|key| KEY_BYTES.contains(&key.len())).ok_or(InvalidSecret)?;
        let mac = Hmac::new_from_slice(&key).map_err(|_| InvalidSecret)?;
        Ok(Signer { mac })
    }
}

/// A secret that nothing can be signed with. It is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be {PREFIX} and the base64 of 24 to 64 bytes")]
pub struct InvalidSecret;

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example that the libraries of Standard Webhooks test themselves with.
    #[test]
    fn a_signature_is_that_of_other_libraries() {
        let signer: Signer = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let signature =
            signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_key_signs_like_the_secret_that_holds_it() {
        let shared: Signer = secret(&[7; 32]).expose_secret().parse().unwrap();
        assert_eq!(Signer::from_key(&[7; 32]).sign("a", 1, b"x"), shared.sign("a", 1, b"x"));
    }

    #[test]
    fn a_signature_covers_id_time_and_body() {
        let signer: Signer = secret(&[7; 32]).expose_secret().parse().unwrap();
        let signature = signer.sign("evt_a_1", 5, b"{}");
        assert_eq!(signer.sign("evt_a_1", 5, b"{}"), signature);
        for (id, timestamp, body) in [("evt_a_2", 5, b"{}"), ("evt_a_1", 6, b"{}"), ("evt_a_1", 5, b"[]")] {
            assert_ne!(signer.sign(id, timestamp, body), signature);
        }
    }

    #[test]
    fn secrets_that_sign_nothing_are_refused_and_not_repeated() {
        for secret in
            ["", "whsec_", "whsec_c2hvcnQ=", "c2hvcnQ", "whsec_%%%", "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
        {
            assert_eq!(secret.parse::<Signer>().unwrap_err(), InvalidSecret, "{secret}");
        }
    }
}
