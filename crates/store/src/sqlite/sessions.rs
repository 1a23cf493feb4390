//! Sessions without their logs.

use futures_util::future::BoxFuture;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::session::{SessionHeader, SessionRecord, SessionView};
use rusqlite::{Connection, Row, params};

use super::checksum::{self, Checksum};
use super::columns::{
    Json, Nanos, Parsed, StatusName, Unsigned, damaged, failed, json, limit, nanos, time, unreadable,
};
use super::cursor::{self, Listing};
use super::{SqliteStore, agents, log, log_range, message_index, session_list, statement};
use crate::contract::{
    Append, Asleep, EventQuery, Expiring, LOG_BATCH_BYTES, Order, Page, PageRequest, SessionFilter,
    SessionStore,
};
use crate::error::{Error, Result};

/// The columns that [`read_row`] reads.
pub(super) const COLUMNS: &str = "id, tenant, agent_id, agent_version, user_id, platform, created_at, title, \
    metadata, status, stop_reason, usage, model_calls, updated_at, archived_at, last_sequence, header_checksum, \
    view_checksum";

/// How many events of removed sessions go in one step, so that no write waits long for it.
const SWEPT_AT_ONCE: i64 = 500;

impl SessionStore for SqliteStore {
    fn create_session(&self, session: SessionRecord) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer().write(move |connection| create(connection, &session)))
    }

    fn import_session(&self, session: SessionRecord, log: Append) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let payloads = log::prepare(&log)?;
            self.writer()
                .write(move |connection| {
                    create(connection, &session)?;
                    log::run_append(connection, &log, &payloads)
                })
                .await
        })
    }

    fn session<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        Box::pin(
            self.readers()
                .read(move |connection| Ok(get(connection, &tenant, &id)?.map(|found| found.record))),
        )
    }

    fn asleep<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a SessionId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Asleep>>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        Box::pin(self.readers().read(move |connection| asleep(connection, &tenant, &id, limit)))
    }

    fn sessions<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: SessionFilter,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<SessionRecord>>> {
        let tenant = tenant.clone();
        Box::pin(async move {
            let start = cursor::start(Listing::Sessions, &page)?;
            let list = move |connection: &Connection| {
                session_list::list(connection, &tenant, &filter, start, page.limit)
            };
            self.readers().read(list).await
        })
    }

    fn count_sessions<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: SessionFilter,
    ) -> BoxFuture<'a, Result<u64>> {
        let tenant = tenant.clone();
        Box::pin(self.readers().read(move |connection| session_list::count(connection, &tenant, &filter)))
    }

    fn delete_session<'a>(&'a self, tenant: &'a TenantId, id: &'a SessionId) -> BoxFuture<'a, Result<bool>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        Box::pin(async move {
            let deleted = self.writer().write(move |connection| delete(connection, &tenant, &id)).await;
            self.writer().tidy_up();
            deleted
        })
    }

    fn running_sessions(&self) -> BoxFuture<'_, Result<Vec<(TenantId, SessionId)>>> {
        Box::pin(self.readers().read(running))
    }

    fn expiring_sessions(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Expiring>>> {
        Box::pin(self.readers().read(move |connection| expiring(connection, limit)))
    }
}

/// What error messages call a session.
pub(super) fn what(id: &SessionId) -> String {
    format!("session {id}")
}

pub(super) fn create(connection: &Connection, session: &SessionRecord) -> Result<()> {
    let SessionRecord { header, view } = session;
    if view.last_sequence != 0 {
        let problem = format!("a new session has an empty log, and this one says {}", view.last_sequence);
        return Err(failed(format!("create {}", what(&header.id)))(problem));
    }
    let context = || format!("create {}", what(&header.id));
    match insert(connection, header, view).map_err(failed(context()))? {
        0 => Err(Error::AlreadyExists { what: what(&header.id) }),
        _ => Ok(()),
    }
}

