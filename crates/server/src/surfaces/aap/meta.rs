//! `GET /aap/meta`: what can be talked to.

use axum::extract::State;
use axum::response::Response;
use axum::routing;
use futures_util::future::join_all;
use petasos_core::agent::AgentVersion;
use petasos_core::ids::TenantId;
use petasos_core::key::KeyScope;
use petasos_engine::Engine;
use petasos_store::Page;

use super::settings::show_option;
use super::types::{
    AgentCapabilities, AgentInfo, ApplicationCapabilities, ErrorBody, GetMeta, HistoryCapabilities,
    ImageCapabilities, StreamCapabilities, ToolSpec, VERSION,
};
use crate::auth::ReadsAgents;
use crate::openapi::{Api, Operation};
use crate::problem::Problem;
use crate::rows::{self, Pages};
use crate::valid_keys::Until;

pub(super) fn api() -> Api {
    let summary = "The version of the protocol, and the agents with what they can do.";
    let operation =
        Operation::new::<GetMeta>("aapMeta", summary, KeyScope::AgentsRead).fails_with::<ErrorBody>();
    Api::default().get("/aap/meta", routing::get(meta), operation)
}

async fn meta(
    State(engine): State<Engine>,
    ReadsAgents(tenant): ReadsAgents,
    until: Until,
) -> Result<Response, Problem> {
    let head = rows::head(&GetMeta { version: VERSION, agents: Vec::new() }, "]}")?;
    let read = move |page| {
        let (engine, tenant) = (engine.clone(), tenant.clone());
        async move {
            let Page { items, next } = engine.agents(&tenant, page).await?;
            // All at once, so that many slow MCP servers cost no more time than one.
            let infos = join_all(items.iter().map(|agent| info(&engine, &tenant, agent))).await;
            Ok(Page { items: infos.iter().map(rows::json).collect::<Result<_, _>>()?, next })
        }
    };
    rows::respond(head, Pages::new(read, "]}"), until).await
}

async fn info(engine: &Engine, tenant: &TenantId, agent: &AgentVersion) -> AgentInfo {
    let definition = &agent.definition;
    let tools = engine.server_tools(tenant, definition, None).await.known.into_iter().map(|tool| ToolSpec {
        name: tool.spec.name.clone(),
        title: None,
        description: tool.spec.description.clone(),
        parameters: tool.spec.input_schema.as_object().cloned().unwrap_or_default(),
    });
    AgentInfo {
        name: agent.id.to_string(),
        title: Some(definition.name.clone()),
        version: agent.version.to_string(),
        description: definition.metadata.get("description").and_then(|text| text.as_str()).map(str::to_owned),
        tools: tools.collect(),
        options: definition.options.iter().map(show_option).collect(),
        capabilities: AgentCapabilities {
            history: HistoryCapabilities::default(),
            stream: StreamCapabilities::default(),
            application: ApplicationCapabilities::default(),
            image: engine.takes_images(&definition.model).then(ImageCapabilities::default),
        },
    }
}
