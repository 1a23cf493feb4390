//! What the messaging gateway tells user code and asks it. Every channel goes through here, so that all of them fire
//! the same events with the same arguments.
//!
//! What belongs to a session's turns the engine tells, for chats as for everybody else.

use std::sync::Arc;

use petasos_core::ids::SessionId;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::bus::Bus;
use crate::contract::Dispatch;
use crate::python::PythonHosts;

/// The most characters of what was said that gateway hooks are told.
const MAX_TEXT: usize = 500;
const DENIED: &str = "This command is not allowed here.";

/// Where a message comes from, under the names that user code knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ChatSource {
    /// The channel.
    pub platform: String,
    /// The chat there.
    pub chat_id: String,
    /// What people call the chat.
    pub chat_name: Option<String>,
    /// `dm`, `group`, `channel` or `thread`.
    pub chat_type: String,
    /// Who wrote.
    pub user_id: String,
    /// What people call them.
    pub user_name: Option<String>,
    /// The thread in the chat.
    pub thread_id: Option<String>,
}

/// A message that a channel received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Incoming {
    /// What was written.
    pub text: String,
    /// Where it comes from.
    pub source: ChatSource,
    /// What the platform calls it.
    pub message_id: String,
    /// Whether we made it ourselves, as when something in the background has ended.
    pub internal: bool,
}

/// A tool that an agent has used, as gateway hooks are told.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct UsedTool {
    /// Its name.
    pub name: String,
    /// Its result; none if it has not ended.
    pub result: Option<String>,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// What is to be done about a slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandVerdict {
    /// Carry out this one, which need not be the one that was typed.
    CarryOut {
        /// Its name.
        name: String,
        /// What follows it.
        args: String,
    },
    /// Nothing more; the person is told this, if anything.
    Stop(Option<String>),
}

/// Tells user code what happens in chats, and asks it. Cheap to clone.
#[derive(Clone)]
pub struct GatewayEvents {
    bus: Arc<Bus>,
    hosts: PythonHosts,
    platforms: Vec<String>,
}

impl GatewayEvents {
    /// The events of a gateway with these channels.
    pub fn new(bus: Arc<Bus>, hosts: PythonHosts, platforms: Vec<String>) -> Self {
        GatewayEvents { bus, hosts, platforms }
    }

    /// `gateway:startup`: all channels were started.
    pub async fn startup(&self) {
        self.emit("gateway:startup", json!({ "platforms": self.platforms })).await;
    }

    /// `pre_gateway_dispatch`: what is to be done about a message, before anything else is.
    pub async fn received(&self, message: &Incoming) -> Dispatch {
        // Nobody's policy is about what we say to ourselves.
        if message.internal {
            return Dispatch::Allow;
        }
        self.bus.pre_gateway_dispatch(received(message, &self.platforms)).await
    }

    /// `command:<name>`: a slash command that is known, before it is carried out.
    pub async fn command(&self, source: &ChatSource, name: &str, args: &str) -> CommandVerdict {
        let more = json!({ "command": name, "args": args, "raw_command": name, "raw_args": args });
        let answers = self.emit(&format!("command:{name}"), about(source, more)).await;
        verdict(&answers, name, args)
    }

    /// `session:start`: a chat has its first message for a session.
    pub async fn session_started(&self, source: &ChatSource, id: &SessionId, session_key: &str) {
        let more = json!({ "session_id": id, "session_key": session_key });
        self.emit("session:start", about(source, more)).await;
    }

    /// `session:end` and `session:reset`: a person wants a fresh session.
    pub async fn session_reset(&self, source: &ChatSource, session_key: &str) {
        for event in ["session:end", "session:reset"] {
            self.emit(event, about(source, json!({ "session_key": session_key }))).await;
        }
    }

    /// `agent:start`: an agent begins with a message.
    pub async fn agent_started(&self, source: &ChatSource, id: &SessionId, message: &str) {
        let more = json!({ "message": shortened(message) });
        self.emit("agent:start", about_agent(source, id, more)).await;
    }

    /// `agent:step`: an agent is about to call its model for the `iteration`th time, after these tools.
    pub async fn agent_step(&self, source: &ChatSource, id: &SessionId, iteration: u32, tools: &[UsedTool]) {
        let tool_names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let more = json!({ "iteration": iteration, "tool_names": tool_names, "tools": tools });
        self.emit("agent:step", about_agent(source, id, more)).await;
    }

    /// `agent:end`: an agent is done with a message.
    pub async fn agent_ended(&self, source: &ChatSource, id: &SessionId, message: &str, response: &str) {
        let more = json!({ "message": shortened(message), "response": shortened(response) });
        self.emit("agent:end", about_agent(source, id, more)).await;
    }

    async fn emit(&self, event: &str, context: Value) -> Vec<Value> {
        self.hosts.emit(event, object(context)).await
    }
}

/// The arguments of `pre_gateway_dispatch`.
pub(crate) fn received(message: &Incoming, platforms: &[String]) -> Map<String, Value> {
    let gateway = json!({ "platforms": platforms });
    object(json!({ "event": message, "gateway": gateway, "session_store": {} }))
}

fn about(source: &ChatSource, more: Value) -> Value {
    let mut context = object(json!({ "platform": source.platform, "user_id": source.user_id }));
    context.extend(object(more));
    context.into()
}

fn about_agent(source: &ChatSource, id: &SessionId, more: Value) -> Value {
    let mut context = object(about(source, json!({ "session_id": id })));
    context.extend(object(more));
    let where_it_is = json!({
        "chat_id": source.chat_id,
        "chat_type": source.chat_type,
        "thread_id": source.thread_id,
    });
    context.extend(object(where_it_is));
    context.into()
}

/// What handlers decided: the first of them that decided anything.
fn verdict(answers: &[Value], name: &str, args: &str) -> CommandVerdict {
    let carry_out = |name: &str, args: &str| CommandVerdict::CarryOut {
        name: name.trim_start_matches('/').to_owned(),
        args: args.to_owned(),
    };
    for answer in answers {
        let text = |name: &str| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        match text("decision") {
            Some("deny") => return CommandVerdict::Stop(Some(text("message").unwrap_or(DENIED).to_owned())),
            Some("handled") => return CommandVerdict::Stop(text("message").map(str::to_owned)),
            Some("rewrite") => {
                return carry_out(text("command_name").unwrap_or(name), text("raw_args").unwrap_or_default());
            }
            _ => {}
        }
    }
    carry_out(name, args)
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_decision_about_a_command_counts() {
        let decided = |answers: Value| verdict(answers.as_array().unwrap(), "new", "now");
        let carry_out =
            |name: &str, args: &str| CommandVerdict::CarryOut { name: name.into(), args: args.into() };
        for nothing in [json!([]), json!(["text", 1, {}, { "decision": "" }, { "decision": "allow" }])] {
            assert_eq!(decided(nothing), carry_out("new", "now"));
        }
        let deny = json!({ "decision": "deny" });
        let handled = json!({ "decision": "handled", "message": "done" });
        assert_eq!(decided(json!([deny, handled])), CommandVerdict::Stop(Some(DENIED.to_owned())));
        assert_eq!(decided(json!([{}, handled, deny])), CommandVerdict::Stop(Some("done".to_owned())));
        assert_eq!(decided(json!([{ "decision": "handled" }])), CommandVerdict::Stop(None));
        let rewrite = json!({ "decision": "rewrite", "command_name": "/help", "raw_args": "me" });
        assert_eq!(decided(json!([rewrite, deny])), carry_out("help", "me"));
    }
}
