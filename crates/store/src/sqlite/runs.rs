//! Runs of routines.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::event::{Event, Payload};
use petasos_core::ids::{RoutineId, RunId, SessionId, TenantId};
use petasos_core::run::{RunRecord, RunSession, RunStatus};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, Params, Row, params};
use serde_json::Map;

use super::checksum::{self, Checksum};
use super::columns::{Json, Nanos, Parsed, failed, json, limit, nanos, time, unreadable};
use super::cursor::{self, Listing, Place};
use super::{SqliteStore, customers, deliveries, sessions, statement};
use crate::contract::{NewRun, Overdue, Page, PageRequest, RunAdded, RunEnd, RunStore};
use crate::error::{Error, Result};

/// The columns that [`read_row`] reads.
const COLUMNS: &str = "id, tenant, routine_id, session_id, idempotency_key, given, created_at, deadline, checksum, \
    status, outcome, started_at, completed_at, state_checksum";

impl RunStore for SqliteStore {
    fn add_run(&self, new: NewRun) -> BoxFuture<'_, Result<RunAdded>> {
        Box::pin(self.writer().write(move |connection| add(connection, &new)))
    }

    fn run<'a>(&'a self, tenant: &'a TenantId, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        Box::pin(
            self.readers()
                .read(move |connection| Ok(find(connection, &id)?.filter(|run| run.tenant == tenant))),
        )
    }

    fn run_by_key<'a>(
        &'a self,
        tenant: &'a TenantId,
        routine_id: &'a RoutineId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<RunRecord>>> {
        let (tenant, routine_id, key) = (tenant.clone(), routine_id.clone(), key.to_owned());
        Box::pin(self.readers().read(move |connection| by_key(connection, &tenant, &routine_id, &key)))
    }

    fn runs<'a>(
        &'a self,
        tenant: &'a TenantId,
        routine_id: &'a RoutineId,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<RunRecord>>> {
        let (tenant, routine_id) = (tenant.clone(), routine_id.clone());
        Box::pin(async move {
            let start = cursor::start(Listing::Runs, &page)?;
            let list =
                move |connection: &Connection| list(connection, &tenant, &routine_id, start, page.limit);
            self.readers().read(list).await
        })
    }

    fn waiting_runs<'a>(&'a self, session_id: &'a SessionId) -> BoxFuture<'a, Result<Vec<RunRecord>>> {
        let id = session_id.clone();
        Box::pin(self.readers().read(move |connection| {
            let which = "WHERE session_id = ? AND status = 'accepted' ORDER BY key";
            select(connection, which, [id.as_str()])
        }))
    }

    fn unsettled_runs(&self) -> BoxFuture<'_, Result<Vec<RunRecord>>> {
        Box::pin(self.readers().read(|connection| {
            select(connection, "WHERE status IN ('accepted', 'running') ORDER BY deadline", [])
        }))
    }

    fn overdue_runs(&self, now: Timestamp, most: usize) -> BoxFuture<'_, Result<Overdue>> {
        Box::pin(self.readers().read(move |connection| overdue(connection, now, most)))
    }

    fn end_run(&self, end: RunEnd) -> BoxFuture<'_, Result<bool>> {
        Box::pin(self.writer().write(move |connection| {
            let Some(run) = find(connection, &end.id)?.filter(|run| run.status == end.from) else {
                return Ok(false);
            };
            update(connection, &run.settled(end.outcome.clone(), end.at))?;
            if let Some(callback) = &end.callback {
                deliveries::add(connection, callback)?;
            }
            Ok(true)
        }))
    }

    fn leftover_sessions(&self, most: usize) -> BoxFuture<'_, Result<Vec<RunRecord>>> {
        Box::pin(self.readers().read(move |connection| {
            let which = "WHERE leaves_session = 1 AND status IN ('succeeded', 'failed') AND NOT EXISTS (
                    SELECT 1 FROM deliveries WHERE deliveries.run_id = runs.id AND deliveries.status = 'pending')
                ORDER BY key LIMIT ?";
            select(connection, which, [limit(most)])
        }))
    }

    fn session_is_gone<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<()>> {
        let id = id.clone();
        Box::pin(self.writer().write(move |connection| {
            let sql = "UPDATE runs SET leaves_session = 0 WHERE id = ?";
            statement::execute(connection, sql, [id.as_str()]).map(drop).map_err(failed(what(&id)))
        }))
    }
}

