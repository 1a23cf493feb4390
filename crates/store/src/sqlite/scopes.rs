//! Agents with users: the numbers that stand for them in the tables of what is kept.

use petasos_core::memory::UserScope;
use rusqlite::{Connection, params};

use super::checksum::Checksum;
use super::statement;

/// The number of a scope; none if nothing was ever kept for it.
pub(super) fn find(connection: &Connection, scope: &UserScope) -> rusqlite::Result<Option<i64>> {
    let UserScope { tenant, agent_id, user_id } = scope;
    let sql = "SELECT key FROM scopes WHERE tenant = ? AND agent_id = ? AND user_id = ?";
    let values = params![tenant.as_str(), agent_id.as_str(), user_id];
    statement::first(connection, sql, values, |row| row.get(0))
}

/// The number of a scope, which gets one if it has none.
pub(super) fn find_or_make(connection: &Connection, scope: &UserScope) -> rusqlite::Result<i64> {
    if let Some(key) = find(connection, scope)? {
        return Ok(key);
    }
    let UserScope { tenant, agent_id, user_id } = scope;
    let sql = "INSERT INTO scopes (tenant, agent_id, user_id) VALUES (?, ?, ?)";
    statement::execute(connection, sql, params![tenant.as_str(), agent_id.as_str(), user_id])?;
    Ok(connection.last_insert_rowid())
}

/// The checksum of a row of a scope, to which its values are added: the number of a scope alone would not tell that a
/// row has come to somebody else.
pub(super) fn checksum(scope: &UserScope) -> rusqlite::Result<Checksum> {
    let UserScope { tenant, agent_id, user_id } = scope;
    Checksum::default().values(&[&tenant.as_str(), &agent_id.as_str(), user_id])
}

/// What error messages call a scope.
pub(super) fn what(scope: &UserScope) -> String {
    format!("agent {} with user {}", scope.agent_id, scope.user_id)
}
