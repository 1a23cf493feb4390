//! Skills that agents have learned with users, and their files.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::memory::{LearnedSkill, SkillFile, SkillSummary, UserScope};
use rusqlite::{Connection, Row, ToSql, params};

use super::checksum::{self, Checksum};
use super::columns::{Nanos, Unsigned, failed, unreadable};
use super::{SqliteStore, scopes, statement};
use crate::contract::{SkillStore, SkillWrite};
use crate::error::{Error, Result};

impl SkillStore for SqliteStore {
    fn skills<'a>(&'a self, scope: &'a UserScope) -> BoxFuture<'a, Result<Vec<SkillSummary>>> {
        let scope = scope.clone();
        Box::pin(self.readers().read(move |connection| {
            let what = format!("the skills of {}", scopes::what(&scope));
            list(connection, &scope).map_err(unreadable(connection, what))
        }))
    }

    fn skill<'a>(
        &'a self,
        scope: &'a UserScope,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<LearnedSkill>>> {
        let (scope, name) = (scope.clone(), name.to_owned());
        Box::pin(self.readers().read(move |connection| {
            read(connection, &scope, &name).map_err(unreadable(connection, what(&scope, &name)))
        }))
    }

    fn skill_file<'a>(
        &'a self,
        scope: &'a UserScope,
        name: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        let (scope, name, path) = (scope.clone(), name.to_owned(), path.to_owned());
        Box::pin(self.readers().read(move |connection| {
            file(connection, &scope, &name, &path)
                .map_err(unreadable(connection, format!("{path} of {}", what(&scope, &name))))
        }))
    }

    fn write_skill<'a>(&'a self, scope: &'a UserScope, write: SkillWrite) -> BoxFuture<'a, Result<()>> {
        let scope = scope.clone();
        Box::pin(self.writer().write(move |connection| store(connection, &scope, &write)))
    }

    fn delete_skill<'a>(&'a self, scope: &'a UserScope, name: &'a str) -> BoxFuture<'a, Result<bool>> {
        let (scope, name) = (scope.clone(), name.to_owned());
        Box::pin(self.writer().write(move |connection| {
            delete(connection, &scope, &name).map_err(failed(format!("delete {}", what(&scope, &name))))
        }))
    }
}

fn what(scope: &UserScope, name: &str) -> String {
    format!("skill {name} of {}", scopes::what(scope))
}

/// What is listed of a skill, and what that is checked by.
const LISTED: &str = "name, description, created_at, updated_at, revision, content_checksum, checksum";

fn list(connection: &Connection, scope: &UserScope) -> rusqlite::Result<Vec<SkillSummary>> {
    let Some(key) = scopes::find(connection, scope)? else { return Ok(Vec::new()) };
    let sql = format!("SELECT {LISTED} FROM skills WHERE scope = ? ORDER BY name");
    statement::all(connection, &sql, [key], |row| read_summary(row, scope))
}

/// Reads a row that begins with [`LISTED`], and checks it.
fn read_summary(row: &Row<'_>, scope: &UserScope) -> rusqlite::Result<SkillSummary> {
    checksum::check(row, 6, scopes::checksum(scope)?.columns(row, 0..6)?.finish())?;
    Ok(SkillSummary {
        name: row.get(0)?,
        description: row.get(1)?,
        created_at: row.get::<_, Nanos>(2)?.0,
        updated_at: row.get::<_, Nanos>(3)?.0,
    })
}

fn read(connection: &Connection, scope: &UserScope, name: &str) -> rusqlite::Result<Option<LearnedSkill>> {
    let Some(key) = scopes::find(connection, scope)? else { return Ok(None) };
    let sql = format!("SELECT {LISTED}, content, key FROM skills WHERE scope = ? AND name = ?");
    let found = statement::first(connection, &sql, params![key, name], |row| {
        let (summary, revision) = (read_summary(row, scope)?, row.get::<_, Unsigned>(4)?.0);
        checksum::check(row, 5, Checksum::default().columns(row, 7..8)?.finish())?;
        let skill = LearnedSkill { summary, revision, content: row.get(7)?, files: Vec::new() };
        Ok((skill, row.get::<_, i64>(8)?))
    })?;
    let Some((mut skill, key)) = found else { return Ok(None) };
    let sql =
        "SELECT path, octet_length(content), content_checksum, checksum FROM skill_files WHERE skill = ?
        ORDER BY path";
    skill.files = statement::all(connection, sql, [key], |row| read_file(row, scope, name))?;
    Ok(Some(skill))
}

