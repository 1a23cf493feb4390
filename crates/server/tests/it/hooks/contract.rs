//! Every event fires, and tells callbacks all that its documentation promises.

use std::collections::BTreeMap;
use std::sync::Arc;

use petasos_hooks::{Bus, HookEvent};
use petasos_testkit::{Loopback, Reply, Setup, TestServer, within};
use serde_json::{Value, json};

use crate::plugins::user_code;

/// The arguments of each event by their names and types, in Python's words.
const PROMISED: [(&str, &[(&str, &str)]); 19] = [
    ("pre_tool_call", &[("tool_name", "str"), ("args", "dict"), ("task_id", "str")]),
    (
        "post_tool_call",
        &[
            ("tool_name", "str"),
            ("args", "dict"),
            ("result", "str"),
            ("task_id", "str"),
            ("duration_ms", "int"),
        ],
    ),
    (
        "pre_llm_call",
        &[
            ("session_id", "str"),
            ("user_message", "str"),
            ("conversation_history", "list"),
            ("is_first_turn", "bool"),
            ("model", "str"),
            ("platform", "str"),
        ],
    ),
    (
        "post_llm_call",
        &[
            ("session_id", "str"),
            ("user_message", "str"),
            ("assistant_response", "str"),
            ("conversation_history", "list"),
            ("model", "str"),
            ("platform", "str"),
        ],
    ),
    ("on_session_start", &[("session_id", "str"), ("model", "str"), ("platform", "str")]),
    (
        "on_session_end",
        &[
            ("session_id", "str"),
            ("completed", "bool"),
            ("interrupted", "bool"),
            ("model", "str"),
            ("platform", "str"),
        ],
    ),
    ("on_session_finalize", &[("session_id", "str"), ("platform", "str")]),
    ("on_session_reset", &[("session_id", "str"), ("platform", "str")]),
    (
        "subagent_stop",
        &[
            ("parent_session_id", "str"),
            ("child_role", "NoneType"),
            ("child_summary", "str"),
            ("child_status", "str"),
            ("duration_ms", "int"),
        ],
    ),
    (
        "pre_gateway_dispatch",
        &[("event", "MessageEvent"), ("gateway", "Gateway"), ("session_store", "SessionStore")],
    ),
    ("pre_approval_request", APPROVAL),
    ("post_approval_response", &[("choice", "str")]),
    ("post_approval_response", APPROVAL),
    (
        "transform_tool_result",
        &[
            ("tool_name", "str"),
            ("arguments", "dict"),
            ("args", "dict"),
            ("result", "str"),
            ("task_id", "str"),
        ],
    ),
    (
        "transform_terminal_output",
        &[
            ("command", "str"),
            ("output", "str"),
            ("exit_code", "int"),
            ("returncode", "int"),
            ("cwd", "str"),
            ("task_id", "str"),
        ],
    ),
    ("transform_llm_output", &[("response_text", "str"), ("session_id", "str"), ("model", "str")]),
    ("subagent_start", &[("parent_session_id", "str"), ("child_session_id", "str"), ("child_goal", "str")]),
    ("pre_api_request", &[("session_id", "str"), ("model", "str"), ("api_call_count", "int")]),
    ("api_request_error", &[("session_id", "str"), ("error", "dict"), ("retryable", "bool")]),
];

const APPROVAL: &[(&str, &str)] = &[
    ("command", "str"),
    ("description", "str"),
    ("pattern_key", "str"),
    ("pattern_keys", "list"),
    ("session_key", "str"),
    ("surface", "str"),
];

/// A plugin that notes at each event what it was told.
fn listener() -> String {
    let names: Vec<&str> = HookEvent::ALL.iter().map(|event| event.name()).collect();
    format!(
        r#"
import json, os
def note(name):
    def hook(**kwargs):
        types = {{key: type(value).__name__ for key, value in kwargs.items()}}
        with open(os.environ["WORLD"] + "/noted", "a") as f:
            f.write(json.dumps([name, types]) + "\n")
    return hook
def register(ctx):
    for name in {names:?}:
        ctx.register_hook(name, note(name))
"#
    )
}

#[tokio::test]
async fn every_event_fires_with_all_its_arguments() {
    let (hosts, home) = user_code(&listener(), &[]).await;
    let bus = Arc::new(Bus::new(vec![Arc::new(hosts.clone())]));
    let server = TestServer::start_with(Setup { hooks: bus.clone(), ..Setup::default() }).await;
    let agent = server.agent_with(json!({})).await;
    let channel = Loopback::new(&server.engine, bus, &hosts, &agent);

    // A chat: a provider that fails once, a subagent, a fresh session.
    let task = json!({ "goal": "look at a" });
    let replies = [Reply::status(503), Reply::tool_call("delegate_task", task), Reply::text("Done.")];
    server.model.when("delegate", replies);
    server.model.when("look at a", [Reply::text("Seen.")]);
    assert_eq!(within("the chat", channel.say("7", "delegate it")).await.as_deref(), Some("Done."));
    channel.say("7", "/new").await;

    // A command that somebody has to allow.
    let session = server.client.session(&agent).await;
    let mut stream = server.client.stream(&session, "").await;
    let call = Reply::tool_call("terminal", json!({ "command": "echo hello" }));
    server.model.script([call, Reply::text("Done.")]);
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let id = &frames.iter().rfind(|frame| frame.event == "agent.tool_use").unwrap().data["payload"]["id"];
    let answer = json!({ "type": "user.tool_confirmation", "tool_use_id": id, "result": "allow" });
    server.client.event(&session, answer).await.expect(200);
    stream.until_idle().await;

    let told = within("every event", async {
        loop {
            let text = std::fs::read_to_string(home.path().join("noted")).unwrap_or_default();
            let notes = text.lines().filter_map(|line| serde_json::from_str(line).ok());
            let told: BTreeMap<String, Value> = notes.collect();
            if HookEvent::ALL.iter().all(|event| told.contains_key(event.name())) {
                return told;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    for (event, arguments) in PROMISED {
        for (name, kind) in arguments {
            assert_eq!(told[event][name], *kind, "{name} of {event}: {}", told[event]);
        }
    }
}
