//! Reading a part of a log, and noticing when a part of it is missing.
//!
//! A log has no gaps and ends where its session says. So it is known beforehand which sequences a range holds, and
//! whatever a damaged page hides or shows twice is found here.

use petasos_core::event::Event;
use petasos_core::ids::SessionId;
use rusqlite::{Connection, Row, params};

use super::checksum::{self, Checksum};
use super::columns::{Json, Nanos, Unsigned, damaged, time, unreadable};
use super::sessions::{Found, what};
use super::statement;
use crate::contract::{EventBatch, EventQuery, Order};
use crate::error::Result;

/// The sequences that a reading has yet to see, both ends included.
struct Expected {
    first: u64,
    last: u64,
    order: Order,
}

impl Expected {
    fn of(query: &EventQuery, last_sequence: u64) -> Self {
        let first = query.after.unwrap_or(0).saturating_add(1);
        let last = query.before.map_or(last_sequence, |before| before.saturating_sub(1).min(last_sequence));
        Expected { first, last, order: query.order }
    }

    fn is_empty(&self) -> bool {
        self.first > self.last
    }

    /// Takes the next one that is due.
    fn next(&mut self) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let next = match self.order {
            Order::Ascending => {
                self.first += 1;
                self.first - 1
            }
            Order::Descending => {
                self.last -= 1;
                self.last + 1
            }
        };
        Some(next)
    }
}

/// Reads the events that are asked for, or says what is wrong with the log.
pub(super) fn read(connection: &Connection, found: &Found, query: &EventQuery) -> Result<EventBatch> {
    let id = &found.record.header.id;
    let expected = Expected::of(query, found.record.view.last_sequence);
    if expected.is_empty() || query.limit == 0 {
        return Ok(EventBatch::default());
    }
    match scan(connection, found.key, id, query, expected).map_err(unreadable(connection, log_of(id)))? {
        Scan::Whole(batch) => Ok(batch),
        Scan::Gap { expected } => {
            Err(damaged(connection, log_of(id), format!("event {expected} is missing")))
        }
        Scan::Surplus => Err(damaged(connection, log_of(id), "it has events that were never appended")),
    }
}

/// The condition is that of the index that has them. It is named, since SQLite would rather read the log.
const AMENDMENTS: &str = "SELECT sequence, type, created_at, payload, processed_at, checksum
    FROM events INDEXED BY events_amending WHERE session = ? AND type IN ('session.events_deleted', 'session.event_metadata_changed') ORDER BY sequence";

/// The events that change what others say.
pub(super) fn amendments(connection: &Connection, found: &Found) -> Result<Vec<Event>> {
    let id = &found.record.header.id;
    let read_row = |row: &Row<'_>| {
        check(row, 0, Checksum::default().values(&[&id.as_str()])?)?;
        event(row, id, row.get::<_, Unsigned>(0)?.0)
    };
    statement::all(connection, AMENDMENTS, [found.key], read_row).map_err(unreadable(connection, log_of(id)))
}

fn log_of(id: &SessionId) -> String {
    format!("the log of {}", what(id))
}

enum Scan {
    Whole(EventBatch),
    Gap { expected: u64 },
    Surplus,
}

/// Reads every event of the range, and keeps those of the types that are wanted.
fn scan(
    connection: &Connection,
    key: i64,
    id: &SessionId,
    query: &EventQuery,
    mut expected: Expected,
) -> rusqlite::Result<Scan> {
    let order = match query.order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    };
    let sql = format!(
        "SELECT sequence, type, created_at, payload, processed_at, checksum FROM events
        WHERE session = ? AND sequence BETWEEN ? AND ? ORDER BY sequence {order}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![key, Unsigned(expected.first), Unsigned(expected.last)])?;
    let named = Checksum::default().values(&[&id.as_str()])?;
    let (mut events, mut bytes) = (Vec::new(), 0_usize);
    while events.len() < query.limit {
        let (due, row) = match (expected.next(), rows.next()?) {
            (Some(due), Some(row)) => (due, row),
            (Some(expected), None) => return Ok(Scan::Gap { expected }),
            (None, Some(_)) => return Ok(Scan::Surplus),
            (None, None) => return Ok(Scan::Whole(EventBatch { events, has_more: false })),
        };
        if row.get::<_, Unsigned>(0)?.0 != due {
            return Ok(Scan::Gap { expected: due });
        }
        check(row, 0, named.clone())?;
        let name = row.get_ref(1)?.as_str()?;
        if query.types.is_empty() || query.types.iter().any(|wanted| wanted == name) {
            bytes = bytes.saturating_add(row.get_ref(3)?.as_bytes()?.len());
            if bytes > query.max_bytes && !events.is_empty() {
                return Ok(Scan::Whole(EventBatch { events, has_more: true }));
            }
            events.push(event(row, id, due)?);
        }
    }
    Ok(Scan::Whole(EventBatch { events, has_more: !expected.is_empty() }))
}

/// Checks the columns `sequence`, `type`, `created_at`, `payload`, `processed_at` and `checksum` of a row, the first of
/// which is at `first`, given the checksum of the id of its session.
pub(super) fn check(row: &Row<'_>, first: usize, named: Checksum) -> rusqlite::Result<()> {
    let fixed = named.columns(row, first..first + 4)?.finish();
    checksum::check(row, first + 5, fixed + checksum::of_time(row.get(first + 4)?)?)
}

fn event(row: &Row<'_>, id: &SessionId, sequence: u64) -> rusqlite::Result<Event> {
    Ok(Event {
        session_id: id.clone(),
        sequence,
        created_at: row.get::<_, Nanos>(2)?.0,
        processed_at: time(row.get(4)?),
        payload: row.get::<_, Json<_>>(3)?.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrate;

    #[test]
    fn what_hardly_any_log_has_is_found_without_reading_it() {
        let connection = Connection::open_in_memory().unwrap();
        migrate::migrate(&connection, migrate::known_version()).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {AMENDMENTS}");
        let plan: Vec<String> = statement::all(&connection, &sql, [1], |row| row.get(3)).unwrap();
        assert!(plan.join("; ").contains("INDEX events_amending"), "{plan:?}");
    }
}
