//! The outbox: deliveries and what changes about them.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::delivery::{Delivery, DeliveryStatus, NewDelivery, Subject};
use petasos_core::ids::{DeliveryId, SessionId, TenantId};
use rusqlite::{Connection, params};

use super::checksum::{self, Checksum};
use super::columns::{Nanos, Unsigned, failed, limit, unreadable};
use super::cursor::{self, Listing};
use super::delivery_rows::{self, COLUMNS, State, Stored, update};
use super::{SqliteStore, delivery_due, delivery_list, statement};
use crate::contract::{
    AfterAttempt, Attempted, DeliveryFilter, DeliveryStore, Due, DueRequest, Outbox, Page, PageRequest,
    Undelivered,
};
use crate::error::{Error, Result};

impl DeliveryStore for SqliteStore {
    fn add_delivery(&self, delivery: NewDelivery) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer().write(move |connection| add(connection, &delivery)))
    }

    fn delivery<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a DeliveryId,
    ) -> BoxFuture<'a, Result<Option<Delivery>>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        let read = move |connection: &Connection| {
            Ok(find(connection, &id)?.map(|found| found.delivery).filter(|found| found.tenant == tenant))
        };
        Box::pin(self.readers().read(read))
    }

    fn delivery_body<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a DeliveryId,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        let read = move |connection: &Connection| match find(connection, &id)? {
            Some(found) if found.delivery.tenant == tenant => body(connection, &found).map(Some),
            _ => Ok(None),
        };
        Box::pin(self.readers().read(read))
    }

    fn deliveries<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<Delivery>>> {
        let tenant = tenant.clone();
        Box::pin(async move {
            let start = cursor::start(Listing::Deliveries, &page)?;
            let list = move |connection: &Connection| {
                delivery_list::list(connection, &tenant, &filter, start, page.limit)
            };
            self.readers().read(list).await
        })
    }

    fn due_deliveries(&self, request: DueRequest) -> BoxFuture<'_, Result<Due>> {
        Box::pin(self.readers().read(move |connection| delivery_due::due(connection, &request)))
    }

    fn record_attempt(&self, attempted: Attempted) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer().write(move |connection| record(connection, &attempted)))
    }

    fn pending_deliveries(&self) -> BoxFuture<'_, Result<u64>> {
        let count = |connection: &Connection| {
            let sql = "SELECT count(*) FROM deliveries WHERE status = 'pending'";
            let count = statement::first(connection, sql, [], |row| row.get::<_, Unsigned>(0));
            Ok(count.map_err(failed("count deliveries"))?.map_or(0, |count| count.0))
        };
        Box::pin(self.readers().read(count))
    }

    fn forget_deliveries(&self, before: Timestamp, at_most: usize) -> BoxFuture<'_, Result<usize>> {
        let forget = move |connection: &Connection| {
            let sql = "DELETE FROM deliveries WHERE key IN (SELECT key FROM deliveries AS old
                WHERE status <> 'pending' AND created_at < ? AND NOT (status = 'dead' AND run_id IS NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM deliveries AS newer
                        WHERE newer.run_id = old.run_id AND newer.created_at > old.created_at))
                ORDER BY created_at LIMIT ?)";
            statement::execute(connection, sql, params![Nanos(before), limit(at_most)])
                .map_err(failed("forget deliveries"))
        };
        Box::pin(self.writer().write(forget))
    }
}

/// What error messages call a delivery.
pub(super) fn what(id: &DeliveryId) -> String {
    format!("delivery {id}")
}

/// Does to a session's deliveries what its append asks for.
pub(super) fn settle_outbox(
    connection: &Connection,
    session_id: &SessionId,
    outbox: &Outbox,
    at: Timestamp,
) -> Result<()> {
    if let Some(undelivered) = &outbox.undelivered {
        change_undelivered(connection, session_id, undelivered, at)?;
    }
    outbox.new.iter().try_for_each(|delivery| add(connection, delivery))
}

/// Keeps a new delivery, in the transaction that is open.
pub(super) fn add(connection: &Connection, new: &NewDelivery) -> Result<()> {
    let run = || {
        let waits = match &new.subject {
            Subject::Event { session_id, .. } if new.replay_of.is_none() => {
                first_waiting(connection, session_id)?.is_some()
            }
            _ => false,
        };
        let Some(key) = delivery_rows::insert(connection, new, (!waits).then_some(new.created_at))? else {
            return Ok(false);
        };
        let checksum = checksum::of(&[&new.id.as_str(), &new.body])?;
        let sql = "INSERT INTO delivery_bodies (delivery, body, checksum) VALUES (?, ?, ?)";
        statement::execute(connection, sql, params![key, new.body, checksum])?;
        Ok(true)
    };
    match run().map_err(failed::<rusqlite::Error>(format!("keep {}", what(&new.id))))? {
        true => Ok(()),
        false => Err(Error::AlreadyExists { what: what(&new.id) }),
    }
}

