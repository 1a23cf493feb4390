//! The logs of sessions.

use futures_util::future::BoxFuture;
use petasos_core::event::{Event, Payload};
use petasos_core::ids::SessionId;
use rusqlite::{Connection, Row, params};

use super::checksum::{self, Checksum};
use super::columns::{Nanos, Unsigned, damaged, failed, nanos, unreadable};
use super::grants::{grant, granted};
use super::sessions::{self, Found, update_view, what};
use super::{SqliteStore, deliveries, log_range, message_index, runs, statement, usage};
use crate::contract::{Append, Checkpoint, EventBatch, EventLog, EventQuery};
use crate::error::{Error, Result};

impl EventLog for SqliteStore {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let payloads = prepare(&append)?;
            self.writer()
                .write(move |connection| {
                    run_append(connection, &append, &payloads)?;
                    runs::follow(connection, &append.events)?;
                    usage::count(connection, &append)
                })
                .await
        })
    }

    fn events<'a>(
        &'a self,
        session_id: &'a SessionId,
        query: EventQuery,
    ) -> BoxFuture<'a, Result<EventBatch>> {
        let id = session_id.clone();
        Box::pin(self.readers().read(move |connection| match sessions::find(connection, &id)? {
            Some(found) => log_range::read(connection, &found, &query),
            None => Ok(EventBatch::default()),
        }))
    }

    fn amendments<'a>(&'a self, session_id: &'a SessionId) -> BoxFuture<'a, Result<Vec<Event>>> {
        let id = session_id.clone();
        Box::pin(self.readers().read(move |connection| match sessions::find(connection, &id)? {
            Some(found) => log_range::amendments(connection, &found),
            None => Ok(Vec::new()),
        }))
    }

    fn checkpoint<'a>(&'a self, session_id: &'a SessionId) -> BoxFuture<'a, Result<Option<Checkpoint>>> {
        let id = session_id.clone();
        Box::pin(self.readers().read(move |connection| match sessions::find(connection, &id)? {
            Some(found) => checkpoint(connection, &found),
            None => Ok(None),
        }))
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

/// The newest fold, unless it is damaged: the log says the same, only slower.
pub(super) fn checkpoint(connection: &Connection, found: &Found) -> Result<Option<Checkpoint>> {
    let id = &found.record.header.id;
    let sql = "SELECT sequence, state, checksum FROM checkpoints WHERE session = ?";
    let read_row = |row: &Row<'_>| {
        let actual = Checksum::default().values(&[&id.as_str()])?.columns(row, 0..2)?.finish();
        checksum::check(row, 2, actual)?;
        Ok(Checkpoint { sequence: row.get::<_, Unsigned>(0)?.0, state: row.get(1)? })
    };
    match statement::first(connection, sql, [found.key], read_row)
        .map_err(unreadable(connection, format!("the checkpoint of {}", what(id))))
    {
        Err(error @ Error::Damaged { .. }) => {
            tracing::warn!(%error, "the whole log is read instead");
            Ok(None)
        }
        other => other,
    }
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
    id: String,
}

/// Appends what was prepared.
pub(super) fn run_append(connection: &Connection, append: &Append, payloads: &[String]) -> Result<()> {
    let context = || format!("append to {}", what(&append.session_id));
    let target = target(connection, &append.session_id)
        .map_err(failed(context()))?
        .ok_or_else(|| Error::NotFound { what: what(&append.session_id) })?;
    if target.id != append.session_id.as_str() {
        return Err(damaged(connection, what(&append.session_id), "its name leads to another session"));
    }
    if target.last_sequence != append.expected_sequence {
        return Err(Error::Stale {
            what: format!("the log of {}", what(&append.session_id)),
            expected: append.expected_sequence,
            actual: target.last_sequence,
        });
    }
    store(connection, &target, append, payloads).map_err(failed(context()))?;
    deliveries::settle_outbox(connection, &append.session_id, &append.outbox, append.view.updated_at)
}

fn target(connection: &Connection, id: &SessionId) -> rusqlite::Result<Option<Target>> {
    let sql = "SELECT key, last_sequence, tenant, agent_id, user_id, id FROM sessions WHERE id = ?";
    let read_row = |row: &Row<'_>| {
        Ok(Target {
            key: row.get(0)?,
            last_sequence: row.get::<_, Unsigned>(1)?.0,
            tenant: row.get(2)?,
            agent_id: row.get(3)?,
            user_id: row.get(4)?,
            id: row.get(5)?,
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
        "INSERT INTO events (session, sequence, type, created_at, processed_at, payload, checksum)
        VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?;
    for (event, payload) in append.events.iter().zip(payloads) {
        let (sequence, name) = (Unsigned(event.sequence), event.payload.type_name());
        let (created_at, processed_at) = (Nanos(event.created_at), nanos(event.processed_at));
        let fixed = checksum::of(&[&target.id, &sequence, &name, &created_at, payload])?;
        let checksum = fixed + checksum::of_time(processed_at)?;
        insert.execute(params![target.key, sequence, name, created_at, processed_at, payload, checksum])?;
        if let Payload::EventsDeleted(deleted) = &event.payload {
            message_index::forget(connection, target.key, deleted.from, event.sequence)?;
        }
        if let Some(user_id) = &target.user_id {
            message_index::note(connection, target.key, event)?;
            for tool in granted(event) {
                let owner = (target.tenant.as_str(), target.agent_id.as_str(), user_id.as_str());
                grant(connection, owner, tool, Nanos(event.created_at))?;
            }
        }
    }
    // An event may take up one that is appended with it, so this comes after all are there.
    for event in &append.events {
        take_up(connection, target.key, event)?;
    }
    update_view(connection, target.key, &append.session_id, &append.view)?;
    if let Some(state) = &append.checkpoint {
        let sql = "INSERT INTO checkpoints (session, sequence, state, checksum) VALUES (?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET sequence = excluded.sequence, state = excluded.state, checksum = excluded.checksum";
        let sequence = Unsigned(append.view.last_sequence);
        let checksum = checksum::of(&[&target.id, &sequence, state])?;
        let values = params![target.key, sequence, state, checksum];
        statement::execute(connection, sql, values)?;
    }
    Ok(())
}

/// Marks the user events that `event` takes up. The first one to do so counts.
fn take_up(connection: &Connection, session: i64, event: &Event) -> rusqlite::Result<()> {
    let sql = "UPDATE events SET processed_at = ?, checksum = checksum + ?
        WHERE session = ? AND sequence = ? AND processed_at IS NULL";
    let at = Nanos(event.created_at);
    for sequence in event.payload.takes_up() {
        let values = params![at, checksum::of_time(Some(at))?, session, Unsigned(*sequence)];
        statement::execute(connection, sql, values)?;
    }
    Ok(())
}
