//! What plugins can have done to sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::{Block, ToolEffect, UserMessage, UserSteer};
use petasos_core::state::{Call, CallKind, Progress};
use petasos_core::step::UserEvent;
use petasos_hooks::SessionRef;
use petasos_hooks::python::{AgentTurn, Sessions};
use petasos_tools::Dispatch;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::engine::{Engine, now};
use crate::error::Result;
use crate::mcp::McpTools;
use crate::observers::ToldEnds;
use crate::plugin_tools::text;
use crate::surroundings::Surroundings;
use crate::tool_run::ToolRun;
use crate::turn_info::turn_info;

impl Sessions for Engine {
    fn call_tool(
        &self,
        session: SessionRef,
        tool: String,
        input: Map<String, Value>,
    ) -> BoxFuture<'_, std::result::Result<String, String>> {
        async move {
            let run = self.run_beside(&session).await.map_err(|error| error.to_string())?;
            text(run.call(&tool, input).await)
        }
        .boxed()
    }

    fn run_agent(&self, turn: AgentTurn) -> BoxFuture<'_, std::result::Result<Value, String>> {
        async move { self.run_plugin_agent(turn).await.map_err(|error| error.to_string()) }.boxed()
    }

    fn say(&self, session: SessionRef, text: String) -> BoxFuture<'_, std::result::Result<(), String>> {
        async move {
            let SessionRef { tenant, session_id } = session;
            let message = UserEvent::Message(UserMessage::new(vec![Block::text(text.clone())]));
            if self.send(&tenant, &session_id, vec![message]).await.is_ok() {
                return Ok(());
            }
            // A turn is under way or waits for somebody, and takes guidance.
            let steer = UserEvent::Steer(UserSteer { message: text });
            let sent = self.send(&tenant, &session_id, vec![steer]).await;
            sent.map(drop).map_err(|error| error.to_string())
        }
        .boxed()
    }
}

impl Engine {
    /// A call beside those of the model, from which others are made by the session's rules.
    async fn run_beside(&self, session: &SessionRef) -> Result<ToolRun> {
        let detail = self.session_detail(&session.tenant, &session.session_id).await?;
        let (header, state) = (detail.header, detail.state);
        let thread = state.settings.as_ref().and_then(|settings| settings.thread.as_ref());
        let root = thread.map_or(&header.id, |thread| &thread.parent);
        let turn_id = state.turn_id().map(|id| id.to_string()).unwrap_or_default();
        let turn = turn_info(&self.shared, &header, state.model(&detail.agent), root, turn_id);
        let around = Surroundings {
            shared: Arc::clone(&self.shared),
            header: Arc::new(header),
            agent: detail.agent,
            settings: Arc::new(state.settings.clone().unwrap_or_default()),
            allowances: state.turn.as_ref().map(|turn| turn.allowances.clone()).unwrap_or_default(),
            allowed: Arc::new(state.allowed_tools.clone()),
            run: state.turn.as_ref().and_then(|turn| turn.run.clone()).map(Arc::from),
            mcp: McpTools::default(),
            told: ToldEnds::default(),
            turn,
        };
        // Nobody is told of its end: it is not a call of the log.
        let (reports, _) = mpsc::unbounded_channel();
        Ok(ToolRun {
            around,
            secrets: BTreeMap::new(),
            sudo_password: None,
            call: nothing(),
            effect: 0,
            reports,
        })
    }
}

/// The call from within which plugins make theirs.
fn nothing() -> Call {
    Call {
        id: String::new(),
        tool: String::new(),
        kind: CallKind::Builtin,
        input: Map::new(),
        effect: ToolEffect::ReadOnly,
        asked: false,
        sudo: None,
        progress: Progress::Started,
        created_at: now(),
        preview: None,
        danger: None,
        patterns: Vec::new(),
        budget: None,
        threads: BTreeMap::new(),
    }
}
