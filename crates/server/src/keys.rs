//! `/v1/keys`: API keys, for administrators.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use petasos_core::ids::{KeyId, TenantId};
use petasos_core::key::{KeyRecord, KeyScope};
use petasos_engine::{Engine, NewKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::auth::Administers;
use crate::body::{Body, refuse_too_long};
use crate::openapi::{Api, Operation};
use crate::problem::Problem;
use crate::query::Query;
use crate::server::App;

const MAX_NAME_CHARS: usize = 256;

pub(crate) fn api() -> Api {
    let tenant = json!({ "type": "string" });
    Api::default()
        .post(
            "/v1/keys",
            post(create),
            Operation::new::<NewlyMade>(
                "createKey",
                "Makes a key, which is shown this once.",
                KeyScope::Admin,
            )
            .takes::<CreateKey>()
            .creates(),
        )
        .get(
            "/v1/keys",
            get(list),
            Operation::new::<Keys>("listKeys", "All keys, newest first.", KeyScope::Admin).query(
                "tenant",
                "Only those of this tenant.",
                tenant,
            ),
        )
        .delete(
            "/v1/keys/{keyId}",
            delete(revoke),
            Operation::new::<Key>(
                "revokeKey",
                "Revokes a key: it opens nothing from now on.",
                KeyScope::Admin,
            ),
        )
}

/// What a key is made with.
#[derive(Deserialize, JsonSchema)]
struct CreateKey {
    /// What its owner calls it.
    #[serde(default)]
    name: String,
    /// The tenant that it opens; the administrator's unless given.
    tenant: Option<TenantId>,
    /// What it may do; everything but administration unless given.
    scopes: Option<Vec<KeyScope>>,
}

/// A key without anything that opens a door.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Key {
    id: KeyId,
    tenant: TenantId,
    name: String,
    scopes: Vec<KeyScope>,
    created_at: String,
    revoked_at: Option<String>,
}

/// A key that was just made.
#[derive(Serialize, JsonSchema)]
struct NewlyMade {
    #[serde(flatten)]
    shown: Key,
    /// What opens the door. It is shown this once.
    key: String,
}

/// All keys.
#[derive(Serialize, JsonSchema)]
struct Keys {
    data: Vec<Key>,
}

impl From<KeyRecord> for Key {
    fn from(key: KeyRecord) -> Self {
        Key {
            id: key.id,
            tenant: key.tenant,
            name: key.name,
            scopes: key.scopes,
            created_at: key.created_at.to_string(),
            revoked_at: key.revoked_at.map(|at| at.to_string()),
        }
    }
}

async fn create(
    State(engine): State<Engine>,
    Administers(tenant): Administers,
    Body(body): Body<CreateKey>,
) -> Result<(StatusCode, Json<NewlyMade>), Problem> {
    refuse_too_long("name", &body.name, MAX_NAME_CHARS)?;
    let every_day = || KeyScope::ALL.into_iter().filter(|scope| *scope != KeyScope::Admin).collect();
    let new = NewKey {
        tenant: body.tenant.unwrap_or(tenant),
        name: body.name,
        scopes: body.scopes.unwrap_or_else(every_day),
    };
    let (key, record) = engine.create_key(new).await?;
    Ok((StatusCode::CREATED, Json(NewlyMade { shown: record.into(), key })))
}

async fn list(State(engine): State<Engine>, _: Administers, query: Query) -> Result<Json<Keys>, Problem> {
    let tenant = query.parsed::<TenantId>("tenant", "the name of a tenant")?;
    let keys = engine.keys(tenant.as_ref()).await?;
    Ok(Json(Keys { data: keys.into_iter().map(Key::from).collect() }))
}

async fn revoke(
    State(app): State<App>,
    _: Administers,
    Path(id): Path<String>,
) -> Result<Json<Key>, Problem> {
    let id: KeyId = id.parse().map_err(|_| Problem::not_found("key", &id))?;
    app.engine.revoke_key(&id).await?;
    let key = app.engine.keys(None).await?.into_iter().find(|key| key.id == id);
    let key = key.ok_or_else(|| Problem::not_found("key", id.as_str()))?;
    app.settings.valid_keys.revoke(&key.hash);
    Ok(Json(key.into()))
}
