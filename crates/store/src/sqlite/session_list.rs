//! Listing sessions by what they have in common.
//!
//! The statement is put together from fixed pieces, one per condition, so that SQLite can pick the index that
//! fits; values are always bound.

use petasos_core::ids::TenantId;
use petasos_core::session::{SessionRecord, Status};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use super::columns::{Nanos, Unsigned, failed, limit, unreadable};
use super::cursor::{self, Listing, Place};
use super::sessions::{COLUMNS, read_row};
use super::statement;
use crate::contract::{Page, SessionFilter};
use crate::error::Result;

/// Whether the metadata has a key with a value: text by itself, anything else by its JSON text. The key is
/// compared, not searched by path, because keys may contain the characters that paths are made of. Numbers with
/// a fraction are compared as numbers, since SQLite would write them differently.
const HAS_METADATA: &str = "EXISTS (SELECT 1 FROM json_each(metadata) WHERE key = ? AND
    CASE type WHEN 'text' THEN value = ? WHEN 'real' THEN value = ?
    WHEN 'true' THEN 'true' = ? WHEN 'false' THEN 'false' = ? WHEN 'null' THEN 'null' = ?
    ELSE CAST(value AS TEXT) = ? END)";

/// Conditions that must all be true, with the values that they name.
#[derive(Default)]
struct Conditions {
    pieces: Vec<&'static str>,
    values: Vec<Value>,
}

impl Conditions {
    fn add(&mut self, piece: &'static str, values: impl IntoIterator<Item = Value>) {
        self.pieces.push(piece);
        self.values.extend(values);
    }

    fn text(&mut self, piece: &'static str, value: &str) {
        self.add(piece, [Value::Text(value.to_owned())]);
    }

    fn metadata(&mut self, key: &str, wanted: &str) {
        let text = || Value::Text(wanted.to_owned());
        let number = real(wanted).map_or(Value::Null, Value::Real);
        let key = Value::Text(key.to_owned());
        self.add(HAS_METADATA, [key, text(), number, text(), text(), text(), text()]);
    }
}

/// A page of a tenant's sessions, in the order of the filter.
pub(super) fn list(
    connection: &Connection,
    tenant: &TenantId,
    filter: &SessionFilter,
    start: Option<Place>,
    wanted: usize,
) -> Result<Page<SessionRecord>> {
    let Conditions { pieces, mut values } = conditions(tenant, filter, start);
    let sql = select(&pieces, filter.oldest_first);
    values.push(Value::Integer(limit(wanted.saturating_add(1))));
    let mut id = String::new();
    let read_row = |row: &Row<'_>| {
        id = row.get(0)?;
        read_row(row)
    };
    let rows = statement::page(connection, &sql, params_from_iter(values), wanted, read_row);
    let rows = rows.map_err(unreadable(connection, format!("session {id}")))?;
    cursor::page(Listing::Sessions, rows, |session| {
        let at = Nanos(session.header.created_at).value().map_err(failed("list sessions"))?;
        Ok(Place { at, id: session.header.id.to_string() })
    })
}

/// How many sessions of a tenant a filter lets through.
pub(super) fn count(connection: &Connection, tenant: &TenantId, filter: &SessionFilter) -> Result<u64> {
    let Conditions { pieces, values } = conditions(tenant, filter, None);
    let sql = format!("SELECT count(*) FROM sessions WHERE {}", pieces.join(" AND "));
    let count = statement::first(connection, &sql, params_from_iter(values), |row| row.get::<_, Unsigned>(0));
    Ok(count.map_err(failed("count sessions"))?.map_or(0, |count| count.0))
}

fn select(conditions: &[&str], oldest_first: bool) -> String {
    let conditions = conditions.join(" AND ");
    let order = if oldest_first { "created_at, id" } else { "created_at DESC, id DESC" };
    format!("SELECT {COLUMNS} FROM sessions WHERE {conditions} ORDER BY {order} LIMIT ?")
}

fn conditions(tenant: &TenantId, filter: &SessionFilter, start: Option<Place>) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.text("tenant = ?", tenant.as_str());
    if let Some(agent_id) = &filter.agent_id {
        conditions.text("agent_id = ?", agent_id.as_str());
    }
    if let Some(user_id) = &filter.user_id {
        conditions.text("user_id = ?", user_id);
    }
    if filter.without_user {
        conditions.add("user_id IS NULL", []);
    }
    match filter.status {
        Some(Status::Running) => conditions.add("status = 'running'", []),
        Some(Status::Idle) => conditions.add("status = 'idle'", []),
        None => {}
    }
    if filter.only_archived {
        conditions.add("archived_at IS NOT NULL", []);
    } else if !filter.include_archived {
        conditions.add("archived_at IS NULL", []);
    }
    if !filter.include_threads {
        conditions.add("platform <> 'thread'", []);
    }
    if let Some(place) = start {
        let piece =
            if filter.oldest_first { "(created_at, id) > (?, ?)" } else { "(created_at, id) < (?, ?)" };
        conditions.add(piece, [Value::Integer(place.at), Value::Text(place.id)]);
    }
    for (key, value) in &filter.metadata {
        conditions.metadata(key, value);
    }
    conditions
}

/// The number that a text is the JSON of, if it is one with a fraction or exponent.
fn real(text: &str) -> Option<f64> {
    let number: serde_json::Number = serde_json::from_str(text).ok()?;
    (number.is_f64() && number.to_string() == text).then(|| number.as_f64()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrate;

    #[test]
    fn every_listing_reads_in_the_order_of_an_index() {
        let connection = Connection::open_in_memory().unwrap();
        migrate::migrate(&connection, migrate::known_version()).unwrap();
        let agent_id = Some("helper".parse().unwrap());
        let user_id = Some("anna".to_owned());
        let all = SessionFilter::default();
        let filters = [
            (all.clone(), "sessions_newest"),
            (SessionFilter { agent_id: agent_id.clone(), ..all.clone() }, "sessions_of_agent"),
            (SessionFilter { user_id: user_id.clone(), ..all.clone() }, "sessions_of_user"),
            (SessionFilter { without_user: true, ..all.clone() }, "sessions_newest"),
            (SessionFilter { only_archived: true, ..all.clone() }, "sessions_newest"),
            (SessionFilter { oldest_first: true, ..all.clone() }, "sessions_newest"),
            (SessionFilter { metadata: vec![("a".into(), "b".into())], ..all.clone() }, "sessions_newest"),
            (SessionFilter { agent_id, user_id, ..all }, "sessions_of_"),
        ];
        for (filter, index) in filters {
            for start in [None, Some(Place { at: 1, id: "s".into() })] {
                let Conditions { pieces, mut values } =
                    conditions(&TenantId::default_tenant(), &filter, start);
                values.push(Value::Integer(1));
                let sql = format!("EXPLAIN QUERY PLAN {}", select(&pieces, filter.oldest_first));
                let plan: Vec<String> =
                    statement::all(&connection, &sql, params_from_iter(values), |row| row.get(3)).unwrap();
                let plan = plan.join("; ");
                assert!(plan.contains(&format!("USING INDEX {index}")), "{filter:?}: {plan}");
                assert!(!plan.contains("TEMP B-TREE"), "{filter:?}: {plan}");
            }
        }
    }
}
