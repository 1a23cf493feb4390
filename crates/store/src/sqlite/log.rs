//! The logs of sessions.

use futures_util::future::BoxFuture;
use petasos_core::event::Event;
use petasos_core::ids::SessionId;
use rusqlite::{Connection, Row, params};

use super::columns::{Json, Nanos, Unsigned, failed, limit, nanos, time};
use super::grants::{grant, granted};
use super::sessions::{update_view, what};
use super::{SqliteStore, message_index, statement};
use crate::contract::{Append, Checkpoint, EventLog, EventQuery, Order};
use crate::error::{Error, Result};

impl EventLog for SqliteStore {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let payloads = prepare(&append)?;
            self.writer().write(move |connection| run_append(connection, &append, &payloads)).await
        })
    }

    fn events<'a>(
        &'a self,
        session_id: &'a SessionId,
        query: EventQuery,
    ) -> BoxFuture<'a, Result<Vec<Event>>> {
        let id = session_id.clone();
        Box::pin(self.readers().read(move |connection| events(connection, &id, &query)))
    }

    fn checkpoint<'a>(&'a self, session_id: &'a SessionId) -> BoxFuture<'a, Result<Option<Checkpoint>>> {
        let id = session_id.clone();
        Box::pin(self.readers().read(move |connection| checkpoint(connection, &id)))
    }
}

/// Checks an append and writes its payloads as JSON: here and not in the thread that everyone waits for.
pub(super) fn prepare(append: &Append) -> Result<Vec<String>> {
    if let Some(problem) = problem_of(append) {
        return Err(failed(format!("append to {}", what(&append.session_id)))(problem));
    }
    let payloads = append.events.iter().map(|event| serde_json::to_string(&event.payload));
    payloads.collect::<std::result::Result<_, _>>().map_err(failed("write events as JSON"))
}

pub(super) fn events(connection: &Connection, id: &SessionId, query: &EventQuery) -> Result<Vec<Event>> {
    read_events(connection, id, query).map_err(failed(format!("read the log of {}", what(id))))
}

pub(super) fn checkpoint(connection: &Connection, id: &SessionId) -> Result<Option<Checkpoint>> {
    let sql =
        "SELECT sequence, state FROM checkpoints WHERE session = (SELECT key FROM sessions WHERE id = ?)";
    let read_row =
        |row: &Row<'_>| Ok(Checkpoint { sequence: row.get::<_, Unsigned>(0)?.0, state: row.get(1)? });
    statement::first(connection, sql, [id.as_str()], read_row)
        .map_err(failed(format!("read the checkpoint of {}", what(id))))
}

/// What is wrong with an append whatever the log holds: a mistake of the caller.
fn problem_of(append: &Append) -> Option<String> {
    let mut last = append.expected_sequence;
    for event in &append.events {
        if event.session_id != append.session_id {
            return Some(format!("event {} belongs to {}", event.sequence, what(&event.session_id)));
        }
        if last.checked_add(1) != Some(event.sequence) {
            return Some(format!("event {} follows event {last}", event.sequence));
        }
        last = event.sequence;
    }
    (append.view.last_sequence != last)
        .then(|| format!("the view ends at {}, and the events at {last}", append.view.last_sequence))
}

/// The session that an append goes to.
struct Target {
    key: i64,
    last_sequence: u64,
    tenant: String,
    agent_id: String,
    user_id: Option<String>,
}

/// Appends what was prepared.
pub(super) fn run_append(connection: &Connection, append: &Append, payloads: &[String]) -> Result<()> {
    let context = || format!("append to {}", what(&append.session_id));
    let target = target(connection, &append.session_id)
        .map_err(failed(context()))?
        .ok_or_else(|| Error::NotFound { what: what(&append.session_id) })?;
    if target.last_sequence != append.expected_sequence {
        return Err(Error::Stale {
            what: format!("the log of {}", what(&append.session_id)),
            expected: append.expected_sequence,
            actual: target.last_sequence,
        });
    }
    store(connection, &target, append, payloads).map_err(failed(context()))
}

