//! API keys: made, checked, revoked. Only hashes are kept.

use petasos_core::ids::{KeyId, TenantId};
use petasos_core::key::{KeyRecord, KeyScope};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::engine::{Engine, now};
use crate::error::{Error, Result};

/// What a key is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// The tenant that it opens.
    pub tenant: TenantId,
    /// What its owner calls it.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<KeyScope>,
}

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The tenant that the request works in.
    pub tenant: TenantId,
    /// What the caller may do.
    pub scopes: Vec<KeyScope>,
}

impl Caller {
    /// Whether the caller may do what `scope` names.
    pub fn may(&self, scope: KeyScope) -> bool {
        self.is_admin() || self.scopes.contains(&scope)
    }

    /// Whether the caller may do everything, in every tenant.
    pub fn is_admin(&self) -> bool {
        self.scopes.contains(&KeyScope::Admin)
    }
}

impl Engine {
    /// Makes a key and returns it with its record. The key itself is shown this once.
    pub async fn create_key(&self, new: NewKey) -> Result<(String, KeyRecord)> {
        if new.scopes.is_empty() {
            let problem = "must name at least one scope".to_owned();
            return Err(Error::Invalid { field: "scopes".to_owned(), problem });
        }
        let key = new_key();
        let record = KeyRecord {
            id: KeyId::from_uuid(Uuid::now_v7()),
            tenant: new.tenant,
            name: new.name,
            scopes: new.scopes,
            hash: hash_key(&key),
            created_at: now(),
            revoked_at: None,
        };
        self.shared.store.create_key(record.clone()).await?;
        Ok((key, record))
    }

    /// All keys, of one tenant or of all, newest first.
    pub async fn keys(&self, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>> {
        Ok(self.shared.store.keys(tenant).await?)
    }

    /// Revokes a key: it opens nothing from now on.
    pub async fn revoke_key(&self, id: &KeyId) -> Result<()> {
        self.shared.store.revoke_key(id, now()).await.map_err(|error| match error {
            petasos_store::Error::NotFound { .. } => Error::NotFound { kind: "key", id: id.to_string() },
            error => error.into(),
        })
    }

    /// Who a key belongs to; none if it opens nothing.
    pub async fn authenticate(&self, key: &str) -> Result<Option<Caller>> {
        let record = self.shared.store.key_by_hash(&hash_key(key)).await?;
        let valid = record.filter(|record| record.revoked_at.is_none());
        Ok(valid.map(|record| Caller { tenant: record.tenant, scopes: record.scopes }))
    }
}

/// A new random key.
pub fn new_key() -> String {
    // Two random UUIDs are 244 random bits from the system's generator.
    format!("pk_{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// What is kept of a key. A key has full entropy, so a plain hash cannot be reversed by guessing.
pub fn hash_key(key: &str) -> String {
    use std::fmt::Write;
    Sha256::digest(key.as_bytes()).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
