//! What a hook of the configuration is told, to the letter.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::source::Firing;

/// Arguments that have a place of their own.
const PLACED: [&str; 4] = ["tool_name", "args", "session_id", "parent_session_id"];

#[derive(Serialize)]
struct Payload<'a> {
    hook_event_name: &'a str,
    tool_name: Option<&'a str>,
    tool_input: Option<&'a Map<String, Value>>,
    session_id: &'a str,
    cwd: &'a str,
    extra: Map<String, Value>,
}

/// The JSON text, in one line.
pub(crate) fn text(firing: &Firing, cwd: &str) -> Vec<u8> {
    let arguments = &firing.arguments;
    let id = |name: &str| arguments.get(name).and_then(Value::as_str).filter(|id| !id.is_empty());
    let extra = arguments.iter().filter(|(name, _)| !PLACED.contains(&name.as_str()));
    let payload = Payload {
        hook_event_name: firing.event.name(),
        tool_name: firing.tool(),
        tool_input: arguments.get("args").and_then(Value::as_object),
        session_id: id("session_id").or_else(|| id("parent_session_id")).unwrap_or_default(),
        cwd,
        extra: extra.map(|(name, value)| (name.clone(), value.clone())).collect(),
    };
    // Maps with text keys can always be written.
    serde_json::to_vec(&payload).unwrap_or_default()
}

/// The arguments that a payload tells of, or that were written down as they are.
pub fn arguments_of(given: Map<String, Value>) -> Map<String, Value> {
    if !given.contains_key("hook_event_name") {
        return given;
    }
    let mut given = given;
    let mut arguments = Map::new();
    for (name, argument) in [("tool_name", "tool_name"), ("tool_input", "args"), ("session_id", "session_id")]
    {
        if let Some(value) = given.remove(name).filter(|value| !value.is_null()) {
            arguments.insert(argument.to_owned(), value);
        }
    }
    if let Some(Value::Object(extra)) = given.remove("extra") {
        arguments.extend(extra);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::HookEvent;

    fn told(event: HookEvent, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let firing = Firing { event, arguments, workspace: None, session: None };
        String::from_utf8(text(&firing, "/home/user/project")).unwrap()
    }

    #[test]
    fn a_tool_call() {
        let arguments = json!({
            "tool_name": "terminal",
            "args": { "command": "rm -rf /" },
            "task_id": "t",
            "session_id": "sess_abc123",
            "tool_call_id": "c",
        });
        let expected = r#"{"hook_event_name":"pre_tool_call","tool_name":"terminal","tool_input":{"command":"rm -rf /"},"session_id":"sess_abc123","cwd":"/home/user/project","extra":{"task_id":"t","tool_call_id":"c"}}"#;
        assert_eq!(told(HookEvent::PreToolCall, arguments), expected);
    }

    #[test]
    fn the_end_of_a_subagent_belongs_to_its_parent() {
        let arguments =
            json!({ "parent_session_id": "p", "child_status": "completed", "child_summary": "größer" });
        let expected = r#"{"hook_event_name":"subagent_stop","tool_name":null,"tool_input":null,"session_id":"p","cwd":"/home/user/project","extra":{"child_status":"completed","child_summary":"größer"}}"#;
        assert_eq!(told(HookEvent::SubagentStop, arguments), expected);
    }

    #[test]
    fn arguments_are_read_back_from_either_shape() {
        let arguments = json!({ "tool_name": "terminal", "args": {}, "session_id": "s", "task_id": "t" });
        let Value::Object(arguments) = arguments else { panic!() };
        let firing = Firing {
            event: HookEvent::PreToolCall,
            arguments: arguments.clone(),
            workspace: None,
            session: None,
        };
        let payload = serde_json::from_slice(&text(&firing, "")).unwrap();
        assert_eq!(arguments_of(payload), arguments);
        assert_eq!(arguments_of(arguments.clone()), arguments);
    }
}
