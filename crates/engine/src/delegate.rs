//! Carries out `delegate_task`: subagents, each a session of its own under the one that called.
//!
//! A subagent's id follows from the call, and what it was told is in the caller's log before it exists. So a call that
//! goes on after a restart finds its subagents, running or done, and starts none twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use petasos_core::event::{Block, ThreadMessage, ThreadUsage, UserInterrupt, UserMessage};
use petasos_core::ids::{SessionId, TenantId, ThreadId, ToolUseId};
use petasos_core::settings::{SessionSettings, ThreadSettings};
use petasos_core::step::{Input, UserEvent};
use petasos_hooks::{Observation, TurnInfo};
use petasos_tools::ToolOutput;
use petasos_tools::delegate_task::{self, Task};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::actor::Report;
use crate::ended::{Ended, until_done};
use crate::engine::{Engine, Shared};
use crate::error::{Error, Result};
use crate::observers;
use crate::reader::Start;
use crate::sessions::NewSession;
use crate::tool_run::ToolRun;

/// The surface of subagents' sessions, by which lists leave them out.
pub(crate) const PLATFORM: &str = "thread";

/// Runs all subagents of a call and waits for them.
pub(crate) async fn run(job: &ToolRun) -> ToolOutput {
    let tasks = match delegate_task::parse(&job.call.input, job.around.shared.limits.call_threads) {
        Ok(tasks) => tasks,
        Err(problem) => return ToolOutput::error(problem),
    };
    let Ok(tool_use_id) = job.call.id.parse::<ToolUseId>() else {
        return ToolOutput::error("The call has no id.");
    };
    let threads = tasks.iter().enumerate().map(|(index, task)| {
        let thread_id = ThreadId::for_call(&tool_use_id, index);
        Thread { job, task, tool_use_id: tool_use_id.clone(), thread_id }.run()
    });
    let (results, stops): (Vec<Value>, Vec<Observation>) = join_all(threads).await.into_iter().unzip();
    for stop in stops {
        observers::tell(&job.around.shared, job.around.turn.clone(), stop);
    }
    let failed = results.iter().all(|result| result["status"] != "completed");
    ToolOutput { is_error: failed, ..ToolOutput::ok(Value::from(results).to_string()) }
}

/// One subagent of a call.
struct Thread<'a> {
    job: &'a ToolRun,
    task: &'a Task,
    tool_use_id: ToolUseId,
    thread_id: ThreadId,
}

