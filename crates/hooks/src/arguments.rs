//! The keyword arguments of each event, to the letter. Callbacks rely on these names.
//!
//! Where the documentation of an argument and the code that calls it back disagreed about its name, both are passed.

use serde_json::{Map, Value, json};

use crate::contract::{TerminalOutput, ToolCall, ToolResult, TurnInfo, TurnStart};
use crate::history;
use crate::observation::{Approval, CallStatus, Observation};

pub(crate) type Arguments = Map<String, Value>;

/// What is told about something that happened.
pub(crate) fn of_observation(turn: &TurnInfo, observation: &Observation) -> Arguments {
    match observation {
        Observation::SessionStart => session(turn),
        Observation::PreApiRequest { call, messages, tools } => {
            let more = json!({ "message_count": messages, "tool_count": tools });
            api_request(turn, *call, more)
        }
        Observation::PostApiRequest { call, usage, duration_ms } => {
            let usage = json!({
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "total_tokens": usage.total(),
                "cache_read_tokens": usage.cached_input_tokens,
                "cache_write_tokens": usage.cache_write_tokens,
            });
            let more = json!({ "api_duration": seconds(*duration_ms), "usage": usage });
            api_request(turn, *call, more)
        }
        Observation::ApiRequestError { call, message, retrying } => {
            let more = json!({ "retryable": retrying, "reason": message, "error": { "message": message } });
            api_request(turn, *call, more)
        }
        Observation::PostToolCall { tool_use_id, tool, input, result, status, duration_ms } => {
            let told = told_result(result, *status);
            let result = ToolResult { tool_use_id, tool, input, result: &told, duration_ms: *duration_ms };
            post_tool_call(turn, result, *status)
        }
        Observation::PreApprovalRequest(asked) => approval(turn, asked),
        Observation::PostApprovalResponse { approval: asked, choice } => {
            let mut arguments = approval(turn, asked);
            arguments.insert("choice".to_owned(), (*choice).into());
            arguments
        }
        Observation::PostLlmCall { user_message, text, history } => {
            let mut arguments = object(json!({
                "session_id": turn.session_id.as_str(),
                "user_message": user_message,
                "assistant_response": text,
            }));
            arguments.insert("conversation_history".to_owned(), history::of(history));
            with(arguments, where_it_runs(turn))
        }
        Observation::SessionEnd { completed, interrupted } => {
            let ended = json!({ "completed": completed, "interrupted": interrupted });
            let arguments = with(object(json!({ "session_id": turn.session_id.as_str() })), ended);
            with(arguments, where_it_runs(turn))
        }
        Observation::SessionFinalize => {
            let arguments = json!({ "session_id": turn.session_id.as_str(), "platform": turn.platform });
            object(arguments)
        }
        Observation::SessionReset { old_session_id } => {
            let arguments = json!({
                "session_id": turn.session_id.as_str(),
                "platform": turn.platform,
                "old_session_id": old_session_id.as_ref().map(|id| id.as_str()),
                "new_session_id": turn.session_id.as_str(),
            });
            object(arguments)
        }
        Observation::SubagentStart { child_session_id, goal } => {
            let arguments = json!({
                "parent_session_id": turn.session_id.as_str(),
                "parent_turn_id": turn.turn_id,
                "child_session_id": child_session_id.as_str(),
                "child_role": null,
                "child_goal": goal,
            });
            object(arguments)
        }
        Observation::SubagentStop { child_session_id, summary, status, duration_ms } => {
            let arguments = json!({
                "parent_session_id": turn.session_id.as_str(),
                "child_role": null,
                "child_summary": (!summary.is_empty()).then_some(summary),
                "child_status": status,
                "duration_ms": duration_ms,
                "parent_turn_id": turn.turn_id,
                "child_session_id": child_session_id.as_str(),
            });
            object(arguments)
        }
    }
}

/// `pre_tool_call`.
pub(crate) fn pre_tool_call(turn: &TurnInfo, call: ToolCall<'_>, input: Arguments) -> Arguments {
    let mut arguments = object(json!({ "tool_name": call.tool }));
    arguments.insert("args".to_owned(), Value::Object(input));
    with(arguments, ids(turn, call.tool_use_id))
}

/// `pre_llm_call`.
pub(crate) fn pre_llm_call(turn: &TurnInfo, start: TurnStart<'_>) -> Arguments {
    let mut arguments = object(json!({
        "session_id": turn.session_id.as_str(),
        "user_message": start.user_message,
    }));
    arguments.insert("conversation_history".to_owned(), history::of(start.history));
    arguments.insert("is_first_turn".to_owned(), start.is_first_turn.into());
    arguments.insert("sender_id".to_owned(), turn.user_id.clone().into());
    with(arguments, where_it_runs(turn))
}

