//! Agents and their versions.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::agent::AgentVersion;
use petasos_core::ids::{AgentId, TenantId};
use rusqlite::{Connection, Row, params};

use super::columns::{Json, Nanos, Parsed, failed, limit, nanos, time};
use super::cursor::{self, Listing, Place};
use super::{SqliteStore, statement};
use crate::contract::{AgentStore, Page, PageRequest};
use crate::error::{Error, Result};

const SELECT: &str =
    "SELECT v.id, v.tenant, v.version, v.definition, a.created_at, v.updated_at, a.archived_at
    FROM agents a JOIN agent_versions v ON v.tenant = a.tenant AND v.id = a.id";

impl AgentStore for SqliteStore {
    fn create_agent(&self, agent: AgentVersion) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer().write(move |connection| create(connection, &agent)))
    }

    fn add_agent_version(&self, agent: AgentVersion) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer().write(move |connection| add_version(connection, &agent)))
    }

    fn agent<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a AgentId,
        version: Option<u32>,
    ) -> BoxFuture<'a, Result<Option<AgentVersion>>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        Box::pin(self.readers().read(move |connection| get(connection, &tenant, &id, version)))
    }

    fn agents<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<AgentVersion>>> {
        let tenant = tenant.clone();
        Box::pin(async move {
            let start = cursor::start(Listing::Agents, &page)?;
            self.readers().read(move |connection| list(connection, &tenant, start.as_ref(), page.limit)).await
        })
    }

    fn agent_versions<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a AgentId,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<AgentVersion>>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        Box::pin(async move {
            let start = cursor::start(Listing::AgentVersions, &page)?;
            let below = start.map_or(i64::MAX, |place| place.at);
            self.readers().read(move |connection| versions(connection, &tenant, &id, below, page.limit)).await
        })
    }

    fn archive_agent<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a AgentId,
        at: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<()>> {
        let (tenant, id) = (tenant.clone(), id.clone());
        Box::pin(self.writer().write(move |connection| archive(connection, &tenant, &id, at)))
    }
}

fn what(id: &AgentId) -> String {
    format!("agent {id}")
}

fn create(connection: &Connection, agent: &AgentVersion) -> Result<()> {
    let context = || format!("create {}", what(&agent.id));
    if agent.version != 1 {
        let problem = format!("a new agent starts with version 1, not {}", agent.version);
        return Err(failed(context())(problem));
    }
    let sql = "INSERT INTO agents (tenant, id, version, created_at, archived_at) VALUES (?, ?, 1, ?, ?)
        ON CONFLICT DO NOTHING";
    let values =
        params![agent.tenant.as_str(), agent.id.as_str(), Nanos(agent.created_at), nanos(agent.archived_at)];
    if statement::execute(connection, sql, values).map_err(failed(context()))? == 0 {
        return Err(Error::AlreadyExists { what: what(&agent.id) });
    }
    insert_version(connection, agent).map_err(failed(context()))
}

fn add_version(connection: &Connection, agent: &AgentVersion) -> Result<()> {
    let context = || format!("add version {} of {}", agent.version, what(&agent.id));
    let sql = "SELECT version FROM agents WHERE tenant = ? AND id = ?";
    let values = params![agent.tenant.as_str(), agent.id.as_str()];
    let actual = statement::first(connection, sql, values, |row| row.get::<_, u32>(0))
        .map_err(failed(context()))?
        .ok_or_else(|| Error::NotFound { what: what(&agent.id) })?;
    if actual.checked_add(1) != Some(agent.version) {
        let expected = u64::from(agent.version).saturating_sub(1);
        return Err(Error::Stale { what: what(&agent.id), expected, actual: u64::from(actual) });
    }
    let sql = "UPDATE agents SET version = ? WHERE tenant = ? AND id = ?";
    let values = params![agent.version, agent.tenant.as_str(), agent.id.as_str()];
    statement::execute(connection, sql, values).map_err(failed(context()))?;
    insert_version(connection, agent).map_err(failed(context()))
}

fn insert_version(connection: &Connection, agent: &AgentVersion) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO agent_versions (tenant, id, version, definition, updated_at) VALUES (?, ?, ?, ?, ?)";
    let values = params![
        agent.tenant.as_str(),
        agent.id.as_str(),
        agent.version,
        Json(&agent.definition),
        Nanos(agent.updated_at)
    ];
    statement::execute(connection, sql, values).map(drop)
}

pub(super) fn get(
    connection: &Connection,
    tenant: &TenantId,
    id: &AgentId,
    version: Option<u32>,
) -> Result<Option<AgentVersion>> {
    let sql = format!("{SELECT} WHERE a.tenant = ? AND a.id = ? AND v.version = coalesce(?, a.version)");
    let values = params![tenant.as_str(), id.as_str(), version];
    statement::first(connection, &sql, values, read_row).map_err(failed(format!("read {}", what(id))))
}

fn list(
    connection: &Connection,
    tenant: &TenantId,
    start: Option<&Place>,
    wanted: usize,
) -> Result<Page<AgentVersion>> {
    let after = if start.is_some() { "AND (a.created_at, a.id) < (?3, ?4)" } else { "" };
    let sql = format!(
        "{SELECT} AND v.version = a.version WHERE a.tenant = ?1 AND a.archived_at IS NULL {after}
        ORDER BY a.created_at DESC, a.id DESC LIMIT ?2"
    );
    let (tenant, count) = (tenant.as_str(), limit(wanted.saturating_add(1)));
    let rows = match start {
        Some(place) => statement::all(connection, &sql, params![tenant, count, place.at, place.id], read_row),
        None => statement::all(connection, &sql, params![tenant, count], read_row),
    };
    let rows = rows.map_err(failed("list agents"))?;
    cursor::page(Listing::Agents, wanted, rows, |agent| {
        let at = Nanos(agent.created_at).value().map_err(failed("list agents"))?;
        Ok(Place { at, id: agent.id.to_string() })
    })
}

fn versions(
    connection: &Connection,
    tenant: &TenantId,
    id: &AgentId,
    below: i64,
    wanted: usize,
) -> Result<Page<AgentVersion>> {
    let sql =
        format!("{SELECT} WHERE a.tenant = ? AND a.id = ? AND v.version < ? ORDER BY v.version DESC LIMIT ?");
    let values = params![tenant.as_str(), id.as_str(), below, limit(wanted.saturating_add(1))];
    let rows = statement::all(connection, &sql, values, read_row)
        .map_err(failed(format!("list versions of {}", what(id))))?;
    cursor::page(Listing::AgentVersions, wanted, rows, |agent| {
        Ok(Place { at: i64::from(agent.version), id: agent.id.to_string() })
    })
}

fn archive(connection: &Connection, tenant: &TenantId, id: &AgentId, at: Option<Timestamp>) -> Result<()> {
    let sql = "UPDATE agents SET archived_at = ? WHERE tenant = ? AND id = ?";
    let values = params![nanos(at), tenant.as_str(), id.as_str()];
    match statement::execute(connection, sql, values).map_err(failed(format!("archive {}", what(id))))? {
        0 => Err(Error::NotFound { what: what(id) }),
        _ => Ok(()),
    }
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<AgentVersion> {
    Ok(AgentVersion {
        id: row.get::<_, Parsed<_>>(0)?.0,
        tenant: row.get::<_, Parsed<_>>(1)?.0,
        version: row.get(2)?,
        definition: row.get::<_, Json<_>>(3)?.0,
        created_at: row.get::<_, Nanos>(4)?.0,
        updated_at: row.get::<_, Nanos>(5)?.0,
        archived_at: time(row.get(6)?),
    })
}