/// Reads a row that begins with the path, the length and both checksums of a file, and checks it.
fn read_file(row: &Row<'_>, scope: &UserScope, skill: &str) -> rusqlite::Result<SkillFile> {
    checksum::check(row, 3, scopes::checksum(scope)?.values(&[&skill])?.columns(row, 0..3)?.finish())?;
    Ok(SkillFile { path: row.get(0)?, bytes: row.get::<_, Unsigned>(1)?.0 })
}

fn file(
    connection: &Connection,
    scope: &UserScope,
    name: &str,
    path: &str,
) -> rusqlite::Result<Option<String>> {
    let Some(key) = scopes::find(connection, scope)? else { return Ok(None) };
    let sql = "SELECT path, octet_length(content), content_checksum, checksum, content FROM skill_files
        WHERE path = ? AND skill = (SELECT key FROM skills WHERE scope = ? AND name = ?)";
    statement::first(connection, sql, params![path, key, name], |row| {
        read_file(row, scope, name)?;
        checksum::check(row, 2, Checksum::default().columns(row, 4..5)?.finish())?;
        row.get(4)
    })
}

fn store(connection: &Connection, scope: &UserScope, write: &SkillWrite) -> Result<()> {
    let what = || what(scope, &write.name);
    let context = || format!("write {}", what());
    let found = read(connection, scope, &write.name).map_err(unreadable(connection, what()))?;
    let (revision, created_at) = match (found, write.expected_revision) {
        (None, None) => (1, write.at),
        (Some(_), None) => return Err(Error::AlreadyExists { what: what() }),
        (None, Some(_)) => return Err(Error::NotFound { what: what() }),
        (Some(skill), Some(expected)) if skill.revision != expected => {
            return Err(Error::Stale { what: what(), expected, actual: skill.revision });
        }
        (Some(skill), Some(expected)) => (expected + 1, skill.summary.created_at),
    };
    let run = || {
        let key = write_row(connection, scope, write, revision, created_at)?;
        write_files(connection, key, scope, write)
    };
    run().map_err(failed(context()))
}

/// Writes the skill without its files, and returns the key that stands for it.
fn write_row(
    connection: &Connection,
    scope: &UserScope,
    write: &SkillWrite,
    revision: u64,
    created_at: Timestamp,
) -> rusqlite::Result<i64> {
    let SkillWrite { name, description, content, .. } = write;
    let (created_at, updated_at, revision) = (Nanos(created_at), Nanos(write.at), Unsigned(revision));
    let content_checksum = checksum::of(&[content])?;
    let listed: [&dyn ToSql; 6] = [name, description, &created_at, &updated_at, &revision, &content_checksum];
    let checksum = scopes::checksum(scope)?.values(&listed)?.finish();
    let key = scopes::find_or_make(connection, scope)?;
    let sql =
        "INSERT INTO skills (scope, name, description, created_at, updated_at, revision, content_checksum,
            checksum, content)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET description = excluded.description,
            updated_at = excluded.updated_at, revision = excluded.revision, content = excluded.content,
            content_checksum = excluded.content_checksum, checksum = excluded.checksum
        RETURNING key";
    let values = params![
        key,
        name,
        description,
        created_at,
        updated_at,
        revision,
        content_checksum,
        checksum,
        content
    ];
    let key = statement::first(connection, sql, values, |row| row.get(0))?;
    key.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

fn write_files(
    connection: &Connection,
    key: i64,
    scope: &UserScope,
    write: &SkillWrite,
) -> rusqlite::Result<()> {
    for (path, content) in &write.files {
        match content {
            Some(content) => {
                let content_checksum = checksum::of(&[content])?;
                let bytes = Unsigned(u64::try_from(content.len()).unwrap_or(u64::MAX));
                let listed: [&dyn ToSql; 4] = [&write.name, path, &bytes, &content_checksum];
                let checksum = scopes::checksum(scope)?.values(&listed)?.finish();
                let sql = "INSERT INTO skill_files (skill, path, content, content_checksum, checksum)
                    VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET content = excluded.content,
                        content_checksum = excluded.content_checksum, checksum = excluded.checksum";
                statement::execute(connection, sql, params![key, path, content, content_checksum, checksum])?;
            }
            None => {
                let sql = "DELETE FROM skill_files WHERE skill = ? AND path = ?";
                statement::execute(connection, sql, params![key, path])?;
            }
        }
    }
    Ok(())
}

fn delete(connection: &Connection, scope: &UserScope, name: &str) -> rusqlite::Result<bool> {
    let Some(scope) = scopes::find(connection, scope)? else { return Ok(false) };
    let sql = "DELETE FROM skills WHERE scope = ? AND name = ?";
    Ok(statement::execute(connection, sql, params![scope, name])? > 0)
}
