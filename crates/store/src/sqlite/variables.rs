//! What can be known about customers, and what is.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::customer::{ContextVariable, EVERYBODY, FOR_AGENT, VariableValue, WITH_TAG};
use petasos_core::ids::{AgentId, TenantId};
use rusqlite::{Connection, Row, params};
use serde_json::{Map, Value};

use super::checksum::{self, Checksum};
use super::columns::{Json, Nanos, failed, json, unreadable};
use super::{SqliteStore, statement, tags};
use crate::contract::{Bearer, KnownValue, VariableStore};
use crate::error::{Error, Result};

/// What the ids of variables and values start with; their keys follow.
const VARIABLE: &str = "var_";
const VALUE: &str = "value_";

/// The columns of a variable, and those of a value.
const OF_VARIABLE: &str = "v.tenant, v.name, v.description, v.checksum, v.key";
const OF_VALUE: &str = "x.variable, x.customer, x.data, x.updated_at, x.checksum, x.key";

impl VariableStore for SqliteStore {
    fn variables<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Vec<ContextVariable>>> {
        let tenant = tenant.clone();
        let read = move |connection: &Connection| {
            let sql =
                format!("SELECT {OF_VARIABLE} FROM context_variables v WHERE v.tenant = ? ORDER BY v.key");
            statement::all(connection, &sql, [tenant.as_str()], |row| read_variable(row, 0))
                .map_err(unreadable(connection, "a context variable"))
        };
        Box::pin(self.readers().read(read))
    }

    fn create_variable<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
        description: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ContextVariable>> {
        let (tenant, name, description) = (tenant.clone(), name.to_owned(), description.map(str::to_owned));
        let write = move |connection: &Connection| {
            if named(connection, &tenant, &name)?.is_some() {
                return Err(exists(&name));
            }
            let key = insert(connection, &tenant, &name, description.as_deref())
                .map_err(failed(format!("create the context variable {name}")))?;
            Ok(ContextVariable { id: format!("{VARIABLE}{key}"), name, description })
        };
        Box::pin(self.writer().write(write))
    }

