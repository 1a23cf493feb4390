//! Agents and their versions.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::agent::{AgentVersion, StoredDefinition};
use petasos_core::ids::{AgentId, TenantId};
use rusqlite::{Connection, Row, params};

use super::checksum::{self, Checksum};
use super::columns::{Json, Nanos, Parsed, damaged, failed, json, limit, nanos, time, unreadable};
use super::cursor::{self, Listing, Place};
use super::{SqliteStore, statement};
use crate::contract::{AgentStore, Page, PageRequest};
use crate::error::{Error, Result};

/// The columns that [`read_row`] reads: those of the version, then those of the agent.
const SELECT: &str = "SELECT v.tenant, v.id, v.version, v.definition, v.updated_at, v.checksum,
    a.tenant, a.id, a.version, a.created_at, a.archived_at, a.checksum
    FROM agents a LEFT JOIN agent_versions v ON v.tenant = a.tenant AND v.id = a.id";

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
    let row = AgentRow { version: 1, created_at: agent.created_at, archived_at: agent.archived_at };
    let sql = "INSERT INTO agents (version, created_at, archived_at, checksum, tenant, id) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT DO NOTHING";
    if row.write(connection, sql, &agent.tenant, &agent.id).map_err(failed(context()))? == 0 {
        return Err(Error::AlreadyExists { what: what(&agent.id) });
    }
    insert_version(connection, agent).map_err(failed(context()))
}

fn add_version(connection: &Connection, agent: &AgentVersion) -> Result<()> {
    let context = || format!("add version {} of {}", agent.version, what(&agent.id));
    let row = AgentRow::read(connection, &agent.tenant, &agent.id)?
        .ok_or_else(|| Error::NotFound { what: what(&agent.id) })?;
    if row.version.checked_add(1) != Some(agent.version) {
        let expected = u64::from(agent.version).saturating_sub(1);
        return Err(Error::Stale { what: what(&agent.id), expected, actual: u64::from(row.version) });
    }
    let row = AgentRow { version: agent.version, ..row };
    row.write(connection, UPDATE, &agent.tenant, &agent.id).map_err(failed(context()))?;
    insert_version(connection, agent).map_err(failed(context()))
}

fn insert_version(connection: &Connection, agent: &AgentVersion) -> rusqlite::Result<()> {
    let sql = "INSERT INTO agent_versions (tenant, id, version, definition, updated_at, checksum)
        VALUES (?, ?, ?, ?, ?, ?)";
    let (tenant, id, updated_at) = (agent.tenant.as_str(), agent.id.as_str(), Nanos(agent.updated_at));
    let definition = json(&StoredDefinition(agent.definition.clone()))?;
    let checksum = checksum::of(&[&tenant, &id, &agent.version, &definition, &updated_at])?;
    let values = params![tenant, id, agent.version, definition, updated_at, checksum];
    statement::execute(connection, sql, values).map(drop)
}

/// What is kept of an agent beside its versions.
#[derive(Debug, Clone, Copy)]
struct AgentRow {
    version: u32,
    created_at: Timestamp,
    archived_at: Option<Timestamp>,
}

const UPDATE: &str = "UPDATE agents SET version = ?, created_at = ?, archived_at = ?, checksum = ?
    WHERE tenant = ? AND id = ?";

impl AgentRow {
    fn read(connection: &Connection, tenant: &TenantId, id: &AgentId) -> Result<Option<Self>> {
        let sql = "SELECT tenant, id, version, created_at, archived_at, checksum FROM agents
            WHERE tenant = ? AND id = ?";
        let values = [tenant.as_str(), id.as_str()];
        statement::first(connection, sql, values, |row| AgentRow::from_columns(row, 0))
            .map_err(unreadable(connection, what(id)))
    }

    /// Reads and checks the six columns from `first` on.
    fn from_columns(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        checksum::check(row, first + 5, Checksum::default().columns(row, first..first + 5)?.finish())?;
        let created_at = row.get::<_, Nanos>(first + 3)?.0;
        Ok(AgentRow { version: row.get(first + 2)?, created_at, archived_at: time(row.get(first + 4)?) })
    }

    /// Runs a statement that takes the row, and says how many it changed.
    fn write(
        self,
        connection: &Connection,
        sql: &str,
        tenant: &TenantId,
        id: &AgentId,
    ) -> rusqlite::Result<usize> {
        let (tenant, id, version) = (tenant.as_str(), id.as_str(), self.version);
        let (created_at, archived_at) = (Nanos(self.created_at), nanos(self.archived_at));
        let checksum = checksum::of(&[&tenant, &id, &version, &created_at, &archived_at])?;
        statement::execute(connection, sql, params![version, created_at, archived_at, checksum, tenant, id])
    }
}

pub(super) fn get(
    connection: &Connection,
    tenant: &TenantId,
    id: &AgentId,
    version: Option<u32>,
) -> Result<Option<AgentVersion>> {
    let sql = format!("{SELECT} WHERE a.tenant = ? AND a.id = ? AND v.version = coalesce(?, a.version)");
    let values = params![tenant.as_str(), id.as_str(), version];
    let agent =
        statement::first(connection, &sql, values, read_row).map_err(unreadable(connection, what(id)))?;
    if agent.is_none() && version.is_none() && AgentRow::read(connection, tenant, id)?.is_some() {
        return Err(damaged(connection, what(id), "its newest version is missing"));
    }
    Ok(agent)
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
        Some(place) => {
            let values = params![tenant, count, place.at, place.id];
            statement::page(connection, &sql, values, wanted, read_row)
        }
        None => statement::page(connection, &sql, params![tenant, count], wanted, read_row),
    };
    let rows = rows.map_err(unreadable(connection, "an agent of the list"))?;
    cursor::page(Listing::Agents, rows, |agent| {
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
    let rows = statement::page(connection, &sql, values, wanted, read_row)
        .map_err(unreadable(connection, what(id)))?;
    cursor::page(Listing::AgentVersions, rows, |agent| {
        Ok(Place { at: i64::from(agent.version), id: agent.id.to_string() })
    })
}

fn archive(connection: &Connection, tenant: &TenantId, id: &AgentId, at: Option<Timestamp>) -> Result<()> {
    let row = AgentRow::read(connection, tenant, id)?.ok_or_else(|| Error::NotFound { what: what(id) })?;
    let row = AgentRow { archived_at: at, ..row };
    row.write(connection, UPDATE, tenant, id).map(drop).map_err(failed(format!("archive {}", what(id))))
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<AgentVersion> {
    checksum::check(row, 5, Checksum::default().columns(row, 0..5)?.finish())?;
    let AgentRow { created_at, archived_at, .. } = AgentRow::from_columns(row, 6)?;
    let Json(StoredDefinition(definition)) = row.get(3)?;
    Ok(AgentVersion {
        tenant: row.get::<_, Parsed<_>>(0)?.0,
        id: row.get::<_, Parsed<_>>(1)?.0,
        version: row.get(2)?,
        definition,
        created_at,
        updated_at: row.get::<_, Nanos>(4)?.0,
        archived_at,
    })
}
