//! Which deliveries may be tried now.

use std::collections::HashSet;

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::columns::{Nanos, failed, unreadable};
use super::delivery_rows::{self, COLUMNS};
use super::{deliveries, statement};
use crate::contract::{Due, DueDelivery, DueRequest};
use crate::error::{Error, Result};

/// What was never tried, and what failed before. The conditions are spelled out so that the partial indexes are used.
const QUEUES: [&str; 2] = ["due_at IS NOT NULL AND tries = 0", "due_at IS NOT NULL AND tries > 0"];

pub(super) fn due(connection: &Connection, request: &DueRequest) -> Result<Due> {
    let mut due = Due::default();
    let mut busy = request.busy.clone();
    let wanted = [(request.first, request.first_latest), (request.again, request.again_latest)];
    for (queue, (wanted, latest)) in QUEUES.into_iter().zip(wanted) {
        let before = due.deliveries.len();
        take(connection, (queue, "due_at <= ?"), request.now, wanted, &mut busy, &mut due.deliveries)?;
        let wanted = wanted.saturating_sub(due.deliveries.len() - before);
        take(connection, (queue, "due_at > ?"), latest, wanted, &mut busy, &mut due.deliveries)?;
        let next_at = next_at(connection, queue, request.now)?;
        due.next_at = [due.next_at, next_at].into_iter().flatten().min();
    }
    Ok(due)
}

/// Takes up to `wanted` deliveries whose lanes are free and whose time is as the queue's second condition says.
fn take(
    connection: &Connection,
    (queue, is_due): (&str, &str),
    at: Timestamp,
    wanted: usize,
    busy: &mut HashSet<String>,
    taken: &mut Vec<DueDelivery>,
) -> Result<()> {
    let context = "a delivery that is due";
    let sql = format!("SELECT {COLUMNS} FROM deliveries WHERE {queue} AND {is_due} ORDER BY due_at");
    let mut statement = connection.prepare_cached(&sql).map_err(failed("look for due deliveries"))?;
    let mut rows = statement.query(params![Nanos(at)]).map_err(failed("look for due deliveries"))?;
    let mut left = wanted;
    while left > 0
        && let Some(row) = rows.next().map_err(unreadable(connection, context))?
    {
        let found = delivery_rows::read_row(row).map_err(unreadable(connection, context));
        let found = found.and_then(|stored| {
            if busy.contains(stored.delivery.lane()) {
                return Ok(None);
            }
            let body = deliveries::body(connection, &stored)?;
            Ok(Some(DueDelivery { delivery: stored.delivery, body }))
        });
        match found {
            Ok(Some(found)) => {
                busy.insert(found.delivery.lane().to_owned());
                taken.push(found);
                left -= 1;
            }
            Ok(None) => {}
            // One that cannot be read must not stop the others. Whoever looks at it is told.
            Err(error @ Error::Damaged { .. }) => tracing::debug!(%error, "a delivery is passed over"),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn next_at(connection: &Connection, queue: &str, now: Timestamp) -> Result<Option<Timestamp>> {
    let sql = format!("SELECT due_at FROM deliveries WHERE {queue} AND due_at > ? ORDER BY due_at LIMIT 1");
    let next = statement::first(connection, &sql, params![Nanos(now)], |row| row.get::<_, Nanos>(0));
    Ok(next.map_err(failed("look for the next delivery"))?.map(|next| next.0))
}
