//! Carries out one call of a built-in tool or of a tool of an MCP server.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures_util::FutureExt;
use petasos_core::both_ends::both_ends;
use petasos_core::event::Block;
use petasos_core::ids::SessionId;
use petasos_core::state::{Call, CallKind};
use petasos_core::step::Input;
use petasos_hooks::{CallStatus, Observation, ToolResult};
use petasos_tools::{Dispatcher, Invocation, Redactor, ToolOutput, delegate_task};
use secrecy::SecretString;
use tokio::sync::mpsc;
use tracing::Instrument;

use crate::actor::Report;
use crate::surroundings::Surroundings;
use crate::{delegate, observers};

/// One tool call.
#[derive(Clone)]
pub(crate) struct ToolRun {
    pub(crate) around: Surroundings,
    /// What it finds in its environment.
    pub(crate) secrets: BTreeMap<String, SecretString>,
    /// The password that it was given.
    pub(crate) sudo_password: Option<SecretString>,
    pub(crate) call: Call,
    pub(crate) effect: u64,
    pub(crate) reports: mpsc::UnboundedSender<Report>,
}

/// Runs the tool and reports what came of it, whatever happens on the way.
pub(crate) async fn run(job: ToolRun) {
    let span = tracing::info_span!("tool_call", session_id = %job.around.header.id, tool = job.call.tool);
    let executed = AssertUnwindSafe(job.execute()).catch_unwind().instrument(span).await;
    let output = executed.unwrap_or_else(|_| {
        ToolOutput::error(format!("The tool {} ended in a bug; its outcome is unknown.", job.call.tool))
    });
    let mut content = vec![Block::text(output.text)];
    content.extend(output.images.into_iter().map(|url| Block::Image { url }));
    let input = Input::ToolFinished { id: job.call.id.clone(), content, is_error: output.is_error };
    // Nobody listens if the session was stopped in the meantime.
    drop(job.reports.send(Report::Ended { effect: job.effect, input, injected: None }));
}

impl ToolRun {
    /// Runs the tool, with the hooks around it.
    pub(crate) async fn execute(&self) -> ToolOutput {
        let started = Instant::now();
        let output = self.redacted(self.run_tool().await);
        let duration_ms = started.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
        let observation = Observation::PostToolCall {
            tool_use_id: self.call.id.clone(),
            tool: self.call.tool.clone(),
            input: self.call.input.clone(),
            result: output.text.clone(),
            status: if output.is_error { CallStatus::Error } else { CallStatus::Ok },
            duration_ms,
        };
        if self.around.told.note(&self.call.id) {
            observers::tell_and_wait(&self.around.shared, &self.around.turn, observation).await;
        }
        let ToolOutput { text, images, is_error } = output;
        let text = self.transformed(&text, duration_ms).await.unwrap_or(text);
        ToolOutput { text: bounded(text, self.around.shared.max_tool_output_chars), images, is_error }
    }

    /// The same without the secrets of the session. They may be in whatever a command has left: a file, a page.
    fn redacted(&self, output: ToolOutput) -> ToolOutput {
        let given = self.around.shared.secrets.of(self.root());
        let secrets = given.values().chain(self.secrets.values()).chain(&self.sudo_password);
        ToolOutput { text: Redactor::new(secrets).redacted(output.text), ..output }
    }

    /// What hooks put in place of the result. One that panics puts nothing there: the tool has run, and what came
    /// of it must not be lost.
    async fn transformed(&self, result: &str, duration_ms: u64) -> Option<String> {
        let Call { id: tool_use_id, tool, input, .. } = &self.call;
        let result = ToolResult { tool_use_id, tool, input, result, duration_ms };
        let transform =
            async { self.around.shared.hooks.transform_tool_result(&self.around.turn, result).await };
        AssertUnwindSafe(transform).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(session_id = %self.around.turn.session_id, "a hook ended in a bug");
            None
        })
    }

    async fn run_tool(&self) -> ToolOutput {
        if self.call.tool == delegate_task::NAME {
            return delegate::run(self).await;
        }
        let limit = self.around.shared.tool_time;
        let running = async {
            match self.call.kind {
                CallKind::Mcp => self.run_mcp_tool().await,
                _ => self.run_builtin_tool().await,
            }
        };
        tokio::time::timeout(limit, running).await.unwrap_or_else(|_| {
            let seconds = limit.as_secs();
            ToolOutput::error(format!("The tool ran for {seconds} s, the longest it may, and was stopped."))
        })
    }

    async fn run_mcp_tool(&self) -> ToolOutput {
        let Surroundings { shared, mcp, header, agent, .. } = &self.around;
        let offer = mcp.get(&shared.tools, header, agent).await;
        match offer.get(&self.call.tool) {
            Some(tool) => {
                let output = tool.call(self.call.input.clone()).await;
                shared.tools.keep_long_output(&self.invocation(), output).await
            }
            None => ToolOutput::error(format!(
                "The MCP server that has the tool {} cannot be reached, or has it no more.",
                self.call.tool
            )),
        }
    }

    async fn run_builtin_tool(&self) -> ToolOutput {
        let Some(tool) = self.around.shared.tools.get(&self.call.tool) else {
            return ToolOutput::error(format!("The tool {} is not there any more.", self.call.tool));
        };
        tool.run(self.invocation()).await
    }

    /// The session whose workspace and secrets the call works with: its own, or that which it is a subagent of.
    fn root(&self) -> &SessionId {
        let Surroundings { header, settings, .. } = &self.around;
        settings.thread.as_ref().map_or(&header.id, |thread| &thread.parent)
    }

    fn invocation(&self) -> Invocation {
        let header = &self.around.header;
        Invocation {
            tool_use_id: self.call.id.clone(),
            input: self.call.input.clone(),
            tenant: header.tenant.clone(),
            session_id: self.root().clone(),
            agent_id: header.agent_id.clone(),
            user_id: header.lasting_user().map(str::to_owned),
            secrets: self.secrets.clone(),
            sudo_password: self.sudo_password.clone(),
            dispatcher: Some(Dispatcher::new(self.clone())),
            filter: self.output_filter(),
        }
    }
}

/// What goes into the log of a result that is too long for it.
pub(crate) fn bounded(text: String, most: usize) -> String {
    let note = |left_out| format!("[… {left_out} characters left out …]");
    both_ends(&text, most / 2, most / 2, note).unwrap_or(text)
}
