//! Customers: whom conversations are for, and what the agent knows about them.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use petasos_core::key::KeyScope;
use petasos_engine::{CustomerDetail, Engine, NewCustomer};
use petasos_store::CustomerChange;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::errors::CodedError;
use super::patch::Patch;
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::problem::Problem;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    Api::default()
        .post(
            "/conversation/customers",
            routing::post(create),
            Operation::new::<Customer>("createCustomer", "Registers a customer.", write)
                .takes::<CreateCustomer>()
                .creates()
                .fails_with::<CodedError>(),
        )
        .get(
            "/conversation/customers/{customerId}",
            routing::get(get),
            Operation::new::<Customer>("getCustomer", "A customer.", read).fails_with::<CodedError>(),
        )
        .patch(
            "/conversation/customers/{customerId}",
            routing::patch(change),
            Operation::new::<Customer>("changeCustomer", "Changes what is known about a customer.", write)
                .takes::<ChangeCustomer>()
                .fails_with::<CodedError>(),
        )
        .delete(
            "/conversation/customers/{customerId}",
            routing::delete(delete),
            Operation::new::<()>("deleteCustomer", "Forgets a customer. Its sessions stay.", write)
                .empty()
                .fails_with::<CodedError>(),
        )
}

/// Somebody whom conversations are for.
#[derive(Serialize, JsonSchema)]
struct Customer {
    id: String,
    name: String,
    created_at: String,
    /// The application's own tags, which the agent does not see.
    metadata: Map<String, Value>,
    /// What the agent knows about the customer.
    variables: Map<String, Value>,
}

impl From<CustomerDetail> for Customer {
    fn from(CustomerDetail { customer, variables }: CustomerDetail) -> Self {
        let created_at = format!("{:.3}", customer.created_at);
        Customer { id: customer.id, name: customer.name, created_at, metadata: customer.metadata, variables }
    }
}

/// What a customer is registered with.
#[derive(Deserialize, JsonSchema)]
struct CreateCustomer {
    /// One is made unless given.
    id: Option<String>,
    name: String,
    metadata: Option<Map<String, Value>>,
    variables: Option<Map<String, Value>>,
}

/// What can be changed about a customer.
#[derive(Deserialize, JsonSchema)]
struct ChangeCustomer {
    name: Option<String>,
    metadata: Option<Patch>,
    variables: Option<Patch>,
}

async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Body(body): Body<CreateCustomer>,
) -> Result<(StatusCode, Json<Customer>), Problem> {
    let new = NewCustomer {
        id: body.id,
        name: body.name,
        metadata: body.metadata.unwrap_or_default(),
        variables: body.variables.unwrap_or_default(),
    };
    Ok((StatusCode::CREATED, Json(engine.create_customer(&tenant, new).await?.into())))
}

async fn get(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(customer): Path<String>,
) -> Result<Json<Customer>, Problem> {
    Ok(Json(engine.customer(&tenant, &customer).await?.into()))
}

async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(customer): Path<String>,
    Body(body): Body<ChangeCustomer>,
) -> Result<Json<Customer>, Problem> {
    let change = CustomerChange {
        name: body.name,
        metadata: body.metadata.unwrap_or_default().into_merge(),
        variables: body.variables.unwrap_or_default().into_merge(),
    };
    Ok(Json(engine.change_customer(&tenant, &customer, change).await?.into()))
}

pub(crate) async fn delete(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(customer): Path<String>,
) -> Result<StatusCode, Problem> {
    engine.delete_customer(&tenant, &customer).await?;
    Ok(StatusCode::NO_CONTENT)
}
