//! Full text of what was said in sessions that have a user.
//!
//! An append only notes that a message is there, which costs it next to nothing. The index itself is fed in batches,
//! between other writes when enough have come together, and before a search. It has no text of its own: what was said
//! is in the log, and the index can be made again from there by noting all messages once more.

use std::collections::HashMap;

use futures_util::future::BoxFuture;
use petasos_core::event::{Event, Payload, joined_text};
use petasos_core::memory::UserScope;
use rusqlite::{Connection, Row, params};

use super::checksum::Checksum;
use super::columns::{Json, Nanos, Parsed, Unsigned, failed, limit, unreadable};
use super::index_attempts::{Step, step};
use super::{SqliteStore, log_range, message_rank, message_words, scopes, statement};
use crate::contract::{MessageHit, MessageOrder, MessageQuery, MessageRole, MessageSearch};
use crate::error::Result;

/// How many bits of a row's id are the sequence; the others are the session's key. The migrations know it too.
const SEQUENCE_BITS: u32 = 28;
const SEQUENCES: i64 = 1 << SEQUENCE_BITS;
/// How many messages go into the index at once.
pub(super) const BATCH: i64 = 512;
/// How many bytes of messages go into the index at once, but for the last message. All of them are in memory.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// How many steps of two for a batch a search waits for at most. More only wait in a store whose index is being made.
const STEPS_BEFORE_SEARCH: usize = 32;
/// How many messages are compared to find the best.
const COMPARED: usize = 300;

impl MessageSearch for SqliteStore {
    fn search_messages<'a>(
        &'a self,
        scope: &'a UserScope,
        query: MessageQuery,
    ) -> BoxFuture<'a, Result<Vec<MessageHit>>> {
        let scope = scope.clone();
        Box::pin(async move {
            for _ in 0..STEPS_BEFORE_SEARCH {
                let waits = self.readers().read(|connection| waiting(connection, 1)).await? > 0;
                if !waits || self.writer().write(|connection| step(connection, 1)).await? == Step::SetAside {
                    break;
                }
            }
            let search = move |connection: &Connection| {
                let read = search(connection, &scope, &query);
                read.map_err(unreadable(connection, format!("a message of {}", scope.user_id)))
            };
            self.readers().read(search).await
        })
    }
}

/// The role and the text of a message.
fn message(payload: &Payload) -> Option<(MessageRole, String)> {
    match payload {
        Payload::UserMessage(message) => Some((MessageRole::User, joined_text(&message.content))),
        Payload::AgentMessage(message) => Some((MessageRole::Agent, message.text.clone())),
        _ => None,
    }
}

/// The id of a message's row; none beyond what fits, which is not searched.
fn row_id(session: i64, sequence: u64) -> Option<i64> {
    let sequence = i64::try_from(sequence).ok().filter(|sequence| *sequence < SEQUENCES)?;
    Some(session.checked_mul(SEQUENCES)? | sequence)
}

/// Notes that an event is a message, if it is one.
pub(super) fn note(connection: &Connection, session: i64, event: &Event) -> rusqlite::Result<()> {
    let is_message = matches!(event.payload, Payload::UserMessage(_) | Payload::AgentMessage(_));
    if let (true, Some(id)) = (is_message, row_id(session, event.sequence)) {
        statement::execute(connection, "INSERT INTO unindexed_messages (id) VALUES (?)", [id])?;
    }
    Ok(())
}

/// Takes messages of a session out of the index, both ends included.
pub(super) fn forget(
    connection: &Connection,
    session: i64,
    first: u64,
    through: u64,
) -> rusqlite::Result<()> {
    let last = through.min(SEQUENCES.unsigned_abs() - 1);
    let (Some(first), Some(last)) = (row_id(session, first), row_id(session, last)) else { return Ok(()) };
    let range = [first, last];
    statement::execute(connection, "DELETE FROM unindexed_messages WHERE id BETWEEN ? AND ?", range)?;
    statement::execute(connection, "DELETE FROM message_index WHERE rowid BETWEEN ? AND ?", range)?;
    Ok(())
}

/// Indexes a batch of messages, if that many wait, and says whether there may be more.
pub(super) fn index_batch(connection: &Connection) -> Result<bool> {
    Ok(step(connection, BATCH)? == Step::More)
}

/// How many messages wait, counted up to a bound.
pub(super) fn waiting(connection: &Connection, most: i64) -> Result<i64> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM unindexed_messages LIMIT ?)";
    let count = statement::first(connection, sql, [most], |row| row.get(0));
    Ok(count.map_err(failed("count the messages to index"))?.unwrap_or_default())
}

/// A message that waits, with whose it is; neither if its session is gone.
struct Waiting {
    id: i64,
    scope: Option<UserScope>,
    payload: Option<String>,
}