fn find(connection: &Connection, id: &DeliveryId) -> Result<Option<Stored>> {
    let sql = format!("SELECT {COLUMNS} FROM deliveries WHERE id = ?");
    statement::first(connection, &sql, [id.as_str()], delivery_rows::read_row)
        .map_err(unreadable(connection, what(id)))
}

/// What a delivery sends.
pub(super) fn body(connection: &Connection, stored: &Stored) -> Result<Vec<u8>> {
    let id = &stored.delivery.id;
    let sql = "SELECT body, checksum FROM delivery_bodies WHERE delivery = ?";
    let found = statement::first(connection, sql, [stored.key], |row| {
        let actual = Checksum::default().values(&[&id.as_str()])?.columns(row, 0..1)?.finish();
        checksum::check(row, 1, actual)?;
        row.get(0)
    });
    let missing = || super::columns::damaged(connection, what(id), "its body is missing");
    found.map_err(unreadable(connection, what(id)))?.ok_or_else(missing)
}

/// The first of a session's events that are not delivered yet.
fn first_waiting(connection: &Connection, session_id: &SessionId) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT key FROM deliveries WHERE session_id = ? AND status = 'pending'
        AND event_offset IS NOT NULL AND replay_of IS NULL ORDER BY key LIMIT 1";
    statement::first(connection, sql, [session_id.as_str()], |row| row.get(0))
}

fn change_undelivered(
    connection: &Connection,
    session_id: &SessionId,
    undelivered: &Undelivered,
    at: Timestamp,
) -> Result<()> {
    let sql = format!(
        "SELECT {COLUMNS} FROM deliveries WHERE session_id = ? AND status = 'pending'
        AND event_offset IS NOT NULL ORDER BY key"
    );
    let context = || format!("a delivery of session {session_id}");
    let pending = statement::all(connection, &sql, [session_id.as_str()], delivery_rows::read_row)
        .map_err(unreadable(connection, context()))?;
    for Stored { key, delivery } in pending {
        let is_due = delivery.next_attempt_at.is_some();
        let mut state = State::of(&delivery);
        match undelivered {
            Undelivered::Move(url) => {
                state.url = url;
                state.tries = 0;
                state.due_at = is_due.then_some(at);
            }
            Undelivered::Cancel => {
                state.status = DeliveryStatus::Cancelled;
                state.due_at = None;
            }
        }
        update(connection, key, &delivery.id, &state).map_err(failed(format!("change {}", context())))?;
    }
    Ok(())
}

fn record(connection: &Connection, attempted: &Attempted) -> Result<()> {
    let Some(Stored { key, delivery }) = find(connection, &attempted.id)? else { return Ok(()) };
    let mut attempts = delivery.attempts.clone();
    attempts.push(attempted.attempt.clone());
    let mut state = State::of(&delivery);
    state.attempts = &attempts;
    let moved = delivery.url != attempted.url;
    if delivery.status == DeliveryStatus::Pending {
        match attempted.then {
            AfterAttempt::Delivered => state.settle(DeliveryStatus::Delivered),
            _ if moved => {}
            AfterAttempt::Dead => state.settle(DeliveryStatus::Dead),
            AfterAttempt::Again(at) => {
                state.tries = delivery.tries.saturating_add(1);
                state.due_at = Some(at);
            }
        }
    }
    let settled = state.status != DeliveryStatus::Pending;
    let run = || {
        update(connection, key, &delivery.id, &state)?;
        if settled && let Subject::Event { session_id, .. } = &delivery.subject {
            let next = first_waiting(connection, session_id)?;
            next.map_or(Ok(()), |next| make_due(connection, next, attempted.now))?;
        }
        Ok(())
    };
    run().map_err(failed::<rusqlite::Error>(format!("record an attempt of {}", what(&delivery.id))))
}

/// Makes a delivery due, unless it is.
fn make_due(connection: &Connection, key: i64, at: Timestamp) -> rusqlite::Result<()> {
    let sql = format!("SELECT {COLUMNS} FROM deliveries WHERE key = ?");
    let found = statement::first(connection, &sql, [key], delivery_rows::read_row)?;
    match found {
        Some(Stored { delivery, .. }) if delivery.next_attempt_at.is_none() => {
            let mut state = State::of(&delivery);
            state.due_at = Some(at);
            update(connection, key, &delivery.id, &state)
        }
        _ => Ok(()),
    }
}
