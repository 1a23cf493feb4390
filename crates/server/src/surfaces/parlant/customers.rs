//! Customers in raw shape.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing;
use jiff::Timestamp;
use petasos_core::customer;
use petasos_core::ids::TenantId;
use petasos_core::key::KeyScope;
use petasos_engine::{Engine, NewCustomer};
use petasos_store::{Bearer, CustomerChange, Order, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::GUEST;
use super::errors::Detail;
use super::tags::{ChangeTags, of_all};
use super::types::Listed;
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::problem::Problem;
use crate::query::Query;
use crate::rows::{self, Pages};
use crate::surfaces::conversation::requests::{Listing, OldestFirst};
use crate::surfaces::conversation::{Patch, delete_customer};
use crate::valid_keys::Until;

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
            routing::delete(delete_customer),
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

impl Customer {
    fn of(customer: customer::Customer, tags: Vec<String>) -> Self {
        Customer {
            id: customer.id,
            creation_utc: format!("{:.3}", customer.created_at),
            name: customer.name,
            metadata: customer.metadata.into_iter().map(|(key, value)| (key, as_text(value))).collect(),
            tags,
        }
    }

    /// Who stands for the customer of sessions that have none.
    fn guest() -> Self {
        Customer {
            id: GUEST.to_owned(),
            creation_utc: format!("{:.3}", Timestamp::UNIX_EPOCH),
            name: "Guest".to_owned(),
            metadata: Map::new(),
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
    /// Ids of tags.
    tags: Option<Vec<String>>,
}

/// What can be changed about a customer.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantChangeCustomer")]
struct ChangeCustomer {
    name: Option<String>,
    metadata: Option<Patch>,
    tags: Option<ChangeTags>,
}

async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Body(body): Body<CreateCustomer>,
) -> Result<(StatusCode, Json<Customer>), Problem> {
    let CreateCustomer { name, id, metadata, tags } = body;
    let tags = ChangeTags::adding(tags);
    tags.check(&engine, &tenant).await?;
    let metadata = metadata.unwrap_or_default();
    let new = NewCustomer { id, name, metadata, variables: Map::new() };
    let made = engine.create_customer(&tenant, new).await?.customer;
    let tags = tags.carry_out(&engine, &tenant, (Bearer::Customer, &made.id)).await?;
    Ok((StatusCode::CREATED, Json(Customer::of(made, tags))))
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    query: Query,
    until: Until,
) -> Result<Response, Problem> {
    let order = if OldestFirst(true).unless(&query)? { Order::Ascending } else { Order::Descending };
    if query.text("limit").is_some() {
        let page = engine.customers(&tenant, order, query.page()?).await?;
        let items = with_tags(&engine, &tenant, page.items).await?;
        let total_count = engine.count_customers(&tenant).await?;
        let listing: Listing<Customer> = Listing::of(Page { items, next: page.next }, total_count);
        return Ok(Json(listing).into_response());
    }
    let read = move |page| {
        let (engine, tenant) = (engine.clone(), tenant.clone());
        async move {
            let Page { items, next } = engine.customers(&tenant, order, page).await?;
            let shown = with_tags(&engine, &tenant, items).await?;
            Ok(Page { items: shown.iter().map(rows::json).collect::<Result<_, _>>()?, next })
        }
    };
    rows::respond("[".into(), Pages::new(read, "]"), until).await
}

async fn with_tags(
    engine: &Engine,
    tenant: &TenantId,
    customers: Vec<customer::Customer>,
) -> Result<Vec<Customer>, Problem> {
    let ids = customers.iter().map(|customer| customer.id.clone());
    let mut tags = of_all(engine, tenant, Bearer::Customer, ids).await?;
    let shown = |customer: customer::Customer| {
        let tags = tags.remove(&customer.id).unwrap_or_default();
        Customer::of(customer, tags)
    };
    Ok(customers.into_iter().map(shown).collect())
}

async fn get(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(customer): Path<String>,
) -> Result<Json<Customer>, Problem> {
    match engine.customer(&tenant, &customer).await {
        // Sessions that nobody is named for show it, so it can be looked up.
        Err(petasos_engine::Error::NotFound { .. }) if customer == GUEST => Ok(Json(Customer::guest())),
        found => {
            let tags = ChangeTags::default().carry_out(&engine, &tenant, (Bearer::Customer, &customer));
            Ok(Json(Customer::of(found?.customer, tags.await?)))
        }
    }
}

async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(customer): Path<String>,
    Body(body): Body<ChangeCustomer>,
) -> Result<Json<Customer>, Problem> {
    let tags = body.tags.unwrap_or_default();
    tags.check(&engine, &tenant).await?;
    let metadata = body.metadata.unwrap_or_default().into_merge();
    let change = CustomerChange { name: body.name, metadata, variables: Map::new() };
    let changed = engine.change_customer(&tenant, &customer, change).await?.customer;
    let tags = tags.carry_out(&engine, &tenant, (Bearer::Customer, &customer)).await?;
    Ok(Json(Customer::of(changed, tags)))
}
