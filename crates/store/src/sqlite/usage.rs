//! What agents used, by day.

use futures_util::future::BoxFuture;
use jiff::civil::Date;
use petasos_core::event::Payload;
use petasos_core::ids::{AgentId, TenantId};
use petasos_core::spending::{DailyUsage, day_of};
use rusqlite::{Connection, Row, params};

use super::checksum::{self, Checksum};
use super::columns::{Json, Parsed, Unsigned, failed, json, unreadable};
use super::{SqliteStore, statement};
use crate::contract::{Append, UsageStore};
use crate::error::{Error, Result};

impl UsageStore for SqliteStore {
    fn agent_usage<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
        from: Date,
        to: Date,
    ) -> BoxFuture<'a, Result<Vec<DailyUsage>>> {
        let (tenant, agent_id) = (tenant.to_string(), agent_id.to_string());
        Box::pin(self.readers().read(move |connection| days(connection, &tenant, &agent_id, from, to)))
    }
}

fn days(
    connection: &Connection,
    tenant: &str,
    agent_id: &str,
    from: Date,
    to: Date,
) -> Result<Vec<DailyUsage>> {
    let sql = "SELECT tenant, agent_id, day, model_calls, usage, checksum FROM agent_usage
        WHERE tenant = ? AND agent_id = ? AND day BETWEEN ? AND ? ORDER BY day";
    let values = params![tenant, agent_id, from.to_string(), to.to_string()];
    statement::all(connection, sql, values, read_row)
        .map_err(unreadable(connection, format!("the usage of agent {agent_id}")))
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<DailyUsage> {
    checksum::check(row, 5, Checksum::default().columns(row, 0..5)?.finish())?;
    Ok(DailyUsage {
        day: row.get::<_, Parsed<_>>(2)?.0,
        model_calls: row.get::<_, Unsigned>(3)?.0,
        usage: row.get::<_, Json<_>>(4)?.0,
    })
}

/// Counts the model calls of an append that was stored.
pub(super) fn count(connection: &Connection, append: &Append) -> Result<()> {
    for event in &append.events {
        let Payload::ModelFinished(finished) = &event.payload else { continue };
        let sql = "SELECT tenant, agent_id FROM sessions WHERE id = ?";
        let owner = statement::first(connection, sql, [append.session_id.as_str()], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        });
        let context = || format!("count what session {} used", append.session_id);
        let Some((tenant, agent_id)) = owner.map_err(failed(context()))? else { return Ok(()) };
        let day = day_of(event.created_at);
        let mut total = match days(connection, &tenant, &agent_id, day, day) {
            Ok(mut found) => {
                found.pop().unwrap_or(DailyUsage { day, model_calls: 0, usage: Default::default() })
            }
            // A damaged total must not stop the sessions. It stays, and whoever asks for it is told.
            Err(error @ Error::Damaged { .. }) => {
                tracing::warn!(%error, "a model call was not counted");
                continue;
            }
            Err(error) => return Err(error),
        };
        total.model_calls += 1;
        total.usage += finished.usage;
        write(connection, &tenant, &agent_id, &total).map_err(failed(context()))?;
    }
    Ok(())
}

fn write(connection: &Connection, tenant: &str, agent_id: &str, total: &DailyUsage) -> rusqlite::Result<()> {
    let (day, calls, usage) = (total.day.to_string(), Unsigned(total.model_calls), json(&total.usage)?);
    let checksum = checksum::of(&[&tenant, &agent_id, &day, &calls, &usage])?;
    let sql = "INSERT OR REPLACE INTO agent_usage (tenant, agent_id, day, model_calls, usage, checksum)
        VALUES (?, ?, ?, ?, ?, ?)";
    statement::execute(connection, sql, params![tenant, agent_id, day, calls, usage, checksum]).map(drop)
}
