//! Context variables: what can be known about customers, and what is.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use petasos_core::customer;
use petasos_core::ids::TenantId;
use petasos_core::key::KeyScope;
use petasos_engine::Engine;
use petasos_store::Bearer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::errors::Detail;
use super::tags::{ChangeTags, of_all};
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
                .query("tag_id", "Only those with this tag.", json!({ "type": "string" }))
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
            routing::delete(delete_many),
            Operation::new::<()>("parlantDeleteVariables", "Removes all context variables.", write)
                .query("tag_id", "Only those with this tag.", json!({ "type": "string" }))
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

impl Variable {
    fn of(variable: customer::ContextVariable, tags: Vec<String>) -> Self {
        let customer::ContextVariable { id, name, description } = variable;
        Variable { id, name, description, tool_id: None, freshness_rules: None, tags }
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
    /// Ids of tags. A variable that has some is known to the agents that have one of them.
    tags: Option<Vec<String>>,
}

/// What can be changed about a variable.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantChangeVariable")]
struct ChangeVariable {
    name: Option<String>,
    description: Option<String>,
    tags: Option<ChangeTags>,
}

/// What is to be known about a customer.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantSetValue")]
struct SetValue {
    data: Value,
}

/// The variables of a tenant, or those with the tag that is asked for.
async fn wanted(engine: &Engine, tenant: &TenantId, query: &Query) -> Result<Vec<Variable>, Problem> {
    let variables = engine.context_variables(tenant).await?;
    let ids = variables.iter().map(|variable| variable.id.clone());
    let mut tags = of_all(engine, tenant, Bearer::Variable, ids).await?;
    let shown = variables.into_iter().map(|variable| {
        let tags = tags.remove(&variable.id).unwrap_or_default();
        Variable::of(variable, tags)
    });
    let has_tag = |variable: &Variable| {
        query.text("tag_id").is_none_or(|wanted| variable.tags.iter().any(|tag| tag == wanted))
    };
    Ok(shown.filter(has_tag).collect())
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    query: Query,
) -> Result<Json<Vec<Variable>>, Problem> {
    Ok(Json(wanted(&engine, &tenant, &query).await?))
}

async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Body(body): Body<CreateVariable>,
) -> Result<(StatusCode, Json<Variable>), Problem> {
    let tags = ChangeTags::adding(body.tags);
    tags.check(&engine, &tenant).await?;
    let made = engine.create_context_variable(&tenant, &body.name, body.description.as_deref()).await?;
    let tags = tags.carry_out(&engine, &tenant, (Bearer::Variable, &made.id)).await?;
    Ok((StatusCode::CREATED, Json(Variable::of(made, tags))))
}

async fn delete_many(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    query: Query,
) -> Result<StatusCode, Problem> {
    for variable in wanted(&engine, &tenant, &query).await? {
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
    let tags = ChangeTags::default().carry_out(&engine, &tenant, (Bearer::Variable, &variable)).await?;
    Ok(Json(VariableWithValues { context_variable: Variable::of(found, tags), key_value_pairs }))
}

async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(variable): Path<String>,
    Body(body): Body<ChangeVariable>,
) -> Result<Json<Variable>, Problem> {
    let tags = body.tags.unwrap_or_default();
    tags.check(&engine, &tenant).await?;
    let mut changed = engine.context_variable(&tenant, &variable).await?;
    changed.name = body.name.unwrap_or(changed.name);
    changed.description = body.description.or(changed.description);
    let changed = engine.change_context_variable(&tenant, changed).await?;
    let tags = tags.carry_out(&engine, &tenant, (Bearer::Variable, &variable)).await?;
    Ok(Json(Variable::of(changed, tags)))
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