/// Indexes at most so many messages, and at least one.
pub(super) fn index(connection: &Connection, most: i64) -> rusqlite::Result<()> {
    let waiting = next_messages(connection, most)?;
    let Some(last) = waiting.last().map(|waiting| waiting.id) else { return Ok(()) };
    let mut keys: HashMap<UserScope, i64> = HashMap::new();
    for Waiting { id, scope, payload } in waiting {
        let payload = payload.and_then(|text| serde_json::from_str(&text).ok());
        let (Some(scope), Some((role, text))) = (scope, payload.as_ref().and_then(message)) else { continue };
        let key = match keys.get(&scope) {
            Some(key) => *key,
            None => {
                let key = scopes::find_or_make(connection, &scope)?;
                keys.insert(scope, key);
                key
            }
        };
        let sql = "INSERT INTO message_index (rowid, label, text) VALUES (?, ?, ?)";
        let label = format!("scope{key} {}", role.as_str());
        statement::execute(connection, sql, params![id, label, message_words::indexed(&text)])?;
    }
    statement::execute(connection, "DELETE FROM unindexed_messages WHERE id <= ?", [last]).map(drop)
}

/// The messages that wait longest, up to a number and a size.
fn next_messages(connection: &Connection, most: i64) -> rusqlite::Result<Vec<Waiting>> {
    // In the order of their ids, which the index wants.
    let sql = "SELECT unindexed_messages.id, tenant, agent_id, user_id, payload FROM unindexed_messages
        LEFT JOIN sessions ON sessions.key = unindexed_messages.id / ?1
        LEFT JOIN events ON events.session = unindexed_messages.id / ?1
            AND events.sequence = unindexed_messages.id % ?1
        ORDER BY unindexed_messages.id LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([SEQUENCES, most])?;
    let (mut messages, mut bytes) = (Vec::new(), 0);
    while bytes < BATCH_BYTES
        && let Some(row) = rows.next()?
    {
        let message = read_waiting(row)?;
        bytes += message.payload.as_ref().map_or(0, String::len);
        messages.push(message);
    }
    Ok(messages)
}

fn read_waiting(row: &Row<'_>) -> rusqlite::Result<Waiting> {
    let tenant: Option<Parsed<_>> = row.get(1)?;
    let agent_id: Option<Parsed<_>> = row.get(2)?;
    let user_id: Option<String> = row.get(3)?;
    let scope = match (tenant, agent_id, user_id) {
        (Some(Parsed(tenant)), Some(Parsed(agent_id)), Some(user_id)) => {
            Some(UserScope { tenant, agent_id, user_id })
        }
        _ => None,
    };
    Ok(Waiting { id: row.get(0)?, scope, payload: row.get(4)? })
}

fn search(
    connection: &Connection,
    scope: &UserScope,
    query: &MessageQuery,
) -> rusqlite::Result<Vec<MessageHit>> {
    let key = scopes::find(connection, scope)?;
    let (Some(key), Some(words)) = (key, message_words::expression(&query.words)) else {
        return Ok(Vec::new());
    };
    let role = query.role.map_or_else(String::new, |role| format!(" AND label : {}", role.as_str()));
    let expression = format!("label : scope{key}{role} AND text : ({words})");
    let sql = "SELECT key FROM sessions WHERE id = ?";
    let except = match &query.except {
        Some(id) => statement::first(connection, sql, [id.as_str()], |row| row.get::<_, i64>(0))?,
        None => None,
    };
    // Where very many fit, finding the best of all would take long; so only the newest are compared.
    let most = match query.order {
        MessageOrder::Best => query.limit.max(COMPARED),
        MessageOrder::Newest => query.limit,
    };
    let sql = format!(
        "SELECT sessions.id, sessions.title, events.sequence, events.type, events.created_at, events.payload,
            events.processed_at, events.checksum
        FROM (SELECT rowid AS message FROM message_index
            WHERE message_index MATCH ?1 AND (rowid < ?2 OR rowid >= ?3) ORDER BY rowid DESC LIMIT ?4) AS found
        JOIN sessions ON sessions.key = found.message / {SEQUENCES}
        JOIN events ON events.session = found.message / {SEQUENCES}
            AND events.sequence = found.message % {SEQUENCES}
        ORDER BY message DESC"
    );
    let (from, to) = except.map_or((0, 0), |key| (key * SEQUENCES, (key + 1) * SEQUENCES));
    let hits = statement::all(connection, &sql, params![expression, from, to, limit(most)], read_hit)?;
    let hits: Vec<MessageHit> = hits.into_iter().flatten().collect();
    Ok(match query.order {
        MessageOrder::Best => best(hits, query),
        MessageOrder::Newest => hits,
    })
}

/// The hits that fit best.
fn best(hits: Vec<MessageHit>, query: &MessageQuery) -> Vec<MessageHit> {
    let texts: Vec<&str> = hits.iter().map(|hit| hit.text.as_str()).collect();
    let order = message_rank::best_first(&query.words, &texts);
    let mut hits: Vec<Option<MessageHit>> = hits.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| hits.get_mut(index)?.take()).take(query.limit).collect()
}

fn read_hit(row: &Row<'_>) -> rusqlite::Result<Option<MessageHit>> {
    log_range::check(row, 2, Checksum::default().columns(row, 0..1)?)?;
    let payload = row.get::<_, Json<_>>(5)?.0;
    let Some((role, text)) = message(&payload) else { return Ok(None) };
    Ok(Some(MessageHit {
        session_id: row.get::<_, Parsed<_>>(0)?.0,
        title: row.get(1)?,
        sequence: row.get::<_, Unsigned>(2)?.0,
        role,
        created_at: row.get::<_, Nanos>(4)?.0,
        text,
    }))
}