    fn change_variable<'a>(
        &'a self,
        tenant: &'a TenantId,
        variable: ContextVariable,
    ) -> BoxFuture<'a, Result<bool>> {
        let tenant = tenant.clone();
        let write = move |connection: &Connection| {
            let ContextVariable { id, name, description } = &variable;
            let Some(key) = key_of(VARIABLE, id) else { return Ok(false) };
            if named(connection, &tenant, name)?.is_some_and(|other| other != key) {
                return Err(exists(name));
            }
            let run = || {
                let checksum = checksum::of(&[&tenant.as_str(), name, description])?;
                let sql = "UPDATE context_variables SET name = ?, description = ?, checksum = ?
                    WHERE key = ? AND tenant = ?";
                let values = params![name, description, checksum, key, tenant.as_str()];
                statement::execute(connection, sql, values)
            };
            Ok(run().map_err(failed(format!("change the context variable {id}")))? > 0)
        };
        Box::pin(self.writer().write(write))
    }

    fn delete_variable<'a>(&'a self, tenant: &'a TenantId, id: &'a str) -> BoxFuture<'a, Result<bool>> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        let delete = move |connection: &Connection| {
            let Some(key) = key_of(VARIABLE, &id) else { return Ok(false) };
            let run = || {
                tags::forget(connection, &tenant, (Bearer::Variable, &id))?;
                let sql = "DELETE FROM context_variables WHERE key = ? AND tenant = ?";
                statement::execute(connection, sql, params![key, tenant.as_str()])
            };
            Ok(run().map_err(failed(format!("delete the context variable {id}")))? > 0)
        };
        Box::pin(self.writer().write(delete))
    }

    fn values_of<'a>(
        &'a self,
        tenant: &'a TenantId,
        customer: &'a str,
    ) -> BoxFuture<'a, Result<Vec<KnownValue>>> {
        let (tenant, customer) = (tenant.clone(), customer.to_owned());
        let read = move |connection: &Connection| {
            let sql = format!(
                "SELECT {OF_VARIABLE}, {OF_VALUE} FROM variable_values x JOIN context_variables v ON v.key = x.variable
                WHERE v.tenant = ? AND x.customer = ? ORDER BY v.key"
            );
            let read_row = |row: &Row<'_>| {
                Ok(KnownValue { variable: read_variable(row, 0)?, value: read_value(row, 5)?.1 })
            };
            statement::all(connection, &sql, params![tenant.as_str(), customer], read_row)
                .map_err(unreadable(connection, format!("what is known about customer {customer}")))
        };
        Box::pin(self.readers().read(read))
    }

    fn values_for<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
        customer: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<KnownValue>>> {
        let (tenant, agent_id) = (tenant.clone(), agent_id.clone());
        let customer = customer.map(str::to_owned);
        let read = move |connection: &Connection| {
            told(connection, &tenant, agent_id.as_str(), customer.as_deref())
                .map_err(unreadable(connection, "what is known about a customer"))
        };
        Box::pin(self.readers().read(read))
    }

    fn values_by_customer<'a>(
        &'a self,
        tenant: &'a TenantId,
        variable: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, VariableValue)>>> {
        let (tenant, id) = (tenant.clone(), variable.to_owned());
        let read = move |connection: &Connection| {
            let Some(key) = key_of(VARIABLE, &id) else { return Ok(Vec::new()) };
            let sql = format!(
                "SELECT {OF_VALUE} FROM variable_values x JOIN context_variables v ON v.key = x.variable
                WHERE v.tenant = ? AND v.key = ? ORDER BY x.key"
            );
            statement::all(connection, &sql, params![tenant.as_str(), key], |row| read_value(row, 0))
                .map_err(unreadable(connection, format!("the values of the context variable {id}")))
        };
        Box::pin(self.readers().read(read))
    }

    fn set_value<'a>(
        &'a self,
        tenant: &'a TenantId,
        variable: &'a str,
        customer: &'a str,
        data: Value,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<Option<VariableValue>>> {
        let (tenant, id, customer) = (tenant.clone(), variable.to_owned(), customer.to_owned());
        let write = move |connection: &Connection| {
            let Some(key) = key_of(VARIABLE, &id) else { return Ok(None) };
            let run = || {
                let sql = "SELECT 1 FROM context_variables WHERE key = ? AND tenant = ?";
                let is_there = statement::first(connection, sql, params![key, tenant.as_str()], |_| Ok(()))?;
                is_there.map(|()| set(connection, key, &customer, &data, at)).transpose()
            };
            let set = run().map_err(failed(format!("set the context variable {id}")))?;
            Ok(set.map(|key| VariableValue { id: format!("{VALUE}{key}"), data, updated_at: at }))
        };
        Box::pin(self.writer().write(write))
    }

    fn delete_value<'a>(
        &'a self,
        tenant: &'a TenantId,
        variable: &'a str,
        customer: &'a str,
    ) -> BoxFuture<'a, Result<bool>> {
        let (tenant, id, customer) = (tenant.clone(), variable.to_owned(), customer.to_owned());
        let delete = move |connection: &Connection| {
            let Some(key) = key_of(VARIABLE, &id) else { return Ok(false) };
            let sql = "DELETE FROM variable_values WHERE variable = ? AND customer = ?
                AND variable IN (SELECT key FROM context_variables WHERE tenant = ?)";
            let deleted = statement::execute(connection, sql, params![key, customer, tenant.as_str()]);
            Ok(deleted.map_err(failed(format!("forget the context variable {id} of {customer}")))? > 0)
        };
        Box::pin(self.writer().write(delete))
    }
}

fn told(
    connection: &Connection,
    tenant: &TenantId,
    agent_id: &str,
    customer: Option<&str>,
) -> rusqlite::Result<Vec<KnownValue>> {
    let sql = format!(
        "WITH agent_tags (tag) AS (SELECT tag FROM tagged WHERE tenant = ?1 AND kind = 'agent' AND id = ?2
            UNION ALL SELECT '{FOR_AGENT}' || ?2),
        variable_tags (key, tag) AS (SELECT v.key, t.tag FROM context_variables v
            JOIN tagged t ON t.tenant = ?1 AND t.kind = 'variable' AND t.id = '{VARIABLE}' || v.key WHERE v.tenant = ?1)
        SELECT {OF_VARIABLE}, {OF_VALUE} FROM variable_values x JOIN context_variables v ON v.key = x.variable
        WHERE v.tenant = ?1 AND (x.customer IN (?3, '{EVERYBODY}') OR x.customer IN (
                SELECT '{WITH_TAG}' || tag FROM tagged WHERE tenant = ?1 AND kind = 'customer' AND id = ?3))
            AND (NOT EXISTS (SELECT 1 FROM variable_tags w WHERE w.key = v.key) OR EXISTS (
                SELECT 1 FROM variable_tags w JOIN agent_tags USING (tag) WHERE w.key = v.key))
        ORDER BY v.key, CASE x.customer WHEN '{EVERYBODY}' THEN 0 WHEN ?3 THEN 2 ELSE 1 END, x.key"
    );
    let read_row =
        |row: &Row<'_>| Ok(KnownValue { variable: read_variable(row, 0)?, value: read_value(row, 5)?.1 });
    statement::all(connection, &sql, params![tenant.as_str(), agent_id, customer], read_row)
}

