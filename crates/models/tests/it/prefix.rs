//! What a vendor caches is the beginning of a request: it must be that of the next one, byte for byte.

use petasos_core::event::Block;
use petasos_core::model::{AnswerPart, AssistantPart, Message, ToolOutcome};
use petasos_models::ProviderKind;
use petasos_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::{model, quick, request, run};

/// A copy without cache marks.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(unmarked).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "cache_control");
            Value::Object(kept.map(|(name, value)| (name.clone(), unmarked(value))).collect())
        }
        other => other.clone(),
    }
}

/// The bytes of a request up to its last user message, that one left out.
fn beginning(body: &Value) -> String {
    let field = if body["messages"].is_array() { "messages" } else { "input" };
    let said = body[field].as_array().unwrap();
    let is_users = |item: &Value| {
        let is_result = item["content"][0]["type"] == "tool_result";
        item["role"] == "user" && !is_result
    };
    let end = said.iter().rposition(is_users).unwrap();
    let text = unmarked(&Value::Array(said[..end].to_vec())).to_string();
    text.trim_end_matches(']').to_owned()
}

/// A conversation of 50 turns, each with calls of tools, as the engine would carry it on.
#[tokio::test]
async fn each_request_begins_like_the_one_before() {
    for kind in [ProviderKind::Anthropic, ProviderKind::OpenaiResponses] {
        let server = ModelServer::start().await;
        let model = model(kind, &server, quick());
        let mut request = request("Turn 0");
        let mut calls = 0;
        for turn in 0..50 {
            if turn > 0 {
                request.messages.push(Message::User(vec![Block::text(format!("Turn {turn}"))]));
            }
            let tools = (0..1 + turn % 4).map(|call| ("get_time", json!({ "call": call })));
            server.script([
                Reply::thinking("Hm.").and_text("Let me look.").and_tool_calls(tools),
                Reply::thinking("Well.").and_text(format!("Done with {turn}.")),
            ]);
            for _ in 0..2 {
                let answer = run(model.as_ref(), request.clone()).await.answer();
                let (mut said, mut results) = (Vec::new(), Vec::new());
                for part in answer.parts {
                    said.push(match part {
                        AnswerPart::Thinking { text, opaque } => AssistantPart::Thinking { text, opaque },
                        AnswerPart::Text(text) => AssistantPart::Text(text),
                        AnswerPart::ToolCall { name, arguments, opaque } => {
                            calls += 1;
                            let id = format!("tu_{calls}");
                            results.push(ToolOutcome {
                                id: id.clone(),
                                name: name.clone(),
                                text: format!("noon {calls}"),
                                images: Vec::new(),
                                is_error: calls % 7 == 0,
                            });
                            let input = serde_json::from_str(&arguments).unwrap();
                            AssistantPart::ToolCall { id, name, input, opaque }
                        }
                    });
                }
                request.messages.push(Message::Assistant(said));
                if !results.is_empty() {
                    request.messages.push(Message::ToolResults(results));
                }
            }
        }
        let requests = server.requests();
        assert_eq!(requests.len(), 100);
        for pair in requests.windows(2) {
            let [before, after] = [&pair[0], &pair[1]].map(|request| beginning(&request.body));
            assert!(after.starts_with(&before), "{kind:?}: {before} is not the beginning of {after}");
            let rest = ["tools", "system", "instructions", "model", "max_tokens"];
            assert!(
                rest.iter().all(|field| unmarked(&pair[0].body[*field]) == unmarked(&pair[1].body[*field]))
            );
        }
    }
}
