//! Notes that agents keep for users: one row for each scope.

use futures_util::future::BoxFuture;
use petasos_core::memory::{Memories, MemoryEntry, UserScope};
use rusqlite::{Connection, params};

use super::columns::{Json, Unsigned, failed};
use super::{SqliteStore, scopes, statement};
use crate::contract::MemoryStore;
use crate::error::{Error, Result};

impl MemoryStore for SqliteStore {
    fn memories<'a>(&'a self, scope: &'a UserScope) -> BoxFuture<'a, Result<Memories>> {
        let scope = scope.clone();
        Box::pin(self.readers().read(move |connection| {
            read(connection, &scope).map_err(failed(format!("read the memories of {}", scopes::what(&scope))))
        }))
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
    let sql = "SELECT revision, entries FROM memories WHERE scope = ?";
    let found = statement::first(connection, sql, [key], |row| {
        Ok(Memories { revision: row.get::<_, Unsigned>(0)?.0, entries: row.get::<_, Json<_>>(1)?.0 })
    })?;
    Ok(found.unwrap_or_default())
}

fn replace(connection: &Connection, scope: &UserScope, expected: u64, entries: &[MemoryEntry]) -> Result<()> {
    let context = || format!("write the memories of {}", scopes::what(scope));
    let actual = read(connection, scope).map_err(failed(context()))?.revision;
    if actual != expected {
        return Err(Error::Stale {
            what: format!("the memories of {}", scopes::what(scope)),
            expected,
            actual,
        });
    }
    let write = || {
        let sql = "INSERT INTO memories (scope, revision, entries) VALUES (?, ?, ?)
            ON CONFLICT DO UPDATE SET revision = excluded.revision, entries = excluded.entries";
        let key = scopes::find_or_make(connection, scope)?;
        statement::execute(connection, sql, params![key, Unsigned(expected + 1), Json(entries)])
    };
    write().map(drop).map_err(failed(context()))
}
