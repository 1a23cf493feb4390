//! A request begins as the one before it, which is what vendors' caches live on.

use petasos_core::model::{AssistantPart, Message, Opaque, Request};
use serde_json::{Value, json};

use super::sent;
use crate::wire::Target;
use crate::wire::openai_chat::FORMAT;
use crate::wire::testing::{call, outcome, request, thinking, user};

/// One turn with two calls, of which the vendor has named one or neither, with an id that it repeats.
fn turn(number: usize) -> Vec<Message> {
    let ids = [format!("tu_{number}_a"), format!("tu_{number}_b")];
    let mut named = call(&ids[0], "look", &json!({ "at": number }));
    if let AssistantPart::ToolCall { opaque, .. } = &mut named
        && !number.is_multiple_of(3)
    {
        let id = format!("call_{}", number % 4);
        *opaque = Some(Opaque { format: FORMAT.to_owned(), provider: None, data: json!({ "id": id }) });
    }
    let attached =
        json!({ "field": "reasoning_content", "reasoning_details": [{ "index": 0, "text": "Hm." }] });
    vec![
        user(&format!("Turn {number}")),
        Message::Assistant(vec![thinking("Hm.", FORMAT, attached), named, call(&ids[1], "look", &json!({}))]),
        Message::ToolResults(ids.iter().map(|id| outcome(id, "fine", number.is_multiple_of(5))).collect()),
        Message::Assistant(vec![
            thinking("So.", FORMAT, json!("reasoning_content")),
            AssistantPart::Text(format!("Done with {number}.")),
        ]),
    ]
}

fn without_marks(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_marks),
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(without_marks);
        }
        _ => {}
    }
}

/// The messages as text, open at the end.
fn written(request: &Request, target: &Target<'_>) -> String {
    let mut messages = sent(request, target).0["messages"].take();
    without_marks(&mut messages);
    messages.to_string().strip_suffix(']').unwrap().to_owned()
}

#[test]
fn each_request_of_fifty_tool_turns_begins_as_the_one_before_it() {
    for (model, base_url) in [
        ("gpt-5", "https://api.openai.com/v1"),
        ("deepseek-v4-pro", "https://api.deepseek.com"),
        ("kimi-k2.6", "https://api.moonshot.ai/v1"),
        ("anthropic/claude-sonnet-4.5", "https://openrouter.ai/api/v1"),
    ] {
        let target = Target { base_url, ..Target::default() };
        let mut request = request("Be brief.", Vec::new());
        request.model = model.to_owned();
        let mut before = String::new();
        for number in 0..50 {
            for message in turn(number) {
                let is_asked = !matches!(message, Message::Assistant(_));
                request.messages.push(message);
                if is_asked {
                    let now = written(&request, &target);
                    assert!(now.starts_with(&before), "{model}, turn {number}");
                    before = now;
                }
            }
        }
        assert!(before.len() > 10_000);
    }
}