impl Thread<'_> {
    /// Says what became of it, for the model and for hooks.
    async fn run(self) -> (Value, Observation) {
        let started = Instant::now();
        let ended = match self.carry_out().await {
            Ok(ended) => ended,
            // The call goes on at the next start, so it must not end now.
            Err(Error::ShuttingDown | Error::CutOff) => std::future::pending().await,
            Err(error) => Ended { status: "failed", text: format!("The subagent could not be run: {error}") },
        };
        let stop = stopped(&self.thread_id.session_id(), ended.status, ended.text.clone(), started);
        let result =
            json!({ "thread_id": self.thread_id.as_str(), "status": ended.status, "result": ended.text });
        (result, stop)
    }

    async fn carry_out(&self) -> Result<Ended> {
        let engine = Engine { shared: Arc::clone(&self.job.around.shared) };
        let (tenant, session_id) = (&self.job.around.header.tenant, self.thread_id.session_id());
        let told = self.message(self.task.message(), None);
        self.note(Input::ThreadSent { tool_use_id: self.job.call.id.clone(), message: told }).await?;
        self.create(&engine, &session_id).await?;
        let guard = InterruptOnDrop::new(self.job, &session_id);
        let detail = engine.session_detail(tenant, &session_id).await?;
        if detail.state.turn.is_none() && detail.state.view.stop_reason.is_none() {
            let (child_session_id, goal) = (session_id.clone(), self.task.goal.clone());
            let start = Observation::SubagentStart { child_session_id, goal };
            observers::tell(&self.job.around.shared, self.job.around.turn.clone(), start);
            observers::tell_after(&self.job.around.shared, &session_id, &self.job.around.header.id);
            let content = vec![Block::text(self.task.message())];
            engine.send(tenant, &session_id, vec![UserEvent::Message(UserMessage::new(content))]).await?;
        }
        let reader = engine.follow(tenant, &session_id, Start::After(0)).await?;
        let ended = until_done(reader, |_| {}).await?;
        guard.disarm();
        let view = engine.session(tenant, &session_id).await?.view;
        let spent = ThreadUsage { usage: view.usage, model_calls: view.model_calls };
        let said = self.message(ended.text.clone(), Some(spent));
        self.note(Input::ThreadReceived { tool_use_id: self.job.call.id.clone(), message: said }).await?;
        Ok(ended)
    }

    fn message(&self, text: String, spent: Option<ThreadUsage>) -> ThreadMessage {
        ThreadMessage {
            thread_id: self.thread_id.clone(),
            content: vec![Block::text(text)],
            tool_use_id: Some(self.tool_use_id.clone()),
            spent,
        }
    }

    /// Has something written into the caller's log, and waits until it is there.
    async fn note(&self, input: Input) -> Result<()> {
        let (written, is_written) = oneshot::channel();
        if self.job.reports.send(Report::Note { input, written }).is_err() {
            return Err(Error::ShuttingDown);
        }
        is_written.await.map_err(|_| Error::ShuttingDown)
    }

    /// Makes the subagent's session, unless it is there already.
    async fn create(&self, engine: &Engine, session_id: &SessionId) -> Result<()> {
        let header = &self.job.around.header;
        let mut settings = SessionSettings::clone(&self.job.around.settings);
        settings.client_tools.clear();
        settings.thread = Some(ThreadSettings {
            parent: header.id.clone(),
            tools: self.task.tools.clone(),
            allowed: BTreeSet::clone(&self.job.around.allowed),
        });
        let new = NewSession {
            id: Some(session_id.clone()),
            agent_version: Some(header.agent_version),
            user_id: header.lasting_user().map(str::to_owned),
            title: Some(self.task.goal.chars().take(80).collect()),
            platform: PLATFORM.to_owned(),
            settings: Some(settings),
            ..NewSession::default()
        };
        match engine.create_session(&header.tenant, &header.agent_id, new).await {
            Err(Error::Store(petasos_store::Error::AlreadyExists { .. })) => Ok(()),
            other => other.map(drop),
        }
    }
}

/// What hooks are told about a subagent that has ended.
fn stopped(session_id: &SessionId, status: &'static str, summary: String, started: Instant) -> Observation {
    let duration_ms = started.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
    Observation::SubagentStop { child_session_id: session_id.clone(), summary, status, duration_ms }
}

/// Stops a subagent when the call that waits for it is stopped. When the server stops, the subagent is left alone: it
/// goes on at the next start, and so does the call.
struct InterruptOnDrop {
    shared: Arc<Shared>,
    tenant: TenantId,
    turn: TurnInfo,
    session_id: SessionId,
    started: Instant,
    armed: bool,
}

impl InterruptOnDrop {
    fn new(job: &ToolRun, session_id: &SessionId) -> Self {
        InterruptOnDrop {
            shared: Arc::clone(&job.around.shared),
            tenant: job.around.header.tenant.clone(),
            turn: job.around.turn.clone(),
            session_id: session_id.clone(),
            started: Instant::now(),
            armed: true,
        }
    }

    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        if !self.armed || self.shared.closing.is_cancelled() {
            return;
        }
        let stop = stopped(&self.session_id, "interrupted", String::new(), self.started);
        observers::tell(&self.shared, self.turn.clone(), stop);
        let engine = Engine { shared: Arc::clone(&self.shared) };
        let (tenant, session_id) = (self.tenant.clone(), self.session_id.clone());
        self.shared.tasks.spawn(async move {
            let message = Some("The agent that gave this work was interrupted.".to_owned());
            let interrupt = vec![UserEvent::Interrupt(UserInterrupt { message })];
            if let Err(error) = engine.send(&tenant, &session_id, interrupt).await {
                tracing::warn!(%session_id, %error, "a subagent could not be interrupted");
            }
        });
    }
}