/// Sets and forgets what is known about a customer, by the names of variables, which are made if need be.
pub(super) fn merge(
    connection: &Connection,
    tenant: &TenantId,
    customer: &str,
    values: &Map<String, Value>,
    at: Timestamp,
) -> rusqlite::Result<()> {
    for (name, data) in values {
        let sql = "SELECT key FROM context_variables WHERE tenant = ? AND name = ?";
        let found: Option<i64> =
            statement::first(connection, sql, params![tenant.as_str(), name], |row| row.get(0))?;
        match (found, data) {
            (None, Value::Null) => {}
            (Some(key), Value::Null) => {
                let sql = "DELETE FROM variable_values WHERE variable = ? AND customer = ?";
                statement::execute(connection, sql, params![key, customer])?;
            }
            (found, data) => {
                let key = found.map_or_else(|| insert(connection, tenant, name, None), Ok)?;
                set(connection, key, customer, data, at)?;
            }
        }
    }
    Ok(())
}

/// Forgets all that is known about a customer.
pub(super) fn forget_customer(
    connection: &Connection,
    tenant: &TenantId,
    customer: &str,
) -> rusqlite::Result<()> {
    let sql = "DELETE FROM variable_values WHERE customer = ?
        AND variable IN (SELECT key FROM context_variables WHERE tenant = ?)";
    statement::execute(connection, sql, params![customer, tenant.as_str()]).map(drop)
}

fn exists(name: &str) -> Error {
    Error::AlreadyExists { what: format!("a context variable named {name}") }
}

/// The key in an id of ours.
fn key_of(prefix: &str, id: &str) -> Option<i64> {
    id.strip_prefix(prefix)?.parse().ok()
}

fn named(connection: &Connection, tenant: &TenantId, name: &str) -> Result<Option<i64>> {
    let sql = "SELECT key FROM context_variables WHERE tenant = ? AND name = ?";
    statement::first(connection, sql, params![tenant.as_str(), name], |row| row.get(0))
        .map_err(failed("find a context variable"))
}

fn insert(
    connection: &Connection,
    tenant: &TenantId,
    name: &str,
    description: Option<&str>,
) -> rusqlite::Result<i64> {
    let checksum = checksum::of(&[&tenant.as_str(), &name, &description])?;
    // By the time, so that an id does not tell how many variables other tenants have.
    let sql = "INSERT INTO context_variables (key, tenant, name, description, checksum)
        SELECT max(CAST(unixepoch('subsec') * 1000 AS INTEGER), coalesce(max(key), 0) + 1), ?, ?, ?, ?
        FROM context_variables";
    statement::execute(connection, sql, params![tenant.as_str(), name, description, checksum])?;
    Ok(connection.last_insert_rowid())
}

fn set(
    connection: &Connection,
    variable: i64,
    customer: &str,
    data: &Value,
    at: Timestamp,
) -> rusqlite::Result<i64> {
    let (data, at) = (json(data)?, Nanos(at));
    let checksum = checksum::of(&[&variable, &customer, &data, &at])?;
    let sql =
        "INSERT INTO variable_values (variable, customer, data, updated_at, checksum) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (variable, customer) DO UPDATE SET
            data = excluded.data, updated_at = excluded.updated_at, checksum = excluded.checksum
        RETURNING key";
    let values = params![variable, customer, data, at, checksum];
    connection.prepare_cached(sql)?.query_row(values, |row| row.get(0))
}

fn read_variable(row: &Row<'_>, from: usize) -> rusqlite::Result<ContextVariable> {
    checksum::check(row, from + 3, Checksum::default().columns(row, from..from + 3)?.finish())?;
    Ok(ContextVariable {
        id: format!("{VARIABLE}{}", row.get::<_, i64>(from + 4)?),
        name: row.get(from + 1)?,
        description: row.get(from + 2)?,
    })
}

fn read_value(row: &Row<'_>, from: usize) -> rusqlite::Result<(String, VariableValue)> {
    checksum::check(row, from + 4, Checksum::default().columns(row, from..from + 4)?.finish())?;
    let value = VariableValue {
        id: format!("{VALUE}{}", row.get::<_, i64>(from + 5)?),
        data: row.get::<_, Json<_>>(from + 2)?.0,
        updated_at: row.get::<_, Nanos>(from + 3)?.0,
    };
    Ok((row.get(from + 1)?, value))
}
