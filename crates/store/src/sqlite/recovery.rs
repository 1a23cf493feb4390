//! Starts of processes, and the work that they picked up.
//!
//! What is under way is read from columns alone. Neither logs nor bodies are looked into, because reading one of them
//! may be the very thing that ends the process.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::recovery::{PROGRESS_TYPES, WorkKind};
use rusqlite::{Connection, Row, params};

use super::checksum::{self, Checksum};
use super::columns::{Nanos, Parsed, Unsigned, failed, limit};
use super::{SqliteStore, statement};
use crate::contract::{
    LastEnd, LastStart, RecoveryStore, StartNote, WorkFound, WorkKey, WorkRecord, WorkState,
};
use crate::error::Result;

impl RecoveryStore for SqliteStore {
    fn last_start(&self) -> BoxFuture<'_, Result<LastStart>> {
        Box::pin(
            self.readers().read(|connection| last_start(connection).map_err(failed("read the last start"))),
        )
    }

    fn work_under_way(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Vec<WorkFound>>> {
        Box::pin(self.readers().read(move |connection| {
            under_way(connection, now, limit).map_err(failed("look for work that is under way"))
        }))
    }

    fn record_start(&self, at: Timestamp, work: Vec<WorkRecord>) -> BoxFuture<'_, Result<()>> {
        Box::pin(
            self.writer().write(move |connection| {
                record_start(connection, at, &work).map_err(failed("record the start"))
            }),
        )
    }

    fn note_start(&self, note: StartNote) -> BoxFuture<'_, Result<()>> {
        let sql = match note {
            StartNote::Outlived => "UPDATE last_start SET outlived = 1",
            StartNote::StopsCleanly => "UPDATE last_start SET clean = 1",
        };
        Box::pin(self.writer().write(move |connection| {
            statement::execute(connection, sql, []).map(drop).map_err(failed("note how the start went"))
        }))
    }

    fn keep_work(&self, record: WorkRecord) -> BoxFuture<'_, Result<()>> {
        Box::pin(
            self.writer().write(move |connection| {
                insert(connection, &record).map_err(failed("keep a record of work"))
            }),
        )
    }

    fn forget_work(&self, key: WorkKey) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer().write(move |connection| {
            let sql = "DELETE FROM recovered_work WHERE kind = ? AND tenant = ? AND id = ?";
            let values = params![key.kind.as_str(), key.tenant.as_str(), key.id];
            statement::execute(connection, sql, values).map(drop).map_err(failed("forget a record of work"))
        }))
    }
}

fn last_start(connection: &Connection) -> rusqlite::Result<LastStart> {
    let end = statement::first(connection, "SELECT clean, outlived FROM last_start", [], |row| {
        Ok(match (row.get(0)?, row.get(1)?) {
            (true, _) => LastEnd::Clean,
            (false, true) => LastEnd::DiedLate,
            (false, false) => LastEnd::DiedEarly,
        })
    })?;
    let sql = "SELECT kind, tenant, id, session_id, position, starts, state, told_before, since, checksum
        FROM recovered_work ORDER BY since, kind, tenant, id";
    let rows = statement::all(connection, sql, [], |row| Ok(read_record(row)))?;
    let work = rows.into_iter().filter_map(|record| record.ok()).collect();
    Ok(LastStart { end: end.unwrap_or(LastEnd::Clean), work })
}

fn record_start(connection: &Connection, at: Timestamp, work: &[WorkRecord]) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO last_start (key, started_at, outlived, clean) VALUES (1, ?, 0, 0)";
    statement::execute(connection, sql, [Nanos(at)])?;
    statement::execute(connection, "DELETE FROM recovered_work", [])?;
    work.iter().try_for_each(|record| insert(connection, record))
}

fn insert(connection: &Connection, record: &WorkRecord) -> rusqlite::Result<()> {
    let WorkFound { key, session_id, position } = &record.found;
    let (kind, tenant, state) = (key.kind.as_str(), key.tenant.as_str(), state_name(record.state));
    let (session_id, since) = (session_id.as_ref().map(SessionId::as_str), Nanos(record.since));
    let WorkRecord { starts, told_before, .. } = record;
    let checksum =
        checksum::of(&[&kind, &tenant, &key.id, &session_id, position, starts, &state, told_before, &since])?;
    let sql = "INSERT OR REPLACE INTO recovered_work
        (kind, tenant, id, session_id, position, starts, state, told_before, since, checksum)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let values =
        params![kind, tenant, key.id, session_id, position, starts, state, told_before, since, checksum];
    statement::execute(connection, sql, values).map(drop)
}

fn read_record(row: &Row<'_>) -> rusqlite::Result<WorkRecord> {
    checksum::check(row, 9, Checksum::default().columns(row, 0..9)?.finish())?;
    let (kind, state): (String, String) = (row.get(0)?, row.get(6)?);
    let kind = WorkKind::ALL.into_iter().find(|known| known.as_str() == kind);
    let state = STATES.into_iter().find(|known| state_name(*known) == state);
    let key = WorkKey {
        kind: kind.ok_or(rusqlite::Error::InvalidQuery)?,
        tenant: row.get::<_, Parsed<_>>(1)?.0,
        id: row.get(2)?,
    };
    let session_id = row.get::<_, Option<Parsed<_>>>(3)?.map(|id| id.0);
    Ok(WorkRecord {
        found: WorkFound { key, session_id, position: row.get(4)? },
        starts: row.get(5)?,
        state: state.ok_or(rusqlite::Error::InvalidQuery)?,
        told_before: row.get(7)?,
        since: row.get::<_, Nanos>(8)?.0,
    })
}

