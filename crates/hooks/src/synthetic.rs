//! Made-up firings, to try hooks out with.

use serde_json::{Map, Value, json};

use crate::event::HookEvent;
use crate::source::Firing;

/// A firing as it could happen, about the tool `tool` if it is about one. What is `given` takes the place of what is
/// made up.
pub fn firing(event: HookEvent, tool: Option<&str>, given: Map<String, Value>) -> Firing {
    let mut arguments = made_up(event);
    if let (Some(tool), true) = (tool, arguments.contains_key("tool_name")) {
        arguments.insert("tool_name".to_owned(), tool.into());
    }
    arguments.extend(given);
    Firing { event, arguments, workspace: None, session: None }
}

fn made_up(event: HookEvent) -> Map<String, Value> {
    let call = json!({
        "tool_name": "terminal",
        "args": { "command": "echo hello" },
        "task_id": "test-session",
        "session_id": "test-session",
        "tool_call_id": "toolu_test",
        "turn_id": "test-turn",
    });
    let session = json!({ "session_id": "test-session", "model": "demo/echo", "platform": "cli" });
    let approval = json!({
        "command": "rm -r build",
        "description": "removes files",
        "pattern_key": "rm_recursive",
        "pattern_keys": ["rm_recursive"],
        "session_key": "test-session",
        "surface": "cli",
        "session_id": "test-session",
    });
    let history = json!([{ "role": "user", "content": "What is the weather?" }]);
    let request = json!({ "api_call_count": 1, "provider": "demo" });
    let (base, more) = match event {
        HookEvent::PreToolCall => (call, json!({})),
        HookEvent::PostToolCall => {
            let result = r#"{"output":"hello","exit_code":0}"#;
            (call, json!({ "result": result, "duration_ms": 42, "status": "ok" }))
        }
        HookEvent::TransformToolResult => {
            let result = r#"{"output":"hello","exit_code":0}"#;
            (call, json!({ "arguments": { "command": "echo hello" }, "result": result, "duration_ms": 42 }))
        }
        HookEvent::TransformTerminalOutput => (
            json!({ "command": "echo hello", "output": "hello\n", "exit_code": 0, "returncode": 0 }),
            json!({ "cwd": "/tmp", "task_id": "test-session", "session_id": "test-session" }),
        ),
        HookEvent::TransformLlmOutput => (session, json!({ "response_text": "It is sunny." })),
        HookEvent::PreLlmCall => (
            session,
            json!({
                "user_message": "What is the weather?",
                "conversation_history": history,
                "is_first_turn": true,
            }),
        ),
        HookEvent::PostLlmCall => (
            session,
            json!({
                "user_message": "What is the weather?",
                "assistant_response": "It is sunny.",
                "conversation_history": history,
            }),
        ),
        HookEvent::OnSessionStart => (session, json!({})),
        HookEvent::OnSessionEnd => (session, json!({ "completed": true, "interrupted": false })),
        HookEvent::OnSessionFinalize | HookEvent::OnSessionReset => {
            (json!({ "session_id": "test-session", "platform": "cli" }), json!({}))
        }
        HookEvent::SubagentStart => (
            json!({ "parent_session_id": "test-session", "child_session_id": "thread_test" }),
            json!({ "child_role": null, "child_goal": "Look it up." }),
        ),
        HookEvent::SubagentStop => (
            json!({ "parent_session_id": "test-session", "child_role": null }),
            json!({ "child_summary": "Found it.", "child_status": "completed", "duration_ms": 1234 }),
        ),
        HookEvent::PreGatewayDispatch => (
            json!({ "event": { "text": "hello", "source": { "platform": "telegram", "chat_type": "dm" } } }),
            json!({ "gateway": {}, "session_store": {} }),
        ),
        HookEvent::PreApprovalRequest => (approval, json!({})),
        HookEvent::PostApprovalResponse => (approval, json!({ "choice": "once" })),
        HookEvent::PreApiRequest => {
            (merged(session, request), json!({ "message_count": 1, "tool_count": 0 }))
        }
        HookEvent::PostApiRequest => (
            merged(session, request),
            json!({ "api_duration": 0.5, "usage": { "input_tokens": 10, "output_tokens": 5 } }),
        ),
        HookEvent::ApiRequestError => (
            merged(session, request),
            json!({ "retryable": true, "reason": "overloaded", "error": { "message": "overloaded" } }),
        ),
    };
    match merged(base, more) {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    }
}

fn merged(mut base: Value, more: Value) -> Value {
    if let (Value::Object(base), Value::Object(more)) = (&mut base, more) {
        base.extend(more);
    }
    base
}
