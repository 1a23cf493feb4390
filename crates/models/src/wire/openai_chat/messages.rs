//! The conversation as this format writes it.

use petasos_core::event::{Block, joined_text};
use petasos_core::model::{AssistantPart, Message, Opaque, Request, ToolOutcome};
use serde_json::{Map, Value, json};

use super::attached::attach;
use super::{FORMAT, REASONING_FIELDS};
use crate::wire::call_ids::CallIds;
use crate::wire::{Target, host, outcome_text};

/// The fields of a call that are written from what we know of it.
const OWN_FIELDS: [&str; 2] = ["id", "type"];

/// What the vendor of a model expects of the messages.
#[derive(Debug, Clone, Copy)]
struct Expected {
    /// Texts are written as blocks, which alone can carry a cache mark.
    marks: bool,
    /// The assistant messages that must have reasoning.
    reasoning: Reasoning,
}

/// The assistant messages on which a vendor insists to get reasoning back.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reasoning {
    /// None: it goes back where there is some, on messages with calls.
    Optional,
    /// Those with calls, be it empty.
    OnCalls,
    /// All of them, be it empty.
    OnAll,
}

impl Expected {
    fn of(request: &Request, target: &Target<'_>) -> Self {
        let model = request.model.to_lowercase();
        let host = host(target.base_url);
        // Groq refuses the field for models that do not reason there.
        let reasoning = if host == "api.groq.com" {
            Reasoning::Optional
        } else if model.contains("deepseek-v4") {
            Reasoning::OnAll
        } else if model.contains("kimi-k2.") || model.contains("kimi-k2-thinking") {
            Reasoning::OnCalls
        } else {
            Reasoning::Optional
        };
        Expected { marks: host == "openrouter.ai" && model.starts_with("anthropic/"), reasoning }
    }
}

/// All messages of a request. Each is written from itself and the calls before it alone, so that what was sent once is
/// the beginning of what is sent next, which is what vendors' caches look for.
pub(super) fn messages(request: &Request, target: &Target<'_>) -> Vec<Value> {
    let expected = Expected::of(request, target);
    let mut ids = CallIds::of(&request.messages, FORMAT);
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": text(&request.system, expected) }));
    }
    for message in &request.messages {
        match message {
            Message::User(content) => {
                messages.push(json!({ "role": "user", "content": user_content(content, expected) }));
            }
            Message::Assistant(parts) => messages.extend(assistant(parts, &mut ids, expected)),
            Message::ToolResults(outcomes) => tool_results(outcomes, &mut ids, expected, &mut messages),
        }
    }
    if expected.marks {
        let system = messages.first_mut().filter(|message| message["role"] == "system");
        system.map(mark);
        messages.last_mut().map(mark);
    }
    messages
}

/// Text alone stays a string: many servers know nothing else. Empty blocks are refused.
fn text(text: &str, expected: Expected) -> Value {
    if expected.marks && !text.is_empty() { json!([{ "type": "text", "text": text }]) } else { json!(text) }
}

