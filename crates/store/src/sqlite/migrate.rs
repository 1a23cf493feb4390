//! Brings a database to the schema that this release knows.
//!
//! A migration that has been released is never edited; a change of the schema is a new file at the end of the
//! list.

use rusqlite::Connection;

/// Marks a file as a Petasos database (`Peta` in ASCII).
pub(super) const APPLICATION_ID: u32 = 0x5065_7461;

/// The migrations in order; the first one makes version 1.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/001_start.sql"),
    include_str!("migrations/002_memory.sql"),
    include_str!("migrations/003_checksums.sql"),
    include_str!("migrations/004_usage.sql"),
    include_str!("migrations/005_deliveries.sql"),
    include_str!("migrations/006_expiry.sql"),
    include_str!("migrations/007_kept_checksums.sql"),
    include_str!("migrations/008_customers.sql"),
    include_str!("migrations/009_routines.sql"),
    include_str!("migrations/010_amendments.sql"),
    include_str!("migrations/011_tags.sql"),
    include_str!("migrations/012_recovery.sql"),
];

/// The schema that all migrations make, as `schema` lists it. Making it takes longer than the rest of a start.
const NEWEST_SCHEMA: &str = include_str!("migrations/schema.json");

/// The version that this release writes.
pub(super) fn known_version() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// The version of an open database.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Runs every migration that is missing up to `target`, each in a transaction of its own, and says whether
/// there was any.
pub(super) fn migrate(connection: &Connection, target: u32) -> rusqlite::Result<bool> {
    let start = version(connection)?;
    for (number, sql) in (1u32..=target).zip(MIGRATIONS) {
        if number > start {
            connection.execute_batch(&format!(
                "BEGIN IMMEDIATE;\nPRAGMA application_id = {APPLICATION_ID};\n{sql}\n\
                 PRAGMA user_version = {number};\nCOMMIT;"
            ))?;
        }
    }
    Ok(start < target)
}

/// Everything that a database of this version contains, as `(type, name, sql)`.
pub(super) fn expected_schema(version: u32) -> rusqlite::Result<Vec<(String, String, String)>> {
    if version == known_version()
        && let Ok(newest) = serde_json::from_str(NEWEST_SCHEMA)
    {
        return Ok(newest);
    }
    made_schema(version)
}

/// The same, found out by running the migrations.
fn made_schema(version: u32) -> rusqlite::Result<Vec<(String, String, String)>> {
    let fresh = Connection::open_in_memory()?;
    migrate(&fresh, version)?;
    schema(&fresh)
}

/// Everything that an open database contains, as `(type, name, sql)`.
pub(super) fn schema(connection: &Connection) -> rusqlite::Result<Vec<(String, String, String)>> {
    connection
        .prepare("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY name")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_run_once() {
        let connection = Connection::open_in_memory().unwrap();
        assert!(migrate(&connection, known_version()).unwrap());
        assert_eq!(version(&connection).unwrap(), known_version());
        assert!(!migrate(&connection, known_version()).unwrap());
        assert_eq!(schema(&connection).unwrap(), expected_schema(known_version()).unwrap());
    }

    /// `UPDATE=1` writes the list again, after a new migration.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test is told by it to write the file")]
    fn the_listed_schema_is_what_the_migrations_make() {
        let made = serde_json::to_string_pretty(&made_schema(known_version()).unwrap()).unwrap() + "\n";
        if std::env::var("UPDATE").is_ok() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sqlite/migrations/schema.json"), &made)
                .unwrap();
            return;
        }
        assert!(
            made == NEWEST_SCHEMA,
            "schema.json is old; run UPDATE=1 cargo test -p petasos-store migrate"
        );
    }
}
