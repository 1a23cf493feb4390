//! Grants: tools that a user allowed an agent for good, with `user.tool_confirmation` and scope `always`.

use axum::Json;
use axum::extract::{Path, State};
use axum::routing;
use petasos_core::key::KeyScope;
use petasos_engine::Engine;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Deleted, for_user, user_scope};
use crate::auth::{ReadsSessions, WritesSessions};
use crate::openapi::{Api, Operation};
use crate::page::Page;
use crate::problem::Problem;
use crate::query::Query;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    Api::default()
        .get(
            "/v1/agents/{agentId}/grants",
            routing::get(list),
            for_user(Operation::new::<Page<Grant>>(
                "listGrants",
                "Tools that a user allowed for good.",
                read,
            )),
        )
        .delete(
            "/v1/agents/{agentId}/grants/{tool}",
            routing::delete(revoke),
            for_user(Operation::new::<Deleted>(
                "revokeGrant",
                "Takes a grant back: the tool asks again.",
                write,
            )),
        )
}

/// A tool that runs without asking.
#[derive(Serialize, JsonSchema)]
struct Grant {
    tool: String,
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(agent): Path<String>,
    query: Query,
) -> Result<Json<Page<Grant>>, Problem> {
    let tools = engine.grants(&user_scope(tenant, &agent, &query)?).await?;
    Ok(Json(Page::new(tools.into_iter().map(|tool| Grant { tool }).collect(), None)))
}

async fn revoke(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path((agent, tool)): Path<(String, String)>,
    query: Query,
) -> Result<Json<Deleted>, Problem> {
    engine.revoke_grant(&user_scope(tenant, &agent, &query)?, &tool).await?;
    Ok(Json(Deleted { id: tool, deleted: true }))
}