fn target(connection: &Connection, id: &SessionId) -> rusqlite::Result<Option<Target>> {
    let sql = "SELECT key, last_sequence, tenant, agent_id, user_id FROM sessions WHERE id = ?";
    let read_row = |row: &Row<'_>| {
        Ok(Target {
            key: row.get(0)?,
            last_sequence: row.get::<_, Unsigned>(1)?.0,
            tenant: row.get(2)?,
            agent_id: row.get(3)?,
            user_id: row.get(4)?,
        })
    };
    statement::first(connection, sql, [id.as_str()], read_row)
}

fn store(
    connection: &Connection,
    target: &Target,
    append: &Append,
    payloads: &[String],
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (session, sequence, type, created_at, processed_at, payload)
        VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    for (event, payload) in append.events.iter().zip(payloads) {
        insert.execute(params![
            target.key,
            Unsigned(event.sequence),
            event.payload.type_name(),
            Nanos(event.created_at),
            nanos(event.processed_at),
            payload,
        ])?;
        if let Some(user_id) = &target.user_id {
            message_index::note(connection, target.key, event)?;
            if let Some(tool) = granted(event) {
                let owner = (target.tenant.as_str(), target.agent_id.as_str(), user_id.as_str());
                grant(connection, owner, tool, Nanos(event.created_at))?;
            }
        }
    }
    // An event may take up one that is appended with it, so this comes after all are there.
    for event in &append.events {
        take_up(connection, target.key, event)?;
    }
    update_view(connection, target.key, &append.view)?;
    if let Some(state) = &append.checkpoint {
        let sql = "INSERT INTO checkpoints (session, sequence, state) VALUES (?, ?, ?)
            ON CONFLICT DO UPDATE SET sequence = excluded.sequence, state = excluded.state";
        let values = params![target.key, Unsigned(append.view.last_sequence), state];
        statement::execute(connection, sql, values)?;
    }
    Ok(())
}

/// Marks the user events that `event` takes up. The first one to do so counts.
fn take_up(connection: &Connection, session: i64, event: &Event) -> rusqlite::Result<()> {
    let sql = "UPDATE events SET processed_at = ?
        WHERE session = ? AND sequence = ? AND processed_at IS NULL";
    for sequence in event.payload.takes_up() {
        let values = params![Nanos(event.created_at), session, Unsigned(*sequence)];
        statement::execute(connection, sql, values)?;
    }
    Ok(())
}

fn read_events(connection: &Connection, id: &SessionId, query: &EventQuery) -> rusqlite::Result<Vec<Event>> {
    let types = if query.types.is_empty() { "" } else { "AND type IN (SELECT value FROM json_each(?5))" };
    let order = match query.order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    };
    let sql = format!(
        "SELECT sequence, created_at, processed_at, payload FROM events
        WHERE session = (SELECT key FROM sessions WHERE id = ?1) AND sequence > ?2 AND sequence < ?3 {types}
        ORDER BY sequence {order} LIMIT ?4"
    );
    // No log is as long as the largest number that SQLite can hold.
    let bound = |sequence: u64| i64::try_from(sequence).unwrap_or(i64::MAX);
    let after = query.after.map_or(0, bound);
    let before = query.before.map_or(i64::MAX, bound);
    let read_row = |row: &Row<'_>| {
        Ok(Event {
            session_id: id.clone(),
            sequence: row.get::<_, Unsigned>(0)?.0,
            created_at: row.get::<_, Nanos>(1)?.0,
            processed_at: time(row.get(2)?),
            payload: row.get::<_, Json<_>>(3)?.0,
        })
    };
    let limit = limit(query.limit);
    if query.types.is_empty() {
        statement::all(connection, &sql, params![id.as_str(), after, before, limit], read_row)
    } else {
        let types = Json(&query.types);
        statement::all(connection, &sql, params![id.as_str(), after, before, limit, types], read_row)
    }
}
