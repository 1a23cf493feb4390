//! A run: one execution of a routine.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::event::StopReason;
use crate::ids::{RoutineId, RunId, SessionId, TenantId};
use crate::routine::OnToolError;

/// The tool whose call ends a run.
pub const EMIT_OUTPUT: &str = "emit_output";

/// A run as it is kept. It outlives its session.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Names it.
    pub id: RunId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The routine.
    pub routine_id: RoutineId,
    /// The session that it is a turn of.
    pub session_id: SessionId,
    /// Under this key the routine has no other run.
    pub idempotency_key: String,
    /// What never changes about it.
    pub given: RunGiven,
    /// Where it stands.
    pub status: RunStatus,
    /// What came of it; none until it is settled.
    pub outcome: Option<RunOutcome>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it is given up.
    pub deadline: Timestamp,
    /// When its turn opened.
    pub started_at: Option<Timestamp>,
    /// When it was settled.
    pub completed_at: Option<Timestamp>,
}

impl RunRecord {
    /// The run once it has come to its end. One that never started has started and ended at the same time.
    #[must_use]
    pub fn settled(self, outcome: RunOutcome, at: Timestamp) -> Self {
        RunRecord {
            status: outcome.status(),
            outcome: Some(outcome),
            started_at: self.started_at.or(Some(at)),
            completed_at: Some(at),
            ..self
        }
    }
}

/// What never changes about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunGiven {
    /// A digest of the request, by which another one under the same key is told apart.
    pub fingerprint: String,
    /// What it works on.
    pub input: Map<String, Value>,
    /// What the caller wants to hear again.
    pub metadata: Map<String, Value>,
    /// What is to be done, and within which bounds.
    pub job: RunJob,
    /// Names it in traces: 32 hexadecimal digits.
    pub trace_id: String,
    /// Where it reports; none for nowhere.
    pub callback_url: Option<String>,
    /// Whether its session was made for it and goes with it.
    pub session: RunSession,
}

/// Whose the session of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunSession {
    /// Its own: it is removed when the run has been reported.
    Ephemeral,
    /// The caller's: it stays.
    Given,
}

/// What a run is to do, and within which bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunJob {
    /// What people call the routine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema that output is held to.
    pub output_schema: Value,
    /// How long it may take.
    pub timeout_seconds: Number,
    /// How many model calls it may make.
    pub max_model_calls: u32,
    /// What happens when a tool call fails.
    #[serde(default)]
    pub on_tool_error: OnToolError,
}

impl RunJob {
    /// What the system prompt says of the run.
    pub fn instructions(&self) -> String {
        let title = self.title.as_ref().map(|title| format!("# Routine: {title}\n\n"));
        let description =
            self.description.as_ref().map(|description| format!("{}\n\n", description.trim_end()));
        format!(
            "{}{}The user's message is the input of this routine, as JSON. Nobody reads along and nobody can answer \
             questions. When you have the result, call {EMIT_OUTPUT} with it: that ends the routine, and nothing else \
             that you say is kept.",
            title.unwrap_or_default(),
            description.unwrap_or_default(),
        )
    }
}

/// What a model is told that answers without calling a tool.
pub(crate) const REMINDER: &str = "[No output yet] Nobody reads what you say here. Go on with the task, and call emit_output with the result.";

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It waits for its session.
    Accepted,
    /// Its turn is under way.
    Running,
    /// It ended with output.
    Succeeded,
    /// It ended without.
    Failed,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [RunStatus; 4] =
        [RunStatus::Accepted, RunStatus::Running, RunStatus::Succeeded, RunStatus::Failed];

    /// The status as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Accepted => "accepted",
            RunStatus::Running => "running",
            RunStatus::Succeeded => "succeeded",
            RunStatus::Failed => "failed",
        }
    }

    /// Whether nothing more comes.
    pub fn is_settled(self) -> bool {
        matches!(self, RunStatus::Succeeded | RunStatus::Failed)
    }
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum RunOutcome {
    /// Output that fits its schema.
    Succeeded {
        /// The output.
        output: Map<String, Value>,
    },
    /// No output.
    Failed {
        /// Why not.
        error: RunError,
    },
}

