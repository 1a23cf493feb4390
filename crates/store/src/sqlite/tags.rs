//! Tags, and what bears them.

use futures_util::future::BoxFuture;
use petasos_core::customer::Tag;
use petasos_core::ids::TenantId;
use rusqlite::{Connection, Row, params};

use super::checksum::{self, Checksum};
use super::columns::{failed, unreadable};
use super::{SqliteStore, statement};
use crate::contract::{Bearer, TagStore};
use crate::error::{Error, Result};

/// What the ids of tags start with; their keys follow.
const TAG: &str = "tag_";

impl TagStore for SqliteStore {
    fn tags<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Vec<Tag>>> {
        let tenant = tenant.clone();
        let read = move |connection: &Connection| {
            let sql = "SELECT tenant, name, checksum, key FROM tags WHERE tenant = ? ORDER BY key";
            let read_row = |row: &Row<'_>| {
                checksum::check(row, 2, Checksum::default().columns(row, 0..2)?.finish())?;
                Ok(Tag { id: format!("{TAG}{}", row.get::<_, i64>(3)?), name: row.get(1)? })
            };
            statement::all(connection, sql, [tenant.as_str()], read_row)
                .map_err(unreadable(connection, "a tag"))
        };
        Box::pin(self.readers().read(read))
    }

    fn create_tag<'a>(&'a self, tenant: &'a TenantId, name: &'a str) -> BoxFuture<'a, Result<Tag>> {
        let (tenant, name) = (tenant.clone(), name.to_owned());
        let write = move |connection: &Connection| {
            refuse_taken(connection, &tenant, &name, None)?;
            let run = || {
                let checksum = checksum::of(&[&tenant.as_str(), &name])?;
                // By the time, so that an id does not tell how many tags other tenants have.
                let sql = "INSERT INTO tags (key, tenant, name, checksum)
                    SELECT max(CAST(unixepoch('subsec') * 1000 AS INTEGER), coalesce(max(key), 0) + 1), ?, ?, ?
                    FROM tags";
                statement::execute(connection, sql, params![tenant.as_str(), name, checksum])?;
                Ok(connection.last_insert_rowid())
            };
            let key = run().map_err(failed::<rusqlite::Error>(format!("create the tag {name}")))?;
            Ok(Tag { id: format!("{TAG}{key}"), name })
        };
        Box::pin(self.writer().write(write))
    }

    fn rename_tag<'a>(&'a self, tenant: &'a TenantId, tag: Tag) -> BoxFuture<'a, Result<bool>> {
        let tenant = tenant.clone();
        let write = move |connection: &Connection| {
            let Some(key) = key_of(&tag.id) else { return Ok(false) };
            refuse_taken(connection, &tenant, &tag.name, Some(key))?;
            let run = || {
                let checksum = checksum::of(&[&tenant.as_str(), &tag.name])?;
                let sql = "UPDATE tags SET name = ?, checksum = ? WHERE key = ? AND tenant = ?";
                statement::execute(connection, sql, params![tag.name, checksum, key, tenant.as_str()])
            };
            Ok(run().map_err(failed(format!("change the tag {}", tag.id)))? > 0)
        };
        Box::pin(self.writer().write(write))
    }

    fn delete_tag<'a>(&'a self, tenant: &'a TenantId, id: &'a str) -> BoxFuture<'a, Result<bool>> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        let write = move |connection: &Connection| {
            let Some(key) = key_of(&id) else { return Ok(false) };
            let run = || {
                let sql = "DELETE FROM tagged WHERE tenant = ? AND tag = ?";
                statement::execute(connection, sql, params![tenant.as_str(), id])?;
                let sql = "DELETE FROM tags WHERE key = ? AND tenant = ?";
                statement::execute(connection, sql, params![key, tenant.as_str()])
            };
            Ok(run().map_err(failed(format!("delete the tag {id}")))? > 0)
        };
        Box::pin(self.writer().write(write))
    }

    fn change_tags<'a>(
        &'a self,
        tenant: &'a TenantId,
        (kind, id): (Bearer, &'a str),
        add: Vec<String>,
        remove: Vec<String>,
    ) -> BoxFuture<'a, Result<()>> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        let write = move |connection: &Connection| {
            change(connection, &tenant, (kind, &id), &add, &remove).map_err(failed(format!("tag {id}")))
        };
        Box::pin(self.writer().write(write))
    }

    fn tags_of<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: Bearer,
        ids: Vec<String>,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>>> {
        let tenant = tenant.clone();
        let read = move |connection: &Connection| {
            let mut found = Vec::new();
            for id in &ids {
                let sql = "SELECT tenant, kind, id, tag, checksum FROM tagged
                    WHERE tenant = ? AND kind = ? AND id = ? ORDER BY tag";
                let read_row = |row: &Row<'_>| {
                    checksum::check(row, 4, Checksum::default().columns(row, 0..4)?.finish())?;
                    Ok((row.get(2)?, row.get(3)?))
                };
                let tags =
                    statement::all(connection, sql, params![tenant.as_str(), kind.as_str(), id], read_row);
                found.extend(tags.map_err(unreadable(connection, format!("a tag of {id}")))?);
            }
            Ok(found)
        };
        Box::pin(self.readers().read(read))
    }
}

/// Takes all tags away from something that goes.
pub(super) fn forget(
    connection: &Connection,
    tenant: &TenantId,
    (kind, id): (Bearer, &str),
) -> rusqlite::Result<()> {
    let sql = "DELETE FROM tagged WHERE tenant = ? AND kind = ? AND id = ?";
    statement::execute(connection, sql, params![tenant.as_str(), kind.as_str(), id]).map(drop)
}

fn change(
    connection: &Connection,
    tenant: &TenantId,
    (kind, id): (Bearer, &str),
    add: &[String],
    remove: &[String],
) -> rusqlite::Result<()> {
    let (tenant, kind) = (tenant.as_str(), kind.as_str());
    for tag in remove {
        let sql = "DELETE FROM tagged WHERE tenant = ? AND kind = ? AND id = ? AND tag = ?";
        statement::execute(connection, sql, params![tenant, kind, id, tag])?;
    }
    for tag in add {
        let checksum = checksum::of(&[&tenant, &kind, &id, tag])?;
        let sql = "INSERT INTO tagged (tenant, kind, id, tag, checksum) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT DO NOTHING";
        statement::execute(connection, sql, params![tenant, kind, id, tag, checksum])?;
    }
    Ok(())
}

fn refuse_taken(connection: &Connection, tenant: &TenantId, name: &str, but: Option<i64>) -> Result<()> {
    let sql = "SELECT key FROM tags WHERE tenant = ? AND name = ?";
    let found: Option<i64> =
        statement::first(connection, sql, params![tenant.as_str(), name], |row| row.get(0))
            .map_err(failed("find a tag"))?;
    match found {
        Some(key) if Some(key) != but => Err(Error::AlreadyExists { what: format!("a tag named {name}") }),
        _ => Ok(()),
    }
}

fn key_of(id: &str) -> Option<i64> {
    id.strip_prefix(TAG)?.parse().ok()
}
