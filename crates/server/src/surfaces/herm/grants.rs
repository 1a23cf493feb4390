//! Grants: permissions that a user gave an agent for good, with `user.tool_confirmation` and scope `always`.

use axum::Json;
use axum::extract::{Path, State};
use axum::routing;
use petasos_core::grant::{self, CommandGrant};
use petasos_core::key::KeyScope;
use petasos_engine::{Engine, UserGrant};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::Deleted;
use crate::auth::{ReadsSessions, WritesSessions};
use crate::openapi::{Api, Operation};
use crate::page::Page;
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    Api::default()
        .get(
            "/v1/agents/{agentId}/grants",
            routing::get(list),
            optional_user(Operation::new::<Page<Grant>>(
                "listGrants",
                "Lists the tools and commands that a user allowed for good.",
                read,
            )),
        )
        .delete(
            "/v1/agents/{agentId}/grants/{grant}",
            routing::delete(revoke),
            optional_user(Operation::new::<Deleted>(
                "revokeGrant",
                "Revokes a grant, named by its id or its tool: calls ask again.",
                write,
            )),
        )
}

fn optional_user(operation: Operation) -> Operation {
    let schema = json!({ "type": "string", "minLength": 1 });
    operation.query("userId", "The user who gave the permission; all users unless given.", schema)
}

/// A permission that a user gave for good.
#[derive(Serialize, JsonSchema)]
struct Grant {
    id: String,
    #[serde(rename = "userId")]
    user_id: String,
    /// The tool that runs without asking, or `danger:` and the key of a danger that no longer asks.
    tool: String,
    /// The commands of the tool that run without asking; without a pattern, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    /// The keys of the dangers that commands of the pattern may have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
}

impl From<UserGrant> for Grant {
    fn from(UserGrant { user_id, text }: UserGrant) -> Self {
        let id = id_of(&text);
        match grant::Grant::command(&text) {
            Some(CommandGrant { tool, pattern, dangers }) => {
                Grant { id, user_id, tool, pattern: Some(pattern), reasons: dangers }
            }
            None => Grant { id, user_id, tool: text, pattern: None, reasons: Vec::new() },
        }
    }
}

/// The id of a grant. The same permission has the same id for every agent and user.
fn id_of(text: &str) -> String {
    let hash: String = Sha256::digest(text).iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("grant_{hash}")
}

/// The user that the query names, if it names one.
fn user(query: &Query) -> Option<&str> {
    query.text("userId").filter(|user_id| !user_id.is_empty())
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(agent): Path<String>,
    query: Query,
) -> Result<Json<Page<Grant>>, Problem> {
    let grants = engine.grants(&tenant, &id("agent", &agent)?, user(&query)).await?;
    Ok(Json(Page::new(grants.into_iter().map(Grant::from).collect(), None)))
}

async fn revoke(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path((agent, named)): Path<(String, String)>,
    query: Query,
) -> Result<Json<Deleted>, Problem> {
    let agent_id = id("agent", &agent)?;
    let grants = engine.grants(&tenant, &agent_id, user(&query)).await?;
    let named_so = |grant: &UserGrant| {
        let is_of_tool = grant::Grant::command(&grant.text).is_some_and(|command| command.tool == named);
        is_of_tool || grant.text == named || id_of(&grant.text) == named
    };
    let meant: Vec<UserGrant> = grants.into_iter().filter(named_so).collect();
    if meant.is_empty() {
        return Err(Problem::not_found("grant", &named));
    }
    for grant in &meant {
        engine.revoke_grant(&tenant, &agent_id, grant).await?;
    }
    Ok(Json(Deleted { id: named, deleted: true }))
}