impl RunOutcome {
    /// The status of a run that ended so.
    pub fn status(&self) -> RunStatus {
        match self {
            RunOutcome::Succeeded { .. } => RunStatus::Succeeded,
            RunOutcome::Failed { .. } => RunStatus::Failed,
        }
    }

    /// How the turn of a run ends that ended so.
    pub fn stop_reason(&self) -> StopReason {
        match self {
            RunOutcome::Succeeded { .. } => StopReason::end_turn(),
            RunOutcome::Failed { error } if error.is_wish() => {
                StopReason::EndTurn { reason: None, interrupted: true }
            }
            RunOutcome::Failed { error } => {
                // A turn that failed by itself says so as any other turn does.
                let code = error.reason().unwrap_or(error.code.as_str());
                StopReason::Error { code: code.to_owned(), message: error.message.clone() }
            }
        }
    }
}

/// Why a run has no output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "AutonomousRunError"))]
pub struct RunError {
    /// What kind of failure it is.
    pub code: RunErrorCode,
    /// What happened, for people.
    pub message: String,
    /// What programs need to know, depending on the code.
    pub details: Map<String, Value>,
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunErrorCode {
    /// It took longer than it may.
    Timeout,
    /// The model could not be called, or the run was stopped.
    EngineError,
    /// A tool call failed.
    ToolError,
    /// The output does not fit its schema.
    OutputValidationFailed,
    /// The input does not fit its schema.
    InputValidationFailed,
    /// The session is gone, or could not be made.
    SessionError,
    /// It made as many model calls as it may, and no output.
    MaxEngineIterationsReached,
}

impl RunErrorCode {
    /// The code as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            RunErrorCode::Timeout => "timeout",
            RunErrorCode::EngineError => "engine_error",
            RunErrorCode::ToolError => "tool_error",
            RunErrorCode::OutputValidationFailed => "output_validation_failed",
            RunErrorCode::InputValidationFailed => "input_validation_failed",
            RunErrorCode::SessionError => "session_error",
            RunErrorCode::MaxEngineIterationsReached => "max_engine_iterations_reached",
        }
    }
}

impl RunError {
    const CANCELLED: &str = "cancelled";
    const INTERRUPTED: &str = "interrupted";

    /// A failure without details.
    pub fn new(code: RunErrorCode, message: impl Into<String>) -> Self {
        RunError { code, message: message.into(), details: Map::new() }
    }

    /// The same with one more detail.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// The run took longer than it may.
    pub fn timeout(job: &RunJob) -> Self {
        let seconds = &job.timeout_seconds;
        let message = format!("The run took longer than the {seconds} s that it may.");
        RunError::new(RunErrorCode::Timeout, message).with("timeout_seconds", seconds.clone())
    }

    /// Somebody cancelled the run.
    pub fn cancelled() -> Self {
        let error = RunError::new(RunErrorCode::EngineError, "The run was cancelled.");
        error.with("reason", RunError::CANCELLED)
    }

    /// The session is gone.
    pub fn session_gone() -> Self {
        RunError::new(RunErrorCode::SessionError, "The session of the run was deleted.")
    }

    /// The session cannot be read any more.
    pub fn session_damaged() -> Self {
        RunError::new(RunErrorCode::SessionError, "The session of the run is damaged and cannot be read.")
    }

    /// What a turn that ends so means for its run.
    pub(crate) fn of_stop(stop_reason: &StopReason) -> Self {
        match stop_reason {
            StopReason::Error { code, message } => {
                RunError::new(RunErrorCode::EngineError, message.clone()).with("reason", code.as_str())
            }
            StopReason::EndTurn { .. } | StopReason::RequiresAction { .. } => {
                let error = RunError::new(RunErrorCode::EngineError, "The turn of the run was interrupted.");
                error.with("reason", RunError::INTERRUPTED)
            }
        }
    }

    /// Whether somebody wanted the run to end.
    pub fn is_wish(&self) -> bool {
        matches!(self.reason(), Some(RunError::CANCELLED | RunError::INTERRUPTED))
    }

    /// Why its turn stopped, if that is what it failed by.
    pub fn reason(&self) -> Option<&str> {
        self.details.get("reason").and_then(Value::as_str)
    }
}
