//! API keys.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::ids::{KeyId, TenantId};
use petasos_core::key::KeyRecord;
use rusqlite::{Connection, Row, params};

use super::checksum::{self, Checksum};
use super::columns::{Json, Nanos, Parsed, failed, json, nanos, time, unreadable};
use super::{SqliteStore, statement};
use crate::contract::KeyStore;
use crate::error::{Error, Result};

const COLUMNS: &str = "id, tenant, name, scopes, hash, created_at, revoked_at, checksum";

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
    match insert(connection, key).map_err(failed(format!("create {}", what(&key.id))))? {
        0 => Err(Error::AlreadyExists { what: what(&key.id) }),
        _ => Ok(()),
    }
}

fn insert(connection: &Connection, key: &KeyRecord) -> rusqlite::Result<usize> {
    let sql = format!("INSERT INTO keys ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
    let (id, tenant, scopes) = (key.id.as_str(), key.tenant.as_str(), json(&key.scopes)?);
    let (created_at, revoked_at) = (Nanos(key.created_at), nanos(key.revoked_at));
    let fixed = checksum::of(&[&id, &tenant, &key.name, &scopes, &key.hash, &created_at])?;
    let checksum = fixed + checksum::of_time(revoked_at)?;
    let values = params![id, tenant, key.name, scopes, key.hash, created_at, revoked_at, checksum];
    statement::execute(connection, &sql, values)
}

fn by_hash(connection: &Connection, hash: &str) -> Result<Option<KeyRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM keys WHERE hash = ?");
    statement::first(connection, &sql, [hash], read_row).map_err(unreadable(connection, "a key"))
}

fn list(connection: &Connection, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM keys WHERE ?1 IS NULL OR tenant = ?1 ORDER BY created_at DESC, id DESC"
    );
    statement::all(connection, &sql, params![tenant.map(TenantId::as_str)], read_row)
        .map_err(unreadable(connection, "a key of the list"))
}

fn revoke(connection: &Connection, id: &KeyId, at: Timestamp) -> Result<()> {
    let run = || {
        let sql =
            "UPDATE keys SET revoked_at = ?, checksum = checksum + ? WHERE id = ? AND revoked_at IS NULL";
        let at = Nanos(at);
        statement::execute(connection, sql, params![at, checksum::of_time(Some(at))?, id.as_str()])?;
        statement::first(connection, "SELECT 1 FROM keys WHERE id = ?", [id.as_str()], |_| Ok(()))
    };
    let found = run().map_err(failed::<rusqlite::Error>(format!("revoke {}", what(id))))?;
    found.ok_or_else(|| Error::NotFound { what: what(id) })
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<KeyRecord> {
    let fixed = Checksum::default().columns(row, 0..6)?.finish();
    checksum::check(row, 7, fixed + checksum::of_time(row.get(6)?)?)?;
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
