//! What the answers of callbacks mean. Whatever has none of these shapes is no answer.

use serde_json::Value;

use crate::contract::Dispatch;

/// The message of a valid block. Anything else is no decision.
pub(crate) fn block_message(value: &Value) -> Option<String> {
    let message = value.get("message").and_then(Value::as_str).filter(|message| !message.is_empty());
    message.filter(|_| value.get("action").is_some_and(|action| action == "block")).map(str::to_owned)
}

/// Context for the model: a text, or an object with one.
pub(crate) fn context(value: Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text,
        Value::Object(mut object) => match object.remove("context")? {
            Value::String(text) => text,
            Value::Null | Value::Bool(false) => return None,
            other => other.to_string(),
        },
        _ => return None,
    };
    (!text.trim().is_empty()).then_some(text)
}

/// A decision about a message, if it is one.
pub(crate) fn dispatch(value: &Value) -> Option<Dispatch> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    match text("action")? {
        "allow" => Some(Dispatch::Allow),
        "skip" => Some(Dispatch::Skip { reason: text("reason").unwrap_or_default().to_owned() }),
        "rewrite" => text("text").map(|text| Dispatch::Rewrite { text: text.to_owned() }),
        _ => None,
    }
}
