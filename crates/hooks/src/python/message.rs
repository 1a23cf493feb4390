//! What the server and a host say to each other.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::wishes::AgentTurn;

/// What a host is asked to do.
#[derive(Debug, Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Order<'a> {
    /// Import a plugin and let it register.
    Load { manifest: &'a Map<String, Value> },
    /// Import the handler of a gateway hook.
    LoadHandler { name: &'a str, path: &'a str },
    /// Call a callback. Where its session's tools work is one of its arguments, unless it says otherwise.
    Fire { function: u64, kwargs: &'a Map<String, Value>, cwd: Option<String>, returns: bool, edits: bool },
    /// Call a callback about a message that a channel has received.
    Dispatch { function: u64, kwargs: &'a Map<String, Value> },
    /// Call the handler of a tool.
    Tool { function: u64, args: &'a Map<String, Value>, kwargs: &'a Map<String, Value> },
    /// Call the handler of a slash command.
    Command { function: u64, args: &'a str },
    /// Run a command of the command line.
    Cli { function: u64, args: &'a [String] },
    /// Tell a handler of an event.
    Emit { function: u64, event: &'a str, context: &'a Map<String, Value> },
    /// Say that you are there.
    Ping,
}

/// An order with the number that its answer will have.
#[derive(Debug, Serialize)]
pub(super) struct Numbered<'a> {
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) order: Order<'a>,
}

/// An order to stop carrying out another.
#[derive(Debug, Serialize)]
pub(super) struct Abandon {
    op: &'static str,
    call: u64,
}

impl Abandon {
    pub(super) fn call(call: u64) -> Self {
        Abandon { op: "abandon", call }
    }
}

/// The answer to something that user code asked.
#[derive(Debug, Serialize)]
pub(super) struct Granted {
    pub(super) ask: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// What a host says.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Said {
    /// What came of an order.
    Answer(Answer),
    /// User code wants something.
    Ask(Ask),
    /// Something that needs no answer.
    Told(Told),
}

/// What came of an order.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Answer {
    pub(super) id: u64,
    #[serde(default)]
    pub(super) result: Value,
    /// Why there is no result.
    pub(super) error: Option<String>,
    /// Where in the user's code it failed.
    pub(super) trace: Option<String>,
    /// The tool's arguments as the callback left them.
    pub(super) args: Option<Map<String, Value>>,
    /// The text of the message, if the callback changed it.
    pub(super) text: Option<String>,
    /// The number of the function that was imported.
    pub(super) function: Option<u64>,
}

/// Something that user code wants.
#[derive(Debug, Deserialize)]
pub(super) struct Ask {
    pub(super) ask: u64,
    /// The order that the code is carrying out; none if it runs beside.
    pub(super) call: Option<u64>,
    #[serde(flatten)]
    pub(super) wish: Wish,
}

/// What user code can want.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Wish {
    /// Call a tool.
    DispatchTool { name: String, args: Map<String, Value> },
    /// Have an agent run a turn in a session of its own.
    RunAgent(AgentTurn),
    /// Know the model that is used where none is named.
    DefaultModel,
    /// Say something to a session.
    InjectMessage { text: String, session_id: Option<String> },
    /// Send something to a chat.
    GatewaySend {
        platform: String,
        chat_id: String,
        content: String,
        #[serde(default)]
        reply_to: Value,
        #[serde(default)]
        metadata: Value,
    },
    /// Add a message to a session without a turn.
    AppendToTranscript { session_id: String, message: Value },
    /// Find the session of a chat.
    SessionOfChat { source: Value },
}

/// What a host says without being asked.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Told {
    /// Something was registered.
    Registered {
        plugin: String,
        #[serde(flatten)]
        what: Registration,
    },
    /// User code logs.
    Log { level: String, logger: String, text: String },
}

/// Something that a plugin registered.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Registration {
    /// A callback.
    Hook { name: String, function: u64, callback: String },
    /// A tool.
    Tool(RegisteredTool),
    /// A slash command.
    Command {
        name: String,
        function: u64,
        #[serde(default)]
        description: String,
        #[serde(default)]
        args_hint: String,
    },
    /// A command of the command line.
    CliCommand { name: String, function: u64, description: String },
    /// A skill.
    Skill { name: String, path: String, description: String },
    /// Something that there is no use for here.
    Ignored { method: String },
}

/// A tool that a plugin registered.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct RegisteredTool {
    pub(super) name: String,
    pub(super) function: u64,
    pub(super) description: String,
    pub(super) parameters: Value,
    pub(super) read_only: bool,
    #[serde(rename = "override")]
    pub(super) overrides: bool,
    /// Why it cannot be used.
    pub(super) missing: Option<String>,
}