fn insert(connection: &Connection, header: &SessionHeader, view: &SessionView) -> rusqlite::Result<usize> {
    let (id, tenant, agent_id) = (header.id.as_str(), header.tenant.as_str(), header.agent_id.as_str());
    let SessionHeader { agent_version, user_id, platform, .. } = header;
    let created_at = Nanos(header.created_at);
    let checksum = checksum::of(&[&id, &tenant, &agent_id, agent_version, user_id, platform, &created_at])?;
    let sql = "INSERT INTO sessions (id, tenant, agent_id, agent_version, user_id, platform, created_at, title,
            metadata, status, stop_reason, usage, model_calls, updated_at, archived_at, last_sequence, header_checksum)
        VALUES (?, ?, ?, ?, ?, ?, ?, NULL, '{}', 'idle', NULL, '{}', 0, 0, NULL, 0, ?) ON CONFLICT DO NOTHING";
    let values = params![id, tenant, agent_id, agent_version, user_id, platform, created_at, checksum];
    let inserted = statement::execute(connection, sql, values)?;
    if inserted > 0 {
        update_view(connection, connection.last_insert_rowid(), &header.id, view)?;
    }
    Ok(inserted)
}

/// Replaces the parts of a session that change.
pub(super) fn update_view(
    connection: &Connection,
    key: i64,
    id: &SessionId,
    view: &SessionView,
) -> rusqlite::Result<()> {
    let (metadata, usage) = (json(&view.metadata)?, json(&view.usage)?);
    let stop_reason = view.stop_reason.as_ref().map(json).transpose()?;
    let (status, calls) = (view.status.as_str(), Unsigned(view.model_calls));
    let (updated_at, archived_at) = (Nanos(view.updated_at), nanos(view.archived_at));
    let last_sequence = Unsigned(view.last_sequence);
    let checksum = checksum::of(&[
        &id.as_str(),
        &view.title,
        &metadata,
        &status,
        &stop_reason,
        &usage,
        &calls,
        &updated_at,
        &archived_at,
        &last_sequence,
    ])?;
    let sql = "UPDATE sessions SET title = ?, metadata = ?, status = ?, stop_reason = ?, usage = ?,
        model_calls = ?, updated_at = ?, archived_at = ?, last_sequence = ?, expires_at = ?,
        view_checksum = ? WHERE key = ?";
    let values = params![
        view.title,
        metadata,
        status,
        stop_reason,
        usage,
        calls,
        updated_at,
        archived_at,
        last_sequence,
        nanos(view.expires_at()),
        checksum,
        key
    ];
    statement::execute(connection, sql, values).map(drop)
}

/// A session and the key that stands for it in other tables.
pub(super) struct Found {
    pub(super) key: i64,
    pub(super) record: SessionRecord,
}

/// A session, whoever owns it.
pub(super) fn find(connection: &Connection, id: &SessionId) -> Result<Option<Found>> {
    let sql = format!("SELECT {COLUMNS}, key FROM sessions WHERE id = ?");
    let read_row = |row: &Row<'_>| Ok(Found { record: read_row(row)?, key: row.get(18)? });
    let found = statement::first(connection, &sql, [id.as_str()], read_row)
        .map_err(unreadable(connection, what(id)))?;
    match found {
        Some(found) if found.record.header.id != *id => {
            Err(damaged(connection, what(id), "its name leads to another session"))
        }
        found => Ok(found),
    }
}

fn get(connection: &Connection, tenant: &TenantId, id: &SessionId) -> Result<Option<Found>> {
    Ok(find(connection, id)?.filter(|found| found.record.header.tenant == *tenant))
}

fn asleep(
    connection: &Connection,
    tenant: &TenantId,
    id: &SessionId,
    limit: usize,
) -> Result<Option<Asleep>> {
    let Some(found) = get(connection, tenant, id)? else { return Ok(None) };
    let SessionHeader { agent_id, agent_version, .. } = &found.record.header;
    let agent = agents::get(connection, tenant, agent_id, Some(*agent_version))?;
    let checkpoint = log::checkpoint(connection, &found)?;
    let query = EventQuery {
        after: checkpoint.as_ref().map(|checkpoint| checkpoint.sequence),
        before: None,
        types: Vec::new(),
        order: Order::Ascending,
        limit,
        max_bytes: LOG_BATCH_BYTES,
    };
    let events = log_range::read(connection, &found, &query)?;
    Ok(Some(Asleep { record: found.record, agent, checkpoint, events }))
}

/// Removes a session. Its events can no longer be found from here on, and [`sweep`] removes them.
fn delete(connection: &Connection, tenant: &TenantId, id: &SessionId) -> Result<bool> {
    let run = || {
        let sql = "DELETE FROM sessions WHERE id = ? AND tenant = ? RETURNING key";
        let values = params![id.as_str(), tenant.as_str()];
        let key: Option<i64> = statement::first(connection, sql, values, |row| row.get(0))?;
        if let Some(key) = key {
            statement::execute(connection, "INSERT INTO removed_sessions (session) VALUES (?)", [key])?;
        }
        Ok(key.is_some())
    };
    run().map_err(failed::<rusqlite::Error>(format!("delete {}", what(id))))
}