fn what(id: &RunId) -> String {
    format!("run {id}")
}

fn add(connection: &Connection, new: &NewRun) -> Result<RunAdded> {
    let NewRun { run, session, customer, callback } = new;
    if let Some(known) = by_key(connection, &run.tenant, &run.routine_id, &run.idempotency_key)? {
        return Ok(RunAdded::Known(Box::new(known)));
    }
    if let Some(session) = session {
        sessions::create(connection, session)?;
    }
    if let Some(customer) = customer {
        customers::create(connection, customer, &Map::new())?;
    }
    let leaves = session.is_some() && run.given.session == RunSession::Ephemeral;
    insert(connection, run, leaves).map_err(failed(format!("create {}", what(&run.id))))?;
    if let Some(callback) = callback {
        deliveries::add(connection, callback)?;
    }
    Ok(RunAdded::Added)
}

fn insert(connection: &Connection, run: &RunRecord, leaves_session: bool) -> rusqlite::Result<()> {
    let (id, tenant, routine) = (run.id.as_str(), run.tenant.as_str(), run.routine_id.as_str());
    let (session, key, given) = (run.session_id.as_str(), &run.idempotency_key, json(&run.given)?);
    let (created_at, deadline) = (Nanos(run.created_at), Nanos(run.deadline));
    let checksum = checksum::of(&[&id, &tenant, &routine, &session, key, &given, &created_at, &deadline])?;
    let state = State::of(run)?;
    let sql = format!(
        "INSERT INTO runs ({COLUMNS}, leaves_session) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    );
    let values = params![
        id,
        tenant,
        routine,
        session,
        key,
        given,
        created_at,
        deadline,
        checksum,
        state.status,
        state.outcome,
        state.started_at,
        state.completed_at,
        state.checksum,
        leaves_session,
    ];
    statement::execute(connection, &sql, values).map(drop)
}

/// The part of a run that changes.
struct State {
    status: &'static str,
    outcome: Option<String>,
    started_at: Option<Nanos>,
    completed_at: Option<Nanos>,
    checksum: i64,
}

impl State {
    fn of(run: &RunRecord) -> rusqlite::Result<State> {
        let (id, status) = (run.id.as_str(), run.status.as_str());
        let outcome = run.outcome.as_ref().map(json).transpose()?;
        let (started_at, completed_at) = (nanos(run.started_at), nanos(run.completed_at));
        let checksum = checksum::of(&[&id, &status, &outcome, &started_at, &completed_at])?;
        Ok(State { status, outcome, started_at, completed_at, checksum })
    }
}

fn update(connection: &Connection, run: &RunRecord) -> Result<()> {
    let write = || {
        let state = State::of(run)?;
        let sql =
            "UPDATE runs SET status = ?, outcome = ?, started_at = ?, completed_at = ?, state_checksum = ?
            WHERE id = ?";
        let values = params![
            state.status,
            state.outcome,
            state.started_at,
            state.completed_at,
            state.checksum,
            run.id.as_str()
        ];
        statement::execute(connection, sql, values)
    };
    write().map(drop).map_err(failed::<rusqlite::Error>(format!("write {}", what(&run.id))))
}

/// Moves runs on as the events of an append say.
pub(super) fn follow(connection: &Connection, events: &[Event]) -> Result<()> {
    for event in events {
        match &event.payload {
            Payload::RunOpened(opened) => {
                let run = find(connection, &opened.run_id)?.filter(|run| run.status == RunStatus::Accepted);
                let run =
                    run.ok_or_else(|| Error::NotFound { what: format!("waiting {}", what(&opened.run_id)) })?;
                let started_at = Some(event.created_at);
                update(connection, &RunRecord { status: RunStatus::Running, started_at, ..run })?;
            }
            Payload::RunSettled(settled) => {
                if let Some(run) = find(connection, &settled.run_id)?.filter(|run| !run.status.is_settled()) {
                    update(connection, &run.settled(settled.outcome.clone(), event.created_at))?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn select(connection: &Connection, which: &str, values: impl Params) -> Result<Vec<RunRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM runs {which}");
    statement::all(connection, &sql, values, read_row).map_err(unreadable(connection, "runs"))
}

fn find(connection: &Connection, id: &RunId) -> Result<Option<RunRecord>> {
    Ok(select(connection, "WHERE id = ?", [id.as_str()])?.into_iter().next())
}

fn by_key(
    connection: &Connection,
    tenant: &TenantId,
    routine_id: &RoutineId,
    key: &str,
) -> Result<Option<RunRecord>> {
    let which = "WHERE tenant = ? AND routine_id = ? AND idempotency_key = ?";
    Ok(select(connection, which, [tenant.as_str(), routine_id.as_str(), key])?.into_iter().next())
}

fn list(
    connection: &Connection,
    tenant: &TenantId,
    routine_id: &RoutineId,
    start: Option<Place>,
    most: usize,
) -> Result<Page<RunRecord>> {
    let which = "WHERE tenant = ?1 AND routine_id = ?2 AND (?3 IS NULL OR (created_at, id) < (?3, ?4))
        ORDER BY created_at DESC, id DESC LIMIT ?5";
    let (at, id) = start.map_or((None, String::new()), |place| (Some(place.at), place.id));
    let values = params![tenant.as_str(), routine_id.as_str(), at, id, limit(most.saturating_add(1))];
    let sql = format!("SELECT {COLUMNS} FROM runs {which}");
    let rows =
        statement::page(connection, &sql, values, most, read_row).map_err(unreadable(connection, "runs"))?;
    cursor::page(Listing::Runs, rows, |run| {
        let at = Nanos(run.created_at).value().map_err(failed("list runs"))?;
        Ok(Place { at, id: run.id.to_string() })
    })
}

fn overdue(connection: &Connection, now: Timestamp, most: usize) -> Result<Overdue> {
    // The statuses are spelled out so that the partial index is used.
    let which = "WHERE status IN ('accepted', 'running') ORDER BY deadline LIMIT ?";
    let mut runs = select(connection, which, [limit(most.saturating_add(1))])?;
    let due = runs.iter().take_while(|run| run.deadline <= now).count().min(most);
    let next_at = runs.get(due).map(|run| run.deadline);
    runs.truncate(due);
    Ok(Overdue { runs, next_at })
}

/// A run's status, by name.
struct StatusName(RunStatus);

impl FromSql for StatusName {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        let status = RunStatus::ALL.into_iter().find(|status| status.as_str() == text);
        status.map(StatusName).ok_or_else(|| FromSqlError::Other(format!("{text:?} is not a status").into()))
    }
}

/// Reads a row of [`COLUMNS`], and checks it.
fn read_row(row: &Row<'_>) -> rusqlite::Result<RunRecord> {
    checksum::check(row, 8, Checksum::default().columns(row, 0..8)?.finish())?;
    checksum::check(row, 13, Checksum::default().columns(row, 0..1)?.columns(row, 9..13)?.finish())?;
    Ok(RunRecord {
        id: row.get::<_, Parsed<_>>(0)?.0,
        tenant: row.get::<_, Parsed<_>>(1)?.0,
        routine_id: row.get::<_, Parsed<_>>(2)?.0,
        session_id: row.get::<_, Parsed<_>>(3)?.0,
        idempotency_key: row.get(4)?,
        given: row.get::<_, Json<_>>(5)?.0,
        created_at: row.get::<_, Nanos>(6)?.0,
        deadline: row.get::<_, Nanos>(7)?.0,
        status: row.get::<_, StatusName>(9)?.0,
        outcome: row.get::<_, Option<Json<_>>>(10)?.map(|json| json.0),
        started_at: time(row.get(11)?),
        completed_at: time(row.get(12)?),
    })
}
