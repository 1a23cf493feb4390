//! API keys.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::ids::{KeyId, TenantId};
use petasos_core::key::KeyRecord;
use rusqlite::{Connection, Row, params};

use super::columns::{Json, Nanos, Parsed, failed, nanos, time};
use super::{SqliteStore, statement};
use crate::contract::KeyStore;
use crate::error::{Error, Result};

const COLUMNS: &str = "id, tenant, name, scopes, hash, created_at, revoked_at";

impl KeyStore for SqliteStore {
    fn create_key(&self, key: KeyRecord) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer().write(move |connection| create(connection, &key)))
    }

    fn key_by_hash<'a>(&'a self, hash: &'a str) -> BoxFuture<'a, Result<Option<KeyRecord>>> {
        let hash = hash.to_owned();
        Box::pin(self.readers().read(move |connection| by_hash(connection, &hash)))
    }

    fn keys<'a>(&'a self, tenant: Option<&'a TenantId>) -> BoxFuture<'a, Result<Vec<KeyRecord>>> {
        let tenant = tenant.cloned();
        Box::pin(self.readers().read(move |connection| list(connection, tenant.as_ref())))
    }

    fn revoke_key<'a>(&'a self, id: &'a KeyId, at: Timestamp) -> BoxFuture<'a, Result<()>> {
        let id = id.clone();
        Box::pin(self.writer().write(move |connection| revoke(connection, &id, at)))
    }
}

fn what(id: &KeyId) -> String {
    format!("key {id}")
}

fn create(connection: &Connection, key: &KeyRecord) -> Result<()> {
    let sql = format!("INSERT INTO keys ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
    let values = params![
        key.id.as_str(),
        key.tenant.as_str(),
        key.name,
        Json(&key.scopes),
        key.hash,
        Nanos(key.created_at),
        nanos(key.revoked_at),
    ];
    match statement::execute(connection, &sql, values).map_err(failed(format!("create {}", what(&key.id))))? {
        0 => Err(Error::AlreadyExists { what: what(&key.id) }),
        _ => Ok(()),
    }
}

fn by_hash(connection: &Connection, hash: &str) -> Result<Option<KeyRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM keys WHERE hash = ?");
    statement::first(connection, &sql, [hash], read_row).map_err(failed("look up a key"))
}

fn list(connection: &Connection, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM keys WHERE ?1 IS NULL OR tenant = ?1 ORDER BY created_at DESC, id DESC"
    );
    statement::all(connection, &sql, params![tenant.map(TenantId::as_str)], read_row)
        .map_err(failed("list keys"))
}

fn revoke(connection: &Connection, id: &KeyId, at: Timestamp) -> Result<()> {
    let sql = "UPDATE keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?";
    match statement::execute(connection, sql, params![Nanos(at), id.as_str()])
        .map_err(failed(format!("revoke {}", what(id))))?
    {
        0 => Err(Error::NotFound { what: what(id) }),
        _ => Ok(()),
    }
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<KeyRecord> {
    Ok(KeyRecord {
        id: row.get::<_, Parsed<_>>(0)?.0,
        tenant: row.get::<_, Parsed<_>>(1)?.0,
        name: row.get(2)?,
        scopes: row.get::<_, Json<_>>(3)?.0,
        hash: row.get(4)?,
        created_at: row.get::<_, Nanos>(5)?.0,
        revoked_at: time(row.get(6)?),
    })
}