/// Removes some events of a removed session, and says whether there may be more.
pub(super) fn sweep(connection: &Connection) -> Result<bool> {
    let run = || {
        let sql = "SELECT session FROM removed_sessions LIMIT 1";
        let removed: Option<i64> = statement::first(connection, sql, [], |row| row.get(0))?;
        let Some(key) = removed else { return Ok(false) };
        // A damaged key must not take the log of a session that is still there.
        let is_there = "SELECT 1 FROM sessions WHERE key = ?";
        let sql = "SELECT max(sequence) FROM
            (SELECT sequence FROM events WHERE session = ? ORDER BY sequence LIMIT ?)";
        let through: Option<Unsigned> = match statement::first(connection, is_there, [key], |_| Ok(()))? {
            Some(()) => None,
            None => statement::first(connection, sql, [key, SWEPT_AT_ONCE], |row| row.get(0))?.flatten(),
        };
        match through {
            Some(through) => {
                message_index::forget(connection, key, 0, through.0)?;
                let sql = "DELETE FROM events WHERE session = ? AND sequence <= ?";
                statement::execute(connection, sql, params![key, through])?;
            }
            None => {
                statement::execute(connection, "DELETE FROM removed_sessions WHERE session = ?", [key])?;
            }
        }
        Ok(true)
    };
    run().map_err(failed::<rusqlite::Error>("sweep away removed sessions"))
}

fn running(connection: &Connection) -> Result<Vec<(TenantId, SessionId)>> {
    // The status is spelled out so that the partial index is used.
    let sql = "SELECT tenant, id FROM sessions WHERE status = 'running' ORDER BY created_at, id";
    let read_row = |row: &Row<'_>| Ok((row.get::<_, Parsed<_>>(0)?.0, row.get::<_, Parsed<_>>(1)?.0));
    statement::all(connection, sql, [], read_row).map_err(failed("list running sessions"))
}

/// The column only says when to look at a session. What it waits for, and for how long, is in its log.
fn expiring(connection: &Connection, most: usize) -> Result<Vec<Expiring>> {
    let sql = "SELECT tenant, id, expires_at FROM sessions WHERE expires_at IS NOT NULL ORDER BY expires_at LIMIT ?";
    let read_row = |row: &Row<'_>| {
        let (tenant, session_id) = (row.get::<_, Parsed<_>>(0)?.0, row.get::<_, Parsed<_>>(1)?.0);
        Ok(Expiring { tenant, session_id, at: row.get::<_, Nanos>(2)?.0 })
    };
    statement::all(connection, sql, [limit(most)], read_row).map_err(failed("list expiring sessions"))
}

/// Reads a row of [`COLUMNS`], and checks it.
pub(super) fn read_row(row: &Row<'_>) -> rusqlite::Result<SessionRecord> {
    checksum::check(row, 16, Checksum::default().columns(row, 0..7)?.finish())?;
    checksum::check(row, 17, Checksum::default().columns(row, 0..1)?.columns(row, 7..16)?.finish())?;
    let header = SessionHeader {
        id: row.get::<_, Parsed<_>>(0)?.0,
        tenant: row.get::<_, Parsed<_>>(1)?.0,
        agent_id: row.get::<_, Parsed<_>>(2)?.0,
        agent_version: row.get(3)?,
        user_id: row.get(4)?,
        platform: row.get(5)?,
        created_at: row.get::<_, Nanos>(6)?.0,
    };
    let view = SessionView {
        title: row.get(7)?,
        metadata: row.get::<_, Json<_>>(8)?.0,
        status: row.get::<_, StatusName>(9)?.0,
        stop_reason: row.get::<_, Option<Json<_>>>(10)?.map(|json| json.0),
        usage: row.get::<_, Json<_>>(11)?.0,
        model_calls: row.get::<_, Unsigned>(12)?.0,
        updated_at: row.get::<_, Nanos>(13)?.0,
        archived_at: time(row.get(14)?),
        last_sequence: row.get::<_, Unsigned>(15)?.0,
    };
    Ok(SessionRecord { header, view })
}
