//! What the answer of a hook of the configuration means.

use serde_json::{Map, Value, json};

use super::spec::HookSpec;
use crate::event::HookEvent;
use crate::source::{Answer, Firing};

/// What the model is told when a hook blocks a call and does not say why.
const NO_REASON: &str = "Blocked by a hook.";
/// How much of a hook's error output is repeated.
const MAX_ERROR_CHARS: usize = 400;
/// How much of an answer that cannot be read is repeated.
const MAX_SHOWN_CHARS: usize = 200;
/// The most that a hook may answer.
pub(crate) const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// What a hook said, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exchange {
    /// What it returned, if it is a command that ended.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The answer.
    pub stdout: String,
    /// Whether it said more than it may.
    pub cut: bool,
    /// What it complained about.
    pub stderr: String,
}

/// Reads an answer.
pub(crate) fn judge(spec: &HookSpec, firing: &Firing, exchange: &Exchange) -> Result<Answer, String> {
    let is_guard = spec.fail_closed && firing.event == HookEvent::PreToolCall;
    let said = read(exchange).and_then(|said| if is_guard { decided(said) } else { Ok(said.map(object)) });
    if spec.exit_code_2_blocks && exchange.exit_code == Some(2) {
        return Ok(blocked_by_exit_code(said.ok().flatten().as_ref(), exchange));
    }
    let failed = failure(exchange);
    match (said?, failed) {
        // A command that fails and says nothing has not done its work.
        (None, Some(failed)) => Err(failed),
        (None, None) => Ok(Answer::default()),
        (Some(said), complaint) => Ok(Answer { complaint, ..answer(spec, firing, &said) }),
    }
}

/// The object of an answer. Anything else is valid JSON, and no answer that we know.
fn object(said: Value) -> Map<String, Value> {
    match said {
        Value::Object(said) => said,
        _ => Map::new(),
    }
}

/// The same for a guard, whose decision must be one that we know.
fn decided(said: Option<Value>) -> Result<Option<Map<String, Value>>, String> {
    const KNOWN: [&str; 6] = ["allow", "approve", "ask", "block", "deny", "modify"];
    let said = match said {
        Some(Value::Object(said)) => said,
        Some(_) => return Err("its answer is no JSON object".to_owned()),
        None => return Ok(None),
    };
    let unknown = |name: &&&str| {
        said.get(**name).is_some_and(|word| !word.is_null() && !KNOWN.iter().any(|known| word == known))
    };
    match ["action", "decision"].iter().find(unknown) {
        Some(name) => Err(format!("its `{name}` is none that guards have: {}", KNOWN.join(", "))),
        None => Ok(Some(said)),
    }
}

/// What was answered, if anything was.
fn read(exchange: &Exchange) -> Result<Option<Value>, String> {
    if exchange.cut {
        return Err(format!("it wrote more than {MAX_ANSWER_BYTES} bytes"));
    }
    let text = exchange.stdout.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match serde_json::from_str(text) {
        Ok(said) => Ok(Some(said)),
        Err(_) => {
            let shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
            Err(format!("its output is no JSON: {shown}"))
        }
    }
}

fn answer(spec: &HookSpec, firing: &Firing, said: &Map<String, Value>) -> Answer {
    if firing.event != HookEvent::PreToolCall {
        let context = text(said, "context").map(|context| json!({ "context": context }));
        return Answer { value: context.unwrap_or_default(), ..Answer::default() };
    }
    if let Some(message) = block(said) {
        return Answer { value: block_value(message), ..Answer::default() };
    }
    Answer { input: if spec.modify { modified(firing, said) } else { None }, ..Answer::default() }
}

/// The reason of a block, in whichever of the shapes that hooks know it is written.
fn block(said: &Map<String, Value>) -> Option<&str> {
    let says = |name: &str, words: &[&str]| {
        said.get(name).and_then(Value::as_str).is_some_and(|word| words.contains(&word))
    };
    let reason = |names: [&str; 2]| names.into_iter().find_map(|name| text(said, name)).unwrap_or(NO_REASON);
    if says("action", &["block"]) {
        return Some(reason(["message", "reason"]));
    }
    if says("decision", &["block", "deny"]) {
        return Some(reason(["reason", "message"]));
    }
    let specific = said.get("hookSpecificOutput").and_then(Value::as_object);
    if let Some(specific) =
        specific.filter(|specific| specific.get("permissionDecision") == Some(&"deny".into()))
    {
        return Some(
            text(specific, "permissionDecisionReason").unwrap_or_else(|| reason(["reason", "message"])),
        );
    }
    // A hook that wants nothing to go on does not want this call either.
    let stops = said.get("continue") == Some(&Value::Bool(false));
    stops.then(|| reason(["stopReason", "reason"]))
}

fn block_value(message: &str) -> Value {
    json!({ "action": "block", "message": message })
}

fn blocked_by_exit_code(said: Option<&Map<String, Value>>, exchange: &Exchange) -> Answer {
    let complained: String = exchange.stderr.trim().chars().take(MAX_ERROR_CHARS).collect();
    let message = match said.and_then(block) {
        Some(message) => message,
        None if complained.is_empty() => NO_REASON,
        None => &complained,
    };
    Answer { value: block_value(message), ..Answer::default() }
}

/// The tool's arguments with what the hook put over them.
fn modified(firing: &Firing, said: &Map<String, Value>) -> Option<Map<String, Value>> {
    let says = |name: &str| said.get(name).is_some_and(|value| value == "modify");
    let changes = match (says("action"), says("decision")) {
        (true, _) => said.get("args"),
        (false, true) => said.get("tool_input"),
        (false, false) => None,
    };
    let mut input = firing.arguments.get("args")?.as_object()?.clone();
    input.extend(changes?.as_object()?.clone());
    Some(input)
}

/// Why a command failed, if it did.
fn failure(exchange: &Exchange) -> Option<String> {
    let how = match (exchange.exit_code, exchange.signal) {
        (Some(0), _) | (None, None) => return None,
        (Some(code), _) => format!("it returned {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
    };
    let complained: String = exchange.stderr.trim().chars().take(MAX_ERROR_CHARS).collect();
    Some(if complained.is_empty() { how } else { format!("{how}: {complained}") })
}

fn text<'a>(said: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    said.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}