/// Asks the vendor to cache everything up to the end of a message.
fn mark(message: &mut Value) {
    if let Some(block) = message["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
}

fn user_content(content: &[Block], expected: Expected) -> Value {
    if content.iter().all(|block| matches!(block, Block::Text { .. })) {
        return text(&joined_text(content), expected);
    }
    let part = |block: &Block| match block {
        Block::Text { text } => json!({ "type": "text", "text": text }),
        Block::Image { url } => image(url),
    };
    content.iter().map(part).collect()
}

fn image(url: &str) -> Value {
    json!({ "type": "image_url", "image_url": { "url": url } })
}

/// Results are text in this format; their pictures follow as if the user had sent them.
fn tool_results(
    outcomes: &[ToolOutcome],
    ids: &mut CallIds<'_>,
    expected: Expected,
    messages: &mut Vec<Value>,
) {
    messages.extend(outcomes.iter().map(|outcome| {
        let content = text(&outcome_text(outcome), expected);
        json!({ "role": "tool", "tool_call_id": ids.next_result(&outcome.id), "content": content })
    }));
    for outcome in outcomes.iter().filter(|outcome| !outcome.images.is_empty()) {
        let label =
            json!({ "type": "text", "text": format!("[Images from the result of {}]", outcome.name) });
        let images = outcome.images.iter().map(|url| image(url));
        let content: Vec<Value> = std::iter::once(label).chain(images).collect();
        messages.push(json!({ "role": "user", "content": content }));
    }
}

/// One assistant message; none if nothing of it can be sent.
fn assistant(parts: &[AssistantPart], ids: &mut CallIds<'_>, expected: Expected) -> Option<Value> {
    let mut text = String::new();
    let mut calls = Vec::new();
    let (mut reasoning, mut attached) = (Map::new(), Map::new());
    for part in parts {
        match part {
            AssistantPart::Text(more) => text.push_str(more),
            AssistantPart::ToolCall { id, name, input, opaque } => {
                calls.push(call(ids.next_call(id), name, input, opaque.as_ref()));
            }
            AssistantPart::Thinking { text, opaque: Some(Opaque { format, data, .. }) }
                if format == FORMAT =>
            {
                if let Some(field) = reasoning_field(data).filter(|_| !text.is_empty()) {
                    let entry = reasoning.entry(field).or_insert_with(|| json!(""));
                    if let Value::String(before) = entry {
                        before.push_str(text);
                    }
                }
                if let Value::Object(fields) = data {
                    attach(&mut attached, fields);
                }
            }
            AssistantPart::Thinking { .. } => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let has_calls = !calls.is_empty();
    // Marks stand only at the end of a conversation, which is never an assistant's message.
    let content = if text.is_empty() { Value::Null } else { Value::String(text) };
    let mut message =
        Map::from_iter([("role".to_owned(), json!("assistant")), ("content".to_owned(), content)]);
    if has_calls {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    // Vendors that reason between tool calls want that reasoning back in all later requests, and some want no other.
    let is_missing = reasoning.is_empty();
    if has_calls || expected.reasoning == Reasoning::OnAll {
        message.extend(reasoning);
    }
    let is_required = match expected.reasoning {
        Reasoning::Optional => false,
        Reasoning::OnCalls => has_calls,
        Reasoning::OnAll => true,
    };
    if is_missing && is_required {
        message.insert(REASONING_FIELDS[0].to_owned(), json!(""));
    }
    message.extend(attached);
    Some(Value::Object(message))
}

/// The name under which a thought came. Logs of earlier versions hold the name alone.
fn reasoning_field(data: &Value) -> Option<&str> {
    let name = data.as_str().or_else(|| data["field"].as_str())?;
    REASONING_FIELDS.into_iter().find(|field| *field == name)
}

/// One call, with everything that its vendor wants back.
fn call(id: String, name: &str, input: &Map<String, Value>, opaque: Option<&Opaque>) -> Value {
    let mut function = Map::from_iter([
        ("name".to_owned(), json!(name)),
        ("arguments".to_owned(), Value::String(serde_json::to_string(input).unwrap_or_default())),
    ]);
    let mut call = Map::from_iter([("id".to_owned(), json!(id)), ("type".to_owned(), json!("function"))]);
    let kept = opaque.filter(|opaque| opaque.format == FORMAT).and_then(|opaque| opaque.data.as_object());
    for (field, value) in kept.into_iter().flatten() {
        match (field.as_str(), value) {
            ("function", Value::Object(fields)) => {
                for (field, value) in fields {
                    function.entry(field.clone()).or_insert_with(|| value.clone());
                }
            }
            (field, _) if OWN_FIELDS.contains(&field) => {}
            _ => {
                call.insert(field.clone(), value.clone());
            }
        }
    }
    call.insert("function".to_owned(), Value::Object(function));
    Value::Object(call)
}
