//! Agents that user code starts: a turn that nobody attends, in a session of its own.

use petasos_core::agent::{AgentDefinition, AgentVersion};
use petasos_core::event::{Block, Payload, UserInterrupt, UserMessage};
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::settings::SessionSettings;
use petasos_core::step::UserEvent;
use petasos_hooks::python::AgentTurn;
use serde_json::{Map, Value, json};

use crate::agents::AgentChange;
use crate::ended::until_done;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::reader::Start;
use crate::sessions::NewSession;

/// The agent that all of them are versions of.
const ID: &str = "pluginAgent";
const NAME: &str = "Agent of plugins";
const INSTRUCTIONS: &str = "You carry out what you are told. Nobody watches, and nobody can be asked.";

impl Engine {
    /// Runs a turn for user code and says what came of it.
    pub(crate) async fn run_plugin_agent(&self, turn: AgentTurn) -> Result<Value> {
        let tenant = TenantId::default_tenant();
        let session_id = match &turn.session_id {
            Some(id) => id.parse().map_err(|_| missing("session", id))?,
            None => self.plugin_session(&tenant, &turn).await?,
        };
        let reader = self.follow(&tenant, &session_id, Start::Now).await?;
        let message = UserMessage::new(vec![Block::text(turn.text.as_str())]);
        self.send(&tenant, &session_id, vec![UserEvent::Message(message)]).await?;
        let most = turn.most_calls.unwrap_or(u32::MAX);
        let ended = until_done(reader, |payload| {
            if matches!(payload, Payload::ModelStarted(started) if started.call > most) {
                self.stop_plugin_agent(&tenant, &session_id, most);
            }
        })
        .await?;
        let view = self.session(&tenant, &session_id).await?.view;
        Ok(json!({
            "final_response": ended.text,
            "session_id": session_id,
            "completed": ended.status == "completed",
            "interrupted": ended.status == "interrupted",
            "failed": ended.status == "failed",
            "error": (ended.status == "failed").then_some(&ended.text),
            "api_calls": view.model_calls,
            "model": turn.model,
        }))
    }

    async fn plugin_session(&self, tenant: &TenantId, turn: &AgentTurn) -> Result<SessionId> {
        let agent = self.plugin_agent(tenant, turn).await?;
        let new = NewSession {
            agent_version: Some(agent.version),
            platform: turn.platform.clone(),
            settings: Some(SessionSettings { unattended: true, ..SessionSettings::default() }),
            ..NewSession::default()
        };
        Ok(self.create_session(tenant, &agent.id, new).await?.header.id)
    }

    /// The version of the agent that has this model and these instructions.
    async fn plugin_agent(&self, tenant: &TenantId, turn: &AgentTurn) -> Result<AgentVersion> {
        let id: AgentId = ID.parse().map_err(|_| missing("agent", ID))?;
        let instructions = turn.instructions.as_deref().unwrap_or(INSTRUCTIONS);
        let fields = json!({ "name": NAME, "model": turn.model, "instructions": instructions });
        let fields = fields.as_object().cloned().unwrap_or_default();
        match self.agent(tenant, &id, None).await {
            Err(Error::NotFound { .. }) => self.create_agent(tenant, Some(id), definition(fields)?).await,
            Err(error) => Err(error),
            Ok(_) => self.change_agent(tenant, &id, AgentChange { fields, expected_version: None }).await,
        }
    }

    /// Ends a turn that makes more model calls than its caller wants, without waiting for that.
    fn stop_plugin_agent(&self, tenant: &TenantId, session_id: &SessionId, most: u32) {
        let (engine, tenant, session_id) = (self.clone(), tenant.clone(), session_id.clone());
        self.shared.tasks.spawn(async move {
            let message = Some(format!("It made {most} model calls, the most that its caller allows."));
            let interrupt = vec![UserEvent::Interrupt(UserInterrupt { message })];
            if let Err(error) = engine.send(&tenant, &session_id, interrupt).await {
                tracing::warn!(%session_id, %error, "an agent of a plugin could not be stopped");
            }
        });
    }
}

fn missing(kind: &'static str, id: &str) -> Error {
    Error::NotFound { kind, id: id.to_owned() }
}

fn definition(fields: Map<String, Value>) -> Result<AgentDefinition> {
    let read = serde_json::from_value(Value::Object(fields));
    read.map_err(|error| Error::Invalid { field: "agent".to_owned(), problem: error.to_string() })
}
