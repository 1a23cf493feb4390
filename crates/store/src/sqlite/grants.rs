//! Tools that a user allowed an agent for good.

use futures_util::future::BoxFuture;
use petasos_core::event::{Event, Payload, Scope, ToolConfirmation, Verdict};
use petasos_core::ids::{AgentId, TenantId};
use rusqlite::{Connection, Row, params};

use super::checksum::{self, Checksum};
use super::columns::{Nanos, failed, unreadable};
use super::{SqliteStore, statement};
use crate::contract::GrantStore;
use crate::error::Result;

impl GrantStore for SqliteStore {
    fn grants<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
        user_id: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>>> {
        let (tenant, agent_id, user_id) = (tenant.clone(), agent_id.clone(), user_id.to_owned());
        let read = move |connection: &Connection| {
            let sql = "SELECT tenant, agent_id, user_id, tool, created_at, checksum FROM grants
                WHERE tenant = ? AND agent_id = ? AND user_id = ? ORDER BY tool";
            let values = params![tenant.as_str(), agent_id.as_str(), user_id];
            let read_row = |row: &Row<'_>| {
                checksum::check(row, 5, Checksum::default().columns(row, 0..5)?.finish())?;
                row.get(3)
            };
            statement::all(connection, sql, values, read_row)
                .map_err(unreadable(connection, format!("a grant of {user_id} to agent {agent_id}")))
        };
        Box::pin(self.readers().read(read))
    }

    fn agent_grants<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>>> {
        let (tenant, agent_id) = (tenant.clone(), agent_id.clone());
        let read = move |connection: &Connection| {
            let sql = "SELECT tenant, agent_id, user_id, tool, created_at, checksum FROM grants
                WHERE tenant = ? AND agent_id = ? ORDER BY user_id, tool";
            let read_row = |row: &Row<'_>| {
                checksum::check(row, 5, Checksum::default().columns(row, 0..5)?.finish())?;
                Ok((row.get(2)?, row.get(3)?))
            };
            statement::all(connection, sql, params![tenant.as_str(), agent_id.as_str()], read_row)
                .map_err(unreadable(connection, format!("a grant to agent {agent_id}")))
        };
        Box::pin(self.readers().read(read))
    }

    fn revoke_grant<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
        user_id: &'a str,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<bool>> {
        let (tenant, agent_id) = (tenant.clone(), agent_id.clone());
        let (user_id, tool) = (user_id.to_owned(), tool.to_owned());
        let delete = move |connection: &Connection| {
            let sql = "DELETE FROM grants WHERE tenant = ? AND agent_id = ? AND user_id = ? AND tool = ?";
            let values = params![tenant.as_str(), agent_id.as_str(), user_id, tool];
            let deleted = statement::execute(connection, sql, values).map_err(failed("revoke a grant"))?;
            Ok(deleted > 0)
        };
        Box::pin(self.writer().write(delete))
    }
}

/// What an event allows for good: tools and dangers.
pub(super) fn granted(event: &Event) -> impl Iterator<Item = &str> {
    let answer = match &event.payload {
        Payload::UserToolConfirmation(answer)
            if answer.result == Verdict::Allow && answer.scope == Scope::Always =>
        {
            Some(answer)
        }
        _ => None,
    };
    answer.into_iter().flat_map(ToolConfirmation::grants)
}

/// Keeps a grant. One that is there already stays as it is.
pub(super) fn grant(
    connection: &Connection,
    (tenant, agent_id, user_id): (&str, &str, &str),
    tool: &str,
    at: Nanos,
) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO grants (tenant, agent_id, user_id, tool, created_at, checksum) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT DO NOTHING";
    let checksum = checksum::of(&[&tenant, &agent_id, &user_id, &tool, &at])?;
    statement::execute(connection, sql, params![tenant, agent_id, user_id, tool, at, checksum]).map(drop)
}
