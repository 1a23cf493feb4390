//! What every tool is.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use petasos_core::event::{Danger, ToolEffect};
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::model::ToolSpec;
use secrecy::SecretString;
use serde_json::{Map, Value};

/// Something that the model can call and we carry out.
pub trait Tool: Send + Sync + 'static {
    /// How the model is told about it.
    fn spec(&self) -> ToolSpec;

    /// Whether running it twice could do harm.
    fn effect(&self) -> ToolEffect;

    /// Whether calls ask a person first when no policy says anything about the tool.
    fn asks_by_default(&self) -> bool {
        self.effect() == ToolEffect::SideEffect
    }

    /// Whether there is any use for it here. A tool that has none is not offered.
    fn is_of_use(&self, _to: Audience) -> bool {
        true
    }

    /// One line for a person who is asked to allow a call.
    fn preview(&self, input: &Map<String, Value>) -> Option<String>;

    /// What there is to know about one call beyond the tool's effect.
    fn risk(&self, _input: &Map<String, Value>) -> Risk {
        Risk::Ordinary
    }

    /// Patterns of commands that a person may allow in place of the whole tool, the narrowest first.
    fn patterns(&self, _input: &Map<String, Value>) -> Vec<String> {
        Vec::new()
    }

    /// Whether a pattern that [`Tool::patterns`] offered fits this call.
    fn fits_pattern(&self, _pattern: &str, _input: &Map<String, Value>) -> bool {
        false
    }

    /// Why no session of this tenant may make a call, if so.
    fn refusal(&self, _input: &Map<String, Value>, _tenant: &TenantId) -> Option<String> {
        None
    }

    /// The command for which a call needs a sudo password.
    fn sudo_command(&self, _input: &Map<String, Value>) -> Option<String> {
        None
    }

    /// Carries out one call. Dropping the future stops it.
    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput>;
}

/// For whom a session's tools are chosen. It never changes within a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audience {
    /// Whether the session has a user, for whom things are kept.
    pub has_user: bool,
    /// Whether the agent has skills of its own.
    pub has_skills: bool,
}

/// What there is to know about one call beyond its tool's effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Risk {
    /// It changes nothing, whatever other calls of the tool do: nobody is asked unless a policy says so.
    Harmless,
    /// Nothing: the agent's policy decides.
    Ordinary,
    /// A person is asked, whatever the policy says.
    Dangerous(Danger),
    /// It never runs.
    Forbidden {
        /// What the model is told.
        reason: String,
    },
}

/// One call, and for whom it is made.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// Names the call.
    pub tool_use_id: String,
    /// The arguments.
    pub input: Map<String, Value>,
    /// Whose session it is.
    pub tenant: TenantId,
    /// The session.
    pub session_id: SessionId,
    /// The agent.
    pub agent_id: AgentId,
    /// The user, if the session has one.
    pub user_id: Option<String>,
    /// Secrets that the user gave this session, by the variable that holds them.
    pub secrets: BTreeMap<String, SecretString>,
    /// The password that the user gave for this call.
    pub sudo_password: Option<SecretString>,
    /// Through which the tool can call others, if it can.
    pub dispatcher: Option<Dispatcher>,
    /// Who may put another text in place of what a command writes, if anybody wants to.
    pub filter: Option<Filter>,
}

/// Lets a tool call others, by the same rules as a model.
pub trait Dispatch: Send + Sync {
    /// How a model is told about a tool, if it is there.
    fn spec(&self, tool: &str) -> Option<Arc<ToolSpec>>;

    /// Carries out a call. One that would have to ask a person fails.
    fn call(&self, tool: &str, input: Map<String, Value>) -> BoxFuture<'_, ToolOutput>;
}

/// A shared [`Dispatch`].
#[derive(Clone)]
pub struct Dispatcher(Arc<dyn Dispatch>);

impl Dispatcher {
    /// Calls go to `dispatch`.
    pub fn new(dispatch: impl Dispatch + 'static) -> Self {
        Dispatcher(Arc::new(dispatch))
    }

    /// How a model is told about a tool, if it is there.
    pub fn spec(&self, tool: &str) -> Option<Arc<ToolSpec>> {
        self.0.spec(tool)
    }

    /// Carries out a call. One that would have to ask a person fails.
    pub fn call(&self, tool: &str, input: Map<String, Value>) -> BoxFuture<'_, ToolOutput> {
        self.0.call(tool, input)
    }
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dispatcher")
    }
}

/// What a command in the foreground wrote.
#[derive(Debug, Clone, Copy)]
pub struct CommandOutput<'a> {
    /// The command.
    pub command: &'a str,
    /// All that it wrote.
    pub text: &'a str,
    /// What it returned.
    pub exit_code: i32,
    /// Where it ran.
    pub directory: &'a Path,
}

/// Puts other texts in place of what commands write.
pub trait OutputFilter: Send + Sync {
    /// The text to put in place, if any.
    fn filter<'a>(&'a self, output: CommandOutput<'a>) -> BoxFuture<'a, Option<String>>;
}

/// A shared [`OutputFilter`].
#[derive(Clone)]
pub struct Filter(Arc<dyn OutputFilter>);

impl Filter {
    /// Outputs go to `filter`.
    pub fn new(filter: impl OutputFilter + 'static) -> Self {
        Filter(Arc::new(filter))
    }

    /// The text to put in place, if any.
    pub fn filter<'a>(&'a self, output: CommandOutput<'a>) -> BoxFuture<'a, Option<String>> {
        self.0.filter(output)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Filter")
    }
}

/// What the model is told about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The result.
    pub text: String,
    /// Pictures that belong to it, as `data:` URIs.
    pub images: Vec<String>,
    /// Whether it failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// A result.
    pub fn ok(text: impl Into<String>) -> Self {
        ToolOutput { text: text.into(), images: Vec::new(), is_error: false }
    }

    /// A failure that the model can react to.
    pub fn error(text: impl Into<String>) -> Self {
        ToolOutput { text: text.into(), images: Vec::new(), is_error: true }
    }
}
