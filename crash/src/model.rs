//! The model: what it answers follows from the conversation alone, so a repeated call gets the same answer.

use petasos_testkit::Reply;
use petasos_testkit::model_server::RecordedRequest;
use serde_json::json;

/// The kinds of turns that are driven. The user's message names one, with a number of its own.
pub(crate) const KINDS: [&str; 8] =
    ["plain", "thinking", "custom", "two-custom", "todo", "clarify", "command", "delegate"];

/// The file to which commands add a line each, in their workspace: it counts how often they ran, whatever the server
/// says.
pub(crate) const RUNS: &str = "runs";

/// A skill that the agent learns.
pub(crate) const SKILL: &str = "brew-tea";

/// What the final message of a turn says.
pub(crate) fn final_text(name: &str) -> String {
    format!("finished {name}")
}

pub(crate) fn reply(request: &RecordedRequest) -> Reply {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let text_of = |message: &serde_json::Value| message["content"].as_str().unwrap_or_default().to_owned();
    let asked =
        messages.iter().rposition(|message| message["role"] == "user" && text_of(message).starts_with("do "));
    let Some(asked) = asked else { return Reply::text("Nobody asked for anything.") };
    let text = text_of(&messages[asked]);
    let name = text.trim_start_matches("do ");
    let has_results = messages[asked..].iter().any(|message| message["role"] == "tool");
    let kind = name.rsplit_once('-').map_or(name, |(kind, _)| kind);
    match kind {
        _ if has_results => Reply::text(final_text(name)),
        "thinking" => Reply::thinking("Let me see.").and_text(final_text(name)),
        "custom" => Reply::text("Looking.").and_tool_call("check_order", json!({ "order": name })),
        "two-custom" => Reply::tool_calls([
            ("check_order", json!({ "order": name })),
            ("check_order", json!({ "order": "other" })),
        ]),
        "command" => Reply::tool_call("terminal", json!({ "command": format!("echo {name} >> {RUNS}") })),
        "delegate" => Reply::tool_call("delegate_task", json!({ "goal": format!("do thread-{name}") })),
        "learn" => {
            let content =
                format!("---\nname: {SKILL}\ndescription: How tea is made.\n---\n{}", "Boil. ".repeat(100));
            let input = json!({ "action": "create", "name": SKILL, "content": content });
            Reply::tool_call("skill_manage", input)
        }
        "todo" => Reply::tool_call("todo", json!({ "todos": [{ "content": name }] })),
        "clarify" => Reply::tool_call("clarify", json!({ "question": "Which?", "choices": ["a", "b"] })),
        _ => Reply::text(final_text(name)),
    }
}
