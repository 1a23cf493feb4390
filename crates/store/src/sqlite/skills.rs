//! Skills that agents have learned with users, and their files.

use futures_util::future::BoxFuture;
use petasos_core::memory::{LearnedSkill, SkillFile, SkillSummary, UserScope};
use rusqlite::{Connection, Row, params};

use super::columns::{Nanos, Unsigned, failed};
use super::{SqliteStore, scopes, statement};
use crate::contract::{SkillStore, SkillWrite};
use crate::error::{Error, Result};

impl SkillStore for SqliteStore {
    fn skills<'a>(&'a self, scope: &'a UserScope) -> BoxFuture<'a, Result<Vec<SkillSummary>>> {
        let scope = scope.clone();
        Box::pin(self.readers().read(move |connection| {
            list(connection, &scope).map_err(failed(format!("list the skills of {}", scopes::what(&scope))))
        }))
    }

    fn skill<'a>(
        &'a self,
        scope: &'a UserScope,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<LearnedSkill>>> {
        let (scope, name) = (scope.clone(), name.to_owned());
        Box::pin(self.readers().read(move |connection| {
            read(connection, &scope, &name).map_err(failed(format!("read {}", what(&scope, &name))))
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
                .map_err(failed(format!("read {path} of {}", what(&scope, &name))))
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

fn list(connection: &Connection, scope: &UserScope) -> rusqlite::Result<Vec<SkillSummary>> {
    let Some(scope) = scopes::find(connection, scope)? else { return Ok(Vec::new()) };
    let sql = "SELECT name, description, created_at, updated_at FROM skills WHERE scope = ? ORDER BY name";
    statement::all(connection, sql, [scope], read_summary)
}

/// Reads a row that begins with what is listed.
fn read_summary(row: &Row<'_>) -> rusqlite::Result<SkillSummary> {
    Ok(SkillSummary {
        name: row.get(0)?,
        description: row.get(1)?,
        created_at: row.get::<_, Nanos>(2)?.0,
        updated_at: row.get::<_, Nanos>(3)?.0,
    })
}

fn read(connection: &Connection, scope: &UserScope, name: &str) -> rusqlite::Result<Option<LearnedSkill>> {
    let Some(scope) = scopes::find(connection, scope)? else { return Ok(None) };
    let sql = "SELECT name, description, created_at, updated_at, revision, content, key FROM skills
        WHERE scope = ? AND name = ?";
    let found = statement::first(connection, sql, params![scope, name], |row| {
        let revision = row.get::<_, Unsigned>(4)?.0;
        let skill =
            LearnedSkill { summary: read_summary(row)?, revision, content: row.get(5)?, files: Vec::new() };
        Ok((skill, row.get::<_, i64>(6)?))
    })?;
    let Some((mut skill, key)) = found else { return Ok(None) };
    let sql = "SELECT path, octet_length(content) FROM skill_files WHERE skill = ? ORDER BY path";
    skill.files = statement::all(connection, sql, [key], |row| {
        Ok(SkillFile { path: row.get(0)?, bytes: row.get::<_, Unsigned>(1)?.0 })
    })?;
    Ok(Some(skill))
}

fn file(
    connection: &Connection,
    scope: &UserScope,
    name: &str,
    path: &str,
) -> rusqlite::Result<Option<String>> {
    let Some(scope) = scopes::find(connection, scope)? else { return Ok(None) };
    let sql = "SELECT content FROM skill_files WHERE path = ?
        AND skill = (SELECT key FROM skills WHERE scope = ? AND name = ?)";
    statement::first(connection, sql, params![path, scope, name], |row| row.get(0))
}

fn store(connection: &Connection, scope: &UserScope, write: &SkillWrite) -> Result<()> {
    let what = || what(scope, &write.name);
    let context = || format!("write {}", what());
    let scope = scopes::find_or_make(connection, scope).map_err(failed(context()))?;
    let sql = "SELECT key, revision FROM skills WHERE scope = ? AND name = ?";
    let read_row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Unsigned>(1)?.0));
    let found = statement::first(connection, sql, params![scope, write.name], read_row);
    let key = match (found.map_err(failed(context()))?, write.expected_revision) {
        (None, None) => insert(connection, scope, write),
        (Some(_), None) => return Err(Error::AlreadyExists { what: what() }),
        (None, Some(_)) => return Err(Error::NotFound { what: what() }),
        (Some((_, actual)), Some(expected)) if actual != expected => {
            return Err(Error::Stale { what: what(), expected, actual });
        }
        (Some((key, _)), Some(_)) => update(connection, key, write),
    };
    let key = key.map_err(failed(context()))?;
    write_files(connection, key, &write.files).map_err(failed(context()))
}

fn insert(connection: &Connection, scope: i64, write: &SkillWrite) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO skills (scope, name, description, content, revision, created_at, updated_at)
        VALUES (?1, ?2, ?3, ?4, 1, ?5, ?5)";
    let values = params![scope, write.name, write.description, write.content, Nanos(write.at)];
    statement::execute(connection, sql, values)?;
    Ok(connection.last_insert_rowid())
}

fn update(connection: &Connection, key: i64, write: &SkillWrite) -> rusqlite::Result<i64> {
    let sql = "UPDATE skills SET description = ?, content = ?, updated_at = ?, revision = revision + 1
        WHERE key = ?";
    let values = params![write.description, write.content, Nanos(write.at), key];
    statement::execute(connection, sql, values)?;
    Ok(key)
}

fn write_files(
    connection: &Connection,
    key: i64,
    files: &[(String, Option<String>)],
) -> rusqlite::Result<()> {
    for (path, content) in files {
        match content {
            Some(content) => {
                let sql = "INSERT INTO skill_files (skill, path, content) VALUES (?, ?, ?)
                    ON CONFLICT DO UPDATE SET content = excluded.content";
                statement::execute(connection, sql, params![key, path, content])?;
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
