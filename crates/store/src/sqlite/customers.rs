//! Customers.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::customer::Customer;
use petasos_core::ids::TenantId;
use rusqlite::{Connection, Row, params};
use serde_json::{Map, Value};

use super::checksum::{self, Checksum};
use super::columns::{Json, Nanos, Parsed, Unsigned, failed, json, limit, unreadable};
use super::cursor::{self, Listing, Place};
use super::{SqliteStore, statement, tags, variables};
use crate::contract::{Bearer, CustomerChange, CustomerStore, Order, Page, PageRequest};
use crate::error::{Error, Result};

const SELECT: &str =
    "SELECT tenant, id, name, metadata, created_at, checksum FROM customers WHERE tenant = ?";

impl CustomerStore for SqliteStore {
    fn create_customer(
        &self,
        customer: Customer,
        variables: Map<String, Value>,
    ) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.writer().write(move |connection| create(connection, &customer, &variables)))
    }

    fn customer<'a>(&'a self, tenant: &'a TenantId, id: &'a str) -> BoxFuture<'a, Result<Option<Customer>>> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        Box::pin(self.readers().read(move |connection| get(connection, &tenant, &id)))
    }

    fn customers<'a>(
        &'a self,
        tenant: &'a TenantId,
        order: Order,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<Customer>>> {
        let tenant = tenant.clone();
        Box::pin(async move {
            let start = cursor::start(Listing::Customers, &page)?;
            self.readers().read(move |connection| list(connection, &tenant, order, start, page.limit)).await
        })
    }

    fn count_customers<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<u64>> {
        let tenant = tenant.clone();
        let count = move |connection: &Connection| {
            let sql = "SELECT count(*) FROM customers WHERE tenant = ?";
            let read_row = |row: &Row<'_>| row.get::<_, Unsigned>(0);
            let count = statement::first(connection, sql, [tenant.as_str()], read_row);
            Ok(count.map_err(failed("count customers"))?.map_or(0, |count| count.0))
        };
        Box::pin(self.readers().read(count))
    }

    fn change_customer<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a str,
        change: CustomerChange,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool>> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        let write = move |connection: &Connection| {
            let Some(mut customer) = get(connection, &tenant, &id)? else { return Ok(false) };
            customer.name = change.name.clone().unwrap_or(customer.name);
            for (key, value) in &change.metadata {
                match value {
                    Value::Null => drop(customer.metadata.remove(key)),
                    value => drop(customer.metadata.insert(key.clone(), value.clone())),
                }
            }
            put(connection, &customer)
                .and_then(|()| variables::merge(connection, &tenant, &id, &change.variables, at))
                .map_err(failed(format!("change {}", what(&id))))?;
            Ok(true)
        };
        Box::pin(self.writer().write(write))
    }

    fn delete_customer<'a>(&'a self, tenant: &'a TenantId, id: &'a str) -> BoxFuture<'a, Result<bool>> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        let delete = move |connection: &Connection| {
            let run = || {
                variables::forget_customer(connection, &tenant, &id)?;
                tags::forget(connection, &tenant, (Bearer::Customer, &id))?;
                let sql = "DELETE FROM customers WHERE tenant = ? AND id = ?";
                statement::execute(connection, sql, params![tenant.as_str(), id])
            };
            Ok(run().map_err(failed(format!("delete {}", what(&id))))? > 0)
        };
        Box::pin(self.writer().write(delete))
    }
}

fn what(id: &str) -> String {
    format!("customer {id}")
}

pub(super) fn create(
    connection: &Connection,
    customer: &Customer,
    variables: &Map<String, Value>,
) -> Result<()> {
    if get(connection, &customer.tenant, &customer.id)?.is_some() {
        return Err(Error::AlreadyExists { what: what(&customer.id) });
    }
    let Customer { tenant, id, created_at, .. } = customer;
    put(connection, customer)
        .and_then(|()| variables::merge(connection, tenant, id, variables, *created_at))
        .map_err(failed(format!("create {}", what(id))))
}

fn put(connection: &Connection, customer: &Customer) -> rusqlite::Result<()> {
    let (tenant, metadata) = (customer.tenant.as_str(), json(&customer.metadata)?);
    let (id, name, created_at) = (&customer.id, &customer.name, Nanos(customer.created_at));
    let checksum = checksum::of(&[&tenant, id, name, &metadata, &created_at])?;
    let sql = "INSERT INTO customers (tenant, id, name, metadata, created_at, checksum) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET name = excluded.name, metadata = excluded.metadata, checksum = excluded.checksum";
    statement::execute(connection, sql, params![tenant, id, name, metadata, created_at, checksum]).map(drop)
}

fn get(connection: &Connection, tenant: &TenantId, id: &str) -> Result<Option<Customer>> {
    let sql = format!("{SELECT} AND id = ?");
    statement::first(connection, &sql, params![tenant.as_str(), id], read_row)
        .map_err(unreadable(connection, what(id)))
}

fn list(
    connection: &Connection,
    tenant: &TenantId,
    order: Order,
    start: Option<Place>,
    wanted: usize,
) -> Result<Page<Customer>> {
    let (comparison, direction, first) = match order {
        Order::Ascending => (">", "ASC", Place { at: i64::MIN, id: String::new() }),
        Order::Descending => ("<", "DESC", Place { at: i64::MAX, id: String::new() }),
    };
    let Place { at, id } = start.unwrap_or(first);
    let sql = format!(
        "{SELECT} AND (created_at, id) {comparison} (?, ?)
        ORDER BY created_at {direction}, id {direction} LIMIT ?"
    );
    let values = params![tenant.as_str(), at, id, limit(wanted.saturating_add(1))];
    let rows = statement::page(connection, &sql, values, wanted, read_row)
        .map_err(unreadable(connection, "a customer".to_owned()))?;
    cursor::page(Listing::Customers, rows, |customer| {
        let at = Nanos(customer.created_at).value().map_err(failed("list customers"))?;
        Ok(Place { at, id: customer.id.clone() })
    })
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<Customer> {
    checksum::check(row, 5, Checksum::default().columns(row, 0..5)?.finish())?;
    Ok(Customer {
        tenant: row.get::<_, Parsed<_>>(0)?.0,
        id: row.get(1)?,
        name: row.get(2)?,
        metadata: row.get::<_, Json<_>>(3)?.0,
        created_at: row.get::<_, Nanos>(4)?.0,
    })
}
