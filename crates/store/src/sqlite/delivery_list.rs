//! Listing deliveries.

use petasos_core::delivery::{Delivery, DeliveryStatus};
use petasos_core::ids::TenantId;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use super::columns::{Nanos, failed, limit, unreadable};
use super::cursor::{self, Listing, Place};
use super::delivery_rows::{COLUMNS, read_row};
use super::statement;
use crate::contract::{DeliveryFilter, Page};
use crate::error::Result;

/// A page of a tenant's deliveries, newest first.
pub(super) fn list(
    connection: &Connection,
    tenant: &TenantId,
    filter: &DeliveryFilter,
    start: Option<Place>,
    wanted: usize,
) -> Result<Page<Delivery>> {
    let (sql, mut values) = select(tenant, filter, start);
    values.push(Value::Integer(limit(wanted.saturating_add(1))));
    let read = |row: &Row<'_>| Ok(read_row(row)?.delivery);
    let rows = statement::page(connection, &sql, params_from_iter(values), wanted, read)
        .map_err(unreadable(connection, "a delivery of the list"))?;
    cursor::page(Listing::Deliveries, rows, |delivery| {
        let at = Nanos(delivery.created_at).value().map_err(failed("list deliveries"))?;
        Ok(Place { at, id: delivery.id.to_string() })
    })
}

fn select(tenant: &TenantId, filter: &DeliveryFilter, start: Option<Place>) -> (String, Vec<Value>) {
    let mut conditions = vec!["tenant = ?"];
    let mut values = vec![Value::Text(tenant.to_string())];
    match filter.status {
        None => {}
        Some(DeliveryStatus::Pending) => conditions.push("status = 'pending' AND status <> 'delivered'"),
        Some(DeliveryStatus::Delivered) => conditions.push("status = 'delivered'"),
        // The second half is what the partial index says of itself.
        Some(DeliveryStatus::Dead) => conditions.push("status = 'dead' AND status <> 'delivered'"),
        Some(DeliveryStatus::Cancelled) => conditions.push("status = 'cancelled' AND status <> 'delivered'"),
    }
    if let Some(session_id) = &filter.session_id {
        conditions.push("session_id = ?");
        values.push(Value::Text(session_id.to_string()));
    }
    if let Some(run_id) = &filter.run_id {
        conditions.push("run_id = ?");
        values.push(Value::Text(run_id.to_string()));
    }
    if let Some(place) = start {
        conditions.push("(created_at, id) < (?, ?)");
        values.extend([Value::Integer(place.at), Value::Text(place.id)]);
    }
    let conditions = conditions.join(" AND ");
    let sql = format!(
        "SELECT {COLUMNS} FROM deliveries WHERE {conditions} ORDER BY created_at DESC, id DESC LIMIT ?"
    );
    (sql, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrate;

    #[test]
    fn every_listing_reads_in_the_order_of_an_index() {
        let connection = Connection::open_in_memory().unwrap();
        migrate::migrate(&connection, migrate::known_version()).unwrap();
        let all = DeliveryFilter::default();
        let dead = DeliveryFilter { status: Some(DeliveryStatus::Dead), ..all.clone() };
        let session = DeliveryFilter { session_id: Some("s".parse().unwrap()), ..all.clone() };
        let run = DeliveryFilter { run_id: Some("r".parse().unwrap()), ..all.clone() };
        for filter in [all, dead, session, run] {
            for start in [None, Some(Place { at: 1, id: "d".into() })] {
                let (sql, mut values) = select(&TenantId::default_tenant(), &filter, start);
                values.push(Value::Integer(1));
                let sql = format!("EXPLAIN QUERY PLAN {sql}");
                let plan: Vec<String> =
                    statement::all(&connection, &sql, params_from_iter(values), |row| row.get(3)).unwrap();
                let plan = plan.join("; ");
                assert!(plan.contains("USING INDEX deliveries_"), "{filter:?}: {plan}");
                assert!(!plan.contains("TEMP B-TREE"), "{filter:?}: {plan}");
            }
        }
    }
}
