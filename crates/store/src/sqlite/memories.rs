//! Notes that agents keep for users: one row for each scope.

use futures_util::future::BoxFuture;
use petasos_core::memory::{Memories, MemoryEntry, UserScope};
use rusqlite::{Connection, params};

use super::columns::{Json, Unsigned, failed, json, unreadable};
use super::{SqliteStore, checksum, scopes, statement};
use crate::contract::MemoryStore;
use crate::error::{Error, Result};

impl MemoryStore for SqliteStore {
    fn memories<'a>(&'a self, scope: &'a UserScope) -> BoxFuture<'a, Result<Memories>> {
        let scope = scope.clone();
        Box::pin(
            self.readers().read(move |connection| {
                read(connection, &scope).map_err(unreadable(connection, what(&scope)))
            }),
        )
    }

    fn replace_memories<'a>(
        &'a self,
        scope: &'a UserScope,
        expected_revision: u64,
        entries: Vec<MemoryEntry>,
    ) -> BoxFuture<'a, Result<()>> {
        let scope = scope.clone();
        Box::pin(
            self.writer().write(move |connection| replace(connection, &scope, expected_revision, &entries)),
        )
    }
}

fn read(connection: &Connection, scope: &UserScope) -> rusqlite::Result<Memories> {
    let Some(key) = scopes::find(connection, scope)? else { return Ok(Memories::default()) };
    let sql = "SELECT revision, entries, checksum FROM memories WHERE scope = ?";
    let found = statement::first(connection, sql, [key], |row| {
        checksum::check(row, 2, scopes::checksum(scope)?.columns(row, 0..2)?.finish())?;
        Ok(Memories { revision: row.get::<_, Unsigned>(0)?.0, entries: row.get::<_, Json<_>>(1)?.0 })
    })?;
    Ok(found.unwrap_or_default())
}

fn replace(connection: &Connection, scope: &UserScope, expected: u64, entries: &[MemoryEntry]) -> Result<()> {
    let actual = read(connection, scope).map_err(unreadable(connection, what(scope)))?.revision;
    if actual != expected {
        return Err(Error::Stale { what: what(scope), expected, actual });
    }
    let write = || {
        let sql = "INSERT INTO memories (scope, revision, entries, checksum) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE
            SET revision = excluded.revision, entries = excluded.entries, checksum = excluded.checksum";
        let key = scopes::find_or_make(connection, scope)?;
        let (revision, entries) = (Unsigned(expected + 1), json(&entries)?);
        let checksum = scopes::checksum(scope)?.values(&[&revision, &entries])?.finish();
        statement::execute(connection, sql, params![key, revision, entries, checksum])
    };
    write().map(drop).map_err(failed(format!("write {}", what(scope))))
}

fn what(scope: &UserScope) -> String {
    format!("the memories of {}", scopes::what(scope))
}