const STATES: [WorkState; 6] = [
    WorkState::Counted,
    WorkState::Told,
    WorkState::Waiting,
    WorkState::Trying,
    WorkState::Ending,
    WorkState::GivenUp,
];

fn state_name(state: WorkState) -> &'static str {
    match state {
        WorkState::Counted => "counted",
        WorkState::Told => "told",
        WorkState::Waiting => "waiting",
        WorkState::Trying => "trying",
        WorkState::Ending => "ending",
        WorkState::GivenUp => "given_up",
    }
}

fn under_way(connection: &Connection, now: Timestamp, most: usize) -> rusqlite::Result<Vec<WorkFound>> {
    let mut found = running_turns(connection, most)?;
    let now = Nanos(now);
    let sql = "SELECT tenant, id, id, expires_at FROM sessions
        WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?";
    found.extend(select(connection, WorkKind::Expiry, sql, params![now, limit(most)])?);
    // The statuses are spelled out so that the partial indexes are used.
    let sql =
        "SELECT tenant, id, session_id, status FROM runs WHERE status = 'accepted' ORDER BY key LIMIT ?";
    found.extend(select(connection, WorkKind::Run, sql, params![limit(most)])?);
    let sql = "SELECT tenant, session_id, session_id, 'session' FROM runs
        WHERE leaves_session = 1 AND status IN ('succeeded', 'failed') ORDER BY key LIMIT ?";
    found.extend(select(connection, WorkKind::Removal, sql, params![limit(most)])?);
    for queue in ["due_at IS NOT NULL AND tries = 0", "due_at IS NOT NULL AND tries > 0"] {
        // Attempts are a list, which grows with each of them.
        let sql = format!(
            "SELECT tenant, id, session_id, tries || '/' || length(attempts) FROM deliveries
            WHERE {queue} AND due_at <= ? ORDER BY due_at LIMIT ?"
        );
        found.extend(select(connection, WorkKind::Delivery, &sql, params![now, limit(most)])?);
    }
    Ok(found)
}

/// Running sessions, with the newest event of each that shows progress.
fn running_turns(connection: &Connection, most: usize) -> rusqlite::Result<Vec<WorkFound>> {
    let types: Vec<String> = PROGRESS_TYPES.iter().map(|name| format!("'{name}'")).collect();
    let newest = format!(
        "SELECT sequence, type FROM events WHERE session = ? AND type IN ({})
        ORDER BY sequence DESC LIMIT 1",
        types.join(", ")
    );
    let sql = "SELECT tenant, id, key FROM sessions WHERE status = 'running' ORDER BY created_at, id LIMIT ?";
    let running = statement::all(connection, sql, [limit(most)], |row| {
        Ok((row.get::<_, Parsed<TenantId>>(0), row.get::<_, Parsed<SessionId>>(1), row.get::<_, i64>(2)?))
    })?;
    let mut found = Vec::with_capacity(running.len());
    for (tenant, id, key) in running {
        let (Ok(Parsed(tenant)), Ok(Parsed(id))) = (tenant, id) else { continue };
        let newest = statement::first(connection, &newest, [key], |row| {
            Ok((row.get::<_, Unsigned>(0)?.0, row.get::<_, String>(1)?))
        })?;
        let kind = WorkKind::of_turn(newest.as_ref().map(|(_, name)| name.as_str()));
        let position = newest.map_or_else(String::new, |(sequence, _)| sequence.to_string());
        let key = WorkKey { kind, tenant, id: id.to_string() };
        found.push(WorkFound { key, session_id: Some(id), position });
    }
    Ok(found)
}

/// Rows of a tenant, an id, a session and a position. Rows with damaged ids are left out.
fn select(
    connection: &Connection,
    kind: WorkKind,
    sql: &str,
    values: impl rusqlite::Params,
) -> rusqlite::Result<Vec<WorkFound>> {
    let rows = statement::all(connection, sql, values, |row| {
        let position = match row.get_ref(3)? {
            rusqlite::types::ValueRef::Integer(value) => value.to_string(),
            value => value.as_str().map(str::to_owned).unwrap_or_default(),
        };
        let (tenant, session_id) = (row.get::<_, Parsed<TenantId>>(0), row.get::<_, Parsed<SessionId>>(2));
        Ok((tenant, row.get::<_, String>(1)?, session_id, position))
    })?;
    let found = rows.into_iter().filter_map(|(tenant, id, session_id, position)| {
        let key = WorkKey { kind, tenant: tenant.ok()?.0, id };
        Some(WorkFound { key, session_id: session_id.ok().map(|id| id.0), position })
    });
    Ok(found.collect())
}
