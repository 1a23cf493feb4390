//! Customers in raw shape.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use petasos_core::customer;
use petasos_core::key::KeyScope;
use petasos_engine::{Engine, NewCustomer};
use petasos_store::{CustomerChange, Order, PageRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::errors::Detail;
use super::types::{Listed, Listing};
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::problem::Problem;
use crate::query::Query;
use crate::surfaces::conversation::{Patch, oldest_first};

const PAGE: usize = 100;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    Api::default()
        .post(
            "/parlant/customers",
            routing::post(create),
            Operation::new::<Customer>("parlantCreateCustomer", "Registers a customer.", write)
                .takes::<CreateCustomer>()
                .creates()
                .fails_with::<Detail>(),
        )
        .get(
            "/parlant/customers",
            routing::get(list),
            Operation::new::<Listed<Customer>>("parlantListCustomers", "Customers, oldest first.", read)
                .query(
                    "sort",
                    "Oldest or newest first.",
                    json!({ "enum": ["asc", "desc"], "default": "asc" }),
                )
                .query(
                    "limit",
                    "Asks for a page.",
                    json!({ "type": "integer", "minimum": 1, "maximum": 100 }),
                )
                .query("cursor", "`next_cursor` of the page before.", json!({ "type": "string" }))
                .fails_with::<Detail>(),
        )
        .get(
            "/parlant/customers/{customerId}",
            routing::get(get),
            Operation::new::<Customer>("parlantGetCustomer", "A customer.", read).fails_with::<Detail>(),
        )
        .patch(
            "/parlant/customers/{customerId}",
            routing::patch(change),
            Operation::new::<Customer>("parlantChangeCustomer", "Changes a customer.", write)
                .takes::<ChangeCustomer>()
                .fails_with::<Detail>(),
        )
        .delete(
            "/parlant/customers/{customerId}",
            routing::delete(delete),
            Operation::new::<()>("parlantDeleteCustomer", "Forgets a customer.", write)
                .empty()
                .fails_with::<Detail>(),
        )
}

/// A customer in raw shape.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ParlantCustomer")]
struct Customer {
    id: String,
    creation_utc: String,
    name: String,
    metadata: Map<String, Value>,
    tags: Vec<String>,
}

impl From<customer::Customer> for Customer {
    fn from(customer: customer::Customer) -> Self {
        Customer {
            id: customer.id,
            creation_utc: format!("{:.3}", customer.created_at),
            name: customer.name,
            metadata: customer.metadata.into_iter().map(|(key, value)| (key, as_text(value))).collect(),
            tags: Vec::new(),
        }
    }
}

/// Clients of this dialect expect texts; anything else is shown as its JSON.
fn as_text(value: Value) -> Value {
    match value {
        Value::String(_) => value,
        value => Value::String(value.to_string()),
    }
}

/// What a customer is registered with.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantCreateCustomer")]
struct CreateCustomer {
    name: String,
    id: Option<String>,
    metadata: Option<Map<String, Value>>,
}

/// What can be changed about a customer.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantChangeCustomer")]
struct ChangeCustomer {
    name: Option<String>,
    metadata: Option<Patch>,
}

async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Body(body): Body<CreateCustomer>,
) -> Result<(StatusCode, Json<Customer>), Problem> {
    let CreateCustomer { name, id, metadata } = body;
    let metadata = metadata.unwrap_or_default();
    let new = NewCustomer { id, name, metadata, variables: Map::new() };
    Ok((StatusCode::CREATED, Json(engine.create_customer(&tenant, new).await?.customer.into())))
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    query: Query,
) -> Result<Json<Listed<Customer>>, Problem> {
    let order = if oldest_first(&query)?.unwrap_or(true) { Order::Ascending } else { Order::Descending };
    if query.text("limit").is_some() {
        let page = engine.customers(&tenant, order, query.page()?).await?;
        let next_cursor = page.next.map(|cursor| cursor.0);
        return Ok(Json(Listed::Page(Listing {
            items: page.items.into_iter().map(Customer::from).collect(),
            total_count: engine.count_customers(&tenant).await?,
            has_more: next_cursor.is_some(),
            next_cursor,
        })));
    }
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = engine.customers(&tenant, order, PageRequest { after, limit: PAGE }).await?;
        all.extend(page.items.into_iter().map(Customer::from));
        after = page.next;
        if after.is_none() {
            return Ok(Json(Listed::All(all)));
        }
    }
}

async fn get(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(customer): Path<String>,
) -> Result<Json<Customer>, Problem> {
    Ok(Json(engine.customer(&tenant, &customer).await?.customer.into()))
}

async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(customer): Path<String>,
    Body(body): Body<ChangeCustomer>,
) -> Result<Json<Customer>, Problem> {
    let metadata = body.metadata.unwrap_or_default().into_merge();
    let change = CustomerChange { name: body.name, metadata, variables: Map::new() };
    Ok(Json(engine.change_customer(&tenant, &customer, change).await?.customer.into()))
}

async fn delete(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(customer): Path<String>,
) -> Result<StatusCode, Problem> {
    engine.delete_customer(&tenant, &customer).await?;
    Ok(StatusCode::NO_CONTENT)
}
