//! A delivery as a row: what never changes, and what every attempt writes anew.

use jiff::Timestamp;
use petasos_core::delivery::{Attempt, Delivery, DeliveryStatus, NewDelivery, Subject};
use petasos_core::ids::DeliveryId;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, Type, ValueRef};
use rusqlite::{Connection, Row, params};

use super::checksum::{self, Checksum};
use super::columns::{Json, Nanos, Parsed, Unsigned, json, nanos, time};
use super::statement;

/// The columns that [`read_row`] reads.
pub(super) const COLUMNS: &str = "id, tenant, session_id, run_id, event_offset, webhook_id, created_at, replay_of, \
    url, status, attempts, tries, due_at, checksum, state_checksum, key";

/// A delivery and the key that stands for it.
pub(super) struct Stored {
    pub(super) key: i64,
    pub(super) delivery: Delivery,
}

/// What changes about a delivery.
pub(super) struct State<'a> {
    pub(super) url: &'a str,
    pub(super) status: DeliveryStatus,
    pub(super) attempts: &'a [Attempt],
    pub(super) tries: u32,
    pub(super) due_at: Option<Timestamp>,
}

impl<'a> State<'a> {
    pub(super) fn of(delivery: &'a Delivery) -> Self {
        State {
            url: &delivery.url,
            status: delivery.status,
            attempts: &delivery.attempts,
            tries: delivery.tries,
            due_at: delivery.next_attempt_at,
        }
    }

    /// Nothing follows.
    pub(super) fn settle(&mut self, status: DeliveryStatus) {
        self.status = status;
        self.due_at = None;
    }

    fn checksum(&self, id: &DeliveryId, attempts: &str) -> rusqlite::Result<i64> {
        let status = self.status.as_str();
        checksum::of(&[&id.as_str(), &self.url, &status, &attempts, &self.tries, &nanos(self.due_at)])
    }
}

/// Inserts a row, and returns its key; none if there is one of that id.
pub(super) fn insert(
    connection: &Connection,
    new: &NewDelivery,
    due_at: Option<Timestamp>,
) -> rusqlite::Result<Option<i64>> {
    let (id, tenant, session_id) = (new.id.as_str(), new.tenant.as_str(), new.subject.session_id().as_str());
    let (run_id, offset) = match &new.subject {
        Subject::Event { offset, .. } => (None, Some(Unsigned(*offset))),
        Subject::Callback { run_id, .. } => (Some(run_id.as_str()), None),
    };
    let (created_at, replay_of) = (Nanos(new.created_at), new.replay_of.as_ref().map(DeliveryId::as_str));
    let checksum = checksum::of(&[
        &id,
        &tenant,
        &session_id,
        &run_id,
        &offset,
        &new.webhook_id,
        &created_at,
        &replay_of,
    ])?;
    let state = State { url: &new.url, status: DeliveryStatus::Pending, attempts: &[], tries: 0, due_at };
    let attempts = json(&state.attempts)?;
    let sql = "INSERT INTO deliveries (id, tenant, session_id, run_id, event_offset, webhook_id, created_at,
            replay_of, url, status, attempts, tries, due_at, checksum, state_checksum)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
    let values = params![
        id,
        tenant,
        session_id,
        run_id,
        offset,
        new.webhook_id,
        created_at,
        replay_of,
        state.url,
        state.status.as_str(),
        attempts,
        state.tries,
        nanos(state.due_at),
        checksum,
        state.checksum(&new.id, &attempts)?,
    ];
    let inserted = statement::execute(connection, sql, values)?;
    Ok((inserted > 0).then(|| connection.last_insert_rowid()))
}

/// Writes what has changed.
pub(super) fn update(
    connection: &Connection,
    key: i64,
    id: &DeliveryId,
    state: &State<'_>,
) -> rusqlite::Result<()> {
    let attempts = json(&state.attempts)?;
    let sql =
        "UPDATE deliveries SET url = ?, status = ?, attempts = ?, tries = ?, due_at = ?, state_checksum = ?
        WHERE key = ?";
    let checksum = state.checksum(id, &attempts)?;
    let (status, due_at) = (state.status.as_str(), nanos(state.due_at));
    let values = params![state.url, status, attempts, state.tries, due_at, checksum, key];
    statement::execute(connection, sql, values).map(drop)
}

/// Reads a row of [`COLUMNS`], and checks it.
pub(super) fn read_row(row: &Row<'_>) -> rusqlite::Result<Stored> {
    checksum::check(row, 13, Checksum::default().columns(row, 0..8)?.finish())?;
    checksum::check(row, 14, Checksum::default().columns(row, 0..1)?.columns(row, 8..13)?.finish())?;
    let session_id = row.get::<_, Parsed<_>>(2)?.0;
    let offset = row.get::<_, Option<Unsigned>>(4)?;
    let subject = match (row.get::<_, Option<Parsed<_>>>(3)?, offset) {
        (None, Some(offset)) => Subject::Event { session_id, offset: offset.0 },
        (Some(run_id), None) => Subject::Callback { run_id: run_id.0, session_id },
        _ => {
            let problem = "it is neither an event nor a callback".into();
            return Err(rusqlite::Error::FromSqlConversionFailure(3, Type::Text, problem));
        }
    };
    let delivery = Delivery {
        id: row.get::<_, Parsed<_>>(0)?.0,
        tenant: row.get::<_, Parsed<_>>(1)?.0,
        subject,
        webhook_id: row.get(5)?,
        created_at: row.get::<_, Nanos>(6)?.0,
        replay_of: row.get::<_, Option<Parsed<_>>>(7)?.map(|id| id.0),
        url: row.get(8)?,
        status: row.get::<_, StatusName>(9)?.0,
        attempts: row.get::<_, Json<_>>(10)?.0,
        tries: row.get(11)?,
        next_attempt_at: time(row.get(12)?),
    };
    Ok(Stored { key: row.get(15)?, delivery })
}

/// A delivery's status, by name.
struct StatusName(DeliveryStatus);

impl FromSql for StatusName {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        let status = DeliveryStatus::ALL.into_iter().find(|status| status.as_str() == text);
        status.map(StatusName).ok_or_else(|| FromSqlError::Other(format!("{text:?} is not a status").into()))
    }
}