/// `transform_tool_result`.
pub(crate) fn transform_tool_result(turn: &TurnInfo, result: ToolResult<'_>) -> Arguments {
    let mut arguments = tool_result(turn, result);
    arguments.insert("arguments".to_owned(), Value::Object(result.input.clone()));
    arguments
}

/// `transform_terminal_output`.
pub(crate) fn transform_terminal_output(turn: &TurnInfo, output: TerminalOutput<'_>) -> Arguments {
    object(json!({
        "command": output.command,
        "output": output.output,
        "exit_code": output.exit_code,
        "returncode": output.exit_code,
        "cwd": output.directory,
        "task_id": turn.session_id.as_str(),
        "session_id": turn.session_id.as_str(),
        "env_type": "local",
    }))
}

/// `transform_llm_output`.
pub(crate) fn transform_llm_output(turn: &TurnInfo, text: &str) -> Arguments {
    with(object(json!({ "response_text": text })), Value::Object(session(turn)))
}

fn post_tool_call(turn: &TurnInfo, result: ToolResult<'_>, status: CallStatus) -> Arguments {
    let (status, error) = match status {
        CallStatus::Ok => ("ok", Value::Null),
        CallStatus::Error => ("error", error_message(result.result)),
        CallStatus::Blocked => ("blocked", error_message(result.result)),
    };
    with(tool_result(turn, result), json!({ "status": status, "error_message": error }))
}

fn tool_result(turn: &TurnInfo, result: ToolResult<'_>) -> Arguments {
    let mut arguments = object(json!({ "tool_name": result.tool }));
    arguments.insert("args".to_owned(), Value::Object(result.input.clone()));
    arguments.insert("result".to_owned(), result.result.into());
    arguments.insert("duration_ms".to_owned(), result.duration_ms.into());
    with(arguments, ids(turn, result.tool_use_id))
}

/// The result of a call as `post_tool_call` is told. A failure is an object with `error`, by which callbacks count.
fn told_result(result: &str, status: CallStatus) -> String {
    match status {
        CallStatus::Ok => json_result(result),
        CallStatus::Error | CallStatus::Blocked => json_result_as("error", result),
    }
}

/// A tool's result as plugins know results, which are JSON: text becomes an object with `result`.
pub fn json_result(result: &str) -> String {
    json_result_as("result", result)
}

fn json_result_as(key: &str, result: &str) -> String {
    match serde_json::from_str(result) {
        Ok(Value::Object(_)) => result.to_owned(),
        Ok(Value::Array(_)) if key == "result" => result.to_owned(),
        _ => json!({ key: result }).to_string(),
    }
}

fn error_message(told: &str) -> Value {
    let told: Value = serde_json::from_str(told).unwrap_or_default();
    told.get("error").cloned().unwrap_or_default()
}

fn approval(turn: &TurnInfo, asked: &Approval) -> Arguments {
    // Callbacks know two surfaces: a person at this machine's terminal, and everybody else.
    let surface = if turn.platform == "cli" { "cli" } else { "gateway" };
    object(json!({
        "command": asked.command,
        "description": asked.description,
        "pattern_key": asked.pattern_keys.first(),
        "pattern_keys": asked.pattern_keys,
        "session_key": turn.session_id.as_str(),
        "surface": surface,
        "session_id": turn.session_id.as_str(),
        "turn_id": turn.turn_id,
        "tool_call_id": asked.tool_use_id,
    }))
}

fn session(turn: &TurnInfo) -> Arguments {
    object(json!({
        "session_id": turn.session_id.as_str(),
        "model": turn.model,
        "platform": turn.platform,
    }))
}

fn where_it_runs(turn: &TurnInfo) -> Value {
    json!({
        "model": turn.model,
        "platform": turn.platform,
        "task_id": turn.session_id.as_str(),
        "turn_id": turn.turn_id,
    })
}

fn ids(turn: &TurnInfo, tool_use_id: &str) -> Value {
    json!({
        "task_id": turn.session_id.as_str(),
        "session_id": turn.session_id.as_str(),
        "tool_call_id": tool_use_id,
        "turn_id": turn.turn_id,
    })
}

fn api_request(turn: &TurnInfo, call: u32, more: Value) -> Arguments {
    let provider = turn.model.split_once('/').map_or("", |(provider, _)| provider);
    let arguments = object(json!({
        "task_id": turn.session_id.as_str(),
        "session_id": turn.session_id.as_str(),
        "turn_id": turn.turn_id,
        "platform": turn.platform,
        "model": turn.model,
        "provider": provider,
        "api_call_count": call,
    }));
    with(arguments, more)
}

fn seconds(milliseconds: u64) -> f64 {
    std::time::Duration::from_millis(milliseconds).as_secs_f64()
}

fn object(value: Value) -> Arguments {
    match value {
        Value::Object(object) => object,
        _ => Arguments::new(),
    }
}

fn with(mut arguments: Arguments, more: Value) -> Arguments {
    arguments.extend(object(more));
    arguments
}
