//! Sessions without their logs.

use futures_util::future::BoxFuture;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::session::{SessionHeader, SessionRecord, SessionView};
use rusqlite::{Connection, Row, params};

use super::columns::{Json, Nanos, Parsed, StatusName, Unsigned, failed, nanos, time};
use super::cursor::{self, Listing};
use super::{SqliteStore, agents, log, message_index, session_list, statement};
use crate::contract::{Append, Asleep, EventQuery, Order, Page, PageRequest, SessionFilter, SessionStore};
use crate::error::{Error, Result};

/// The columns that [`read_row`] reads.
pub(super) const COLUMNS: &str = "id, tenant, agent_id, agent_version, user_id, platform, created_at, title, \
    metadata, status, stop_reason, usage, model_calls, updated_at, archived_at, last_sequence";

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
        Box::pin(self.readers().read(move |connection| get(connection, &tenant, &id)))
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

    fn delete_session<'a>(&'a self, tenant: &'a TenantId, id: &'a SessionId) -> BoxFuture<'a, Result<bool>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        Box::pin(self.writer().write(move |connection| delete(connection, &tenant, &id)))
    }

    fn running_sessions(&self) -> BoxFuture<'_, Result<Vec<(TenantId, SessionId)>>> {
        Box::pin(self.readers().read(running))
    }
}

/// What error messages call a session.
pub(super) fn what(id: &SessionId) -> String {
    format!("session {id}")
}

fn create(connection: &Connection, session: &SessionRecord) -> Result<()> {
    let SessionRecord { header, view } = session;
    if view.last_sequence != 0 {
        let problem = format!("a new session has an empty log, and this one says {}", view.last_sequence);
        return Err(failed(format!("create {}", what(&header.id)))(problem));
    }
    let sql = format!(
        "INSERT INTO sessions ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT DO NOTHING"
    );
    let values = params![
        header.id.as_str(),
        header.tenant.as_str(),
        header.agent_id.as_str(),
        header.agent_version,
        header.user_id,
        header.platform,
        Nanos(header.created_at),
        view.title,
        Json(&view.metadata),
        view.status.as_str(),
        view.stop_reason.as_ref().map(Json),
        Json(&view.usage),
        Unsigned(view.model_calls),
        Nanos(view.updated_at),
        nanos(view.archived_at),
        Unsigned(view.last_sequence),
    ];
    match statement::execute(connection, &sql, values)
        .map_err(failed(format!("create {}", what(&header.id))))?
    {
        0 => Err(Error::AlreadyExists { what: what(&header.id) }),
        _ => Ok(()),
    }
}

/// Replaces the parts of a session that change.
pub(super) fn update_view(connection: &Connection, key: i64, view: &SessionView) -> rusqlite::Result<()> {
    let sql = "UPDATE sessions SET title = ?, metadata = ?, status = ?, stop_reason = ?, usage = ?,
        model_calls = ?, updated_at = ?, archived_at = ?, last_sequence = ? WHERE key = ?";
    let values = params![
        view.title,
        Json(&view.metadata),
        view.status.as_str(),
        view.stop_reason.as_ref().map(Json),
        Json(&view.usage),
        Unsigned(view.model_calls),
        Nanos(view.updated_at),
        nanos(view.archived_at),
        Unsigned(view.last_sequence),
        key
    ];
    statement::execute(connection, sql, values).map(drop)
}

fn get(connection: &Connection, tenant: &TenantId, id: &SessionId) -> Result<Option<SessionRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = ? AND tenant = ?");
    let values = params![id.as_str(), tenant.as_str()];
    statement::first(connection, &sql, values, read_row).map_err(failed(format!("read {}", what(id))))
}

fn asleep(
    connection: &Connection,
    tenant: &TenantId,
    id: &SessionId,
    limit: usize,
) -> Result<Option<Asleep>> {
    let Some(record) = get(connection, tenant, id)? else { return Ok(None) };
    let SessionHeader { agent_id, agent_version, .. } = &record.header;
    let agent = agents::get(connection, tenant, agent_id, Some(*agent_version))?;
    let checkpoint = log::checkpoint(connection, id)?;
    let query = EventQuery {
        after: checkpoint.as_ref().map(|checkpoint| checkpoint.sequence),
        before: None,
        types: Vec::new(),
        order: Order::Ascending,
        limit,
    };
    let events = log::events(connection, id, &query)?;
    Ok(Some(Asleep { record, agent, checkpoint, events }))
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
        let sql = "SELECT max(sequence) FROM
            (SELECT sequence FROM events WHERE session = ? ORDER BY sequence LIMIT ?)";
        let through = statement::first(connection, sql, [key, SWEPT_AT_ONCE], |row| row.get(0))?;
        match through.flatten() {
            Some(through) => {
                message_index::forget(connection, key, through)?;
                let sql = "DELETE FROM events WHERE session = ? AND sequence <= ?";
                statement::execute(connection, sql, [key, through])?;
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

/// Reads a row of [`COLUMNS`].
pub(super) fn read_row(row: &Row<'_>) -> rusqlite::Result<SessionRecord> {
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
