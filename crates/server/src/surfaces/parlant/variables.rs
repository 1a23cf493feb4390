//! Context variables: what can be known about customers, and what is.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use petasos_core::customer;
use petasos_core::key::KeyScope;
use petasos_engine::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::errors::Detail;
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::problem::Problem;
use crate::query::Query;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    let (all, one, value) = (
        "/parlant/context-variables",
        "/parlant/context-variables/{variableId}",
        "/parlant/context-variables/{variableId}/{key}",
    );
    Api::default()
        .get(
            all,
            routing::get(list),
            Operation::new::<Vec<Variable>>("parlantListVariables", "All context variables.", read)
                .fails_with::<Detail>(),
        )
        .post(
            all,
            routing::post(create),
            Operation::new::<Variable>("parlantCreateVariable", "Makes a context variable.", write)
                .takes::<CreateVariable>()
                .creates()
                .fails_with::<Detail>(),
        )
        .delete(
            all,
            routing::delete(delete_all),
            Operation::new::<()>("parlantDeleteVariables", "Removes all context variables.", write)
                .empty()
                .fails_with::<Detail>(),
        )
        .get(
            one,
            routing::get(get),
            Operation::new::<VariableWithValues>("parlantGetVariable", "A context variable.", read)
                .query("include_values", "Its values too.", json!({ "type": "boolean", "default": true }))
                .fails_with::<Detail>(),
        )
        .patch(
            one,
            routing::patch(change),
            Operation::new::<Variable>("parlantChangeVariable", "Changes a context variable.", write)
                .takes::<ChangeVariable>()
                .fails_with::<Detail>(),
        )
        .delete(
            one,
            routing::delete(delete),
            Operation::new::<()>("parlantDeleteVariable", "Removes a context variable.", write)
                .empty()
                .fails_with::<Detail>(),
        )
        .get(
            value,
            routing::get(get_value),
            Operation::new::<VariableValue>("parlantGetValue", "What is known about a customer.", read)
                .fails_with::<Detail>(),
        )
        .put(
            value,
            routing::put(set_value),
            Operation::new::<VariableValue>("parlantSetValue", "Sets what is known about a customer.", write)
                .takes::<SetValue>()
                .fails_with::<Detail>(),
        )
        .delete(
            value,
            routing::delete(delete_value),
            Operation::new::<()>("parlantDeleteValue", "Forgets what is known about a customer.", write)
                .empty()
                .fails_with::<Detail>(),
        )
}

/// Something that can be known about customers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ParlantVariable")]
struct Variable {
    id: String,
    name: String,
    description: Option<String>,
    tool_id: Option<Value>,
    freshness_rules: Option<String>,
    tags: Vec<String>,
}

impl From<customer::ContextVariable> for Variable {
    fn from(variable: customer::ContextVariable) -> Self {
        let customer::ContextVariable { id, name, description } = variable;
        Variable { id, name, description, tool_id: None, freshness_rules: None, tags: Vec::new() }
    }
}

/// A variable with its values.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ParlantVariableWithValues")]
struct VariableWithValues {
    context_variable: Variable,
    /// By customer.
    key_value_pairs: Option<BTreeMap<String, VariableValue>>,
}

/// What is known about a customer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ParlantVariableValue")]
struct VariableValue {
    id: String,
    last_modified: String,
    data: Value,
}

impl From<customer::VariableValue> for VariableValue {
    fn from(value: customer::VariableValue) -> Self {
        VariableValue { id: value.id, last_modified: format!("{:.3}", value.updated_at), data: value.data }
    }
}

/// What a variable is made with.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantCreateVariable")]
struct CreateVariable {
    name: String,
    description: Option<String>,
}

/// What can be changed about a variable.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantChangeVariable")]
struct ChangeVariable {
    name: Option<String>,
    description: Option<String>,
}

/// What is to be known about a customer.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantSetValue")]
struct SetValue {
    data: Value,
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
) -> Result<Json<Vec<Variable>>, Problem> {
    let variables = engine.context_variables(&tenant).await?;
    Ok(Json(variables.into_iter().map(Variable::from).collect()))
}

async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Body(body): Body<CreateVariable>,
) -> Result<(StatusCode, Json<Variable>), Problem> {
    let made = engine.create_context_variable(&tenant, &body.name, body.description.as_deref()).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

async fn delete_all(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
) -> Result<StatusCode, Problem> {
    for variable in engine.context_variables(&tenant).await? {
        match engine.delete_context_variable(&tenant, &variable.id).await {
            // Somebody else was faster.
            Ok(()) | Err(petasos_engine::Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn get(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(variable): Path<String>,
    query: Query,
) -> Result<Json<VariableWithValues>, Problem> {
    let found = engine.context_variable(&tenant, &variable).await?;
    let wanted = query.parsed("include_values", "true or false")?.unwrap_or(true);
    let key_value_pairs = if wanted {
        let values = engine.variable_values(&tenant, &variable).await?;
        Some(values.into_iter().map(|(customer, value)| (customer, value.into())).collect())
    } else {
        None
    };
    Ok(Json(VariableWithValues { context_variable: found.into(), key_value_pairs }))
}

async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(variable): Path<String>,
    Body(body): Body<ChangeVariable>,
) -> Result<Json<Variable>, Problem> {
    let mut changed = engine.context_variable(&tenant, &variable).await?;
    changed.name = body.name.unwrap_or(changed.name);
    changed.description = body.description.or(changed.description);
    Ok(Json(engine.change_context_variable(&tenant, changed).await?.into()))
}

async fn delete(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(variable): Path<String>,
) -> Result<StatusCode, Problem> {
    engine.delete_context_variable(&tenant, &variable).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn get_value(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path((variable, key)): Path<(String, String)>,
) -> Result<Json<VariableValue>, Problem> {
    Ok(Json(engine.variable_value(&tenant, &variable, &key).await?.into()))
}

async fn set_value(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path((variable, key)): Path<(String, String)>,
    Body(body): Body<SetValue>,
) -> Result<Json<VariableValue>, Problem> {
    Ok(Json(engine.set_variable_value(&tenant, &variable, &key, body.data).await?.into()))
}

async fn delete_value(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path((variable, key)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    engine.delete_variable_value(&tenant, &variable, &key).await?;
    Ok(StatusCode::NO_CONTENT)
}
