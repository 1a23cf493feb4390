//! `/v1/keys`: API keys, for administrators.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get};
use axum::{Json, Router};
use petasos_core::ids::{KeyId, TenantId};
use petasos_core::key::{KeyRecord, KeyScope};
use petasos_engine::{Engine, NewKey};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::auth::Administers;
use crate::body::Body;
use crate::problem::Problem;
use crate::query::Query;
use crate::server::App;

pub(crate) fn router() -> Router<App> {
    Router::new().route("/v1/keys", get(list).post(create)).route("/v1/keys/{id}", delete(revoke))
}

#[derive(Deserialize)]
struct CreateKey {
    #[serde(default)]
    name: String,
    tenant: Option<TenantId>,
    scopes: Option<Vec<KeyScope>>,
}

async fn create(
    State(engine): State<Engine>,
    Administers(tenant): Administers,
    Body(body): Body<CreateKey>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let every_day = || KeyScope::ALL.into_iter().filter(|scope| *scope != KeyScope::Admin).collect();
    let new = NewKey {
        tenant: body.tenant.unwrap_or(tenant),
        name: body.name,
        scopes: body.scopes.unwrap_or_else(every_day),
    };
    let (key, record) = engine.create_key(new).await?;
    let mut shown = show(&record);
    shown["key"] = key.into();
    Ok((StatusCode::CREATED, Json(shown)))
}

async fn list(State(engine): State<Engine>, _: Administers, query: Query) -> Result<Json<Value>, Problem> {
    let tenant = query.parsed::<TenantId>("tenant", "the name of a tenant")?;
    let keys = engine.keys(tenant.as_ref()).await?;
    Ok(Json(json!({ "data": keys.iter().map(show).collect::<Vec<_>>() })))
}

async fn revoke(
    State(engine): State<Engine>,
    _: Administers,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let id: KeyId = id.parse().map_err(|_| Problem::not_found("key", &id))?;
    engine.revoke_key(&id).await?;
    let keys = engine.keys(None).await?;
    let key = keys.iter().find(|key| key.id == id).ok_or_else(|| Problem::not_found("key", id.as_str()))?;
    Ok(Json(show(key)))
}

/// A key without anything that opens a door.
fn show(key: &KeyRecord) -> Value {
    json!({
        "id": key.id.as_str(),
        "tenant": key.tenant.as_str(),
        "name": key.name,
        "scopes": key.scopes,
        "createdAt": key.created_at.to_string(),
        "revokedAt": key.revoked_at.map(|at| at.to_string()),
    })
}
