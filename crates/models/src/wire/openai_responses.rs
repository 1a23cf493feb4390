//! OpenAI's responses, used without their storage: we send the whole conversation every time, and reasoning
//! travels encrypted.

use petasos_core::event::{Block, joined_text};
use petasos_core::model::{
    ArgumentSchema, AssistantPart, Message, Opaque, Request, Stop, ToolOutcome, Usage,
};
use petasos_net::sse;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};

use super::parts::Parts;
use super::{
    Body, Problem, Reader, Step, Target, WireFormat, bearer, json, outcome_text, reported, with_tools,
};

/// Marks reasoning that came through this format.
const FORMAT: &str = "openai-responses";

pub(super) struct OpenaiResponses;

impl WireFormat for OpenaiResponses {
    fn path(&self) -> &'static str {
        "/responses"
    }

    fn headers(&self, api_key: Option<&SecretString>) -> Vec<(String, String)> {
        bearer(api_key)
    }

    fn body(&self, request: &Request, _target: &Target<'_>) -> Body {
        let mut body = json!({
            "model": request.model,
            "input": input(&request.messages),
            "stream": true,
            "store": false,
        });
        if may_reason(&request.model) {
            body["include"] = json!(["reasoning.encrypted_content"]);
            body["reasoning"] = json!({ "summary": "auto" });
        }
        if !request.system.is_empty() {
            body["instructions"] = json!(request.system);
        }
        if let Some(max) = request.settings.max_output_tokens {
            body["max_output_tokens"] = json!(max);
        }
        let json = with_tools(&body, request, |spec| Tool {
            kind: "function",
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.input_schema,
            strict: false,
        });
        Body { json, left_out: Vec::new() }
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(ResponsesReader::default())
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a ArgumentSchema,
    strict: bool,
}

/// Whether reasoning may be asked for. The older families refuse a request that does; of names that we do not
/// know we expect that they are newer.
fn may_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let older = ["gpt-3.5", "gpt-4", "chatgpt"];
    !older.iter().any(|family| name.starts_with(family)) && !name.contains("-chat")
}

fn input(messages: &[Message]) -> Vec<Value> {
    let mut items = Vec::new();
    for message in messages {
        match message {
            Message::User(content) => items.push(json!({
                "type": "message",
                "role": "user",
                "content": user_content(content),
            })),
            Message::Assistant(parts) => assistant(parts, &mut items),
            Message::ToolResults(outcomes) => items.extend(outcomes.iter().map(|outcome| {
                json!({ "type": "function_call_output", "call_id": outcome.id, "output": output(outcome) })
            })),
        }
    }
    items
}

fn user_content(content: &[Block]) -> Vec<Value> {
    if content.iter().all(|block| matches!(block, Block::Text { .. })) {
        return vec![input_text(&joined_text(content))];
    }
    let part = |block: &Block| match block {
        Block::Text { text } => input_text(text),
        Block::Image { url } => input_image(url),
    };
    content.iter().map(part).collect()
}

fn output(outcome: &ToolOutcome) -> Value {
    let text = outcome_text(outcome);
    if outcome.images.is_empty() {
        return json!(text);
    }
    let images = outcome.images.iter().map(|url| input_image(url));
    std::iter::once(input_text(&text)).chain(images).collect()
}

fn input_text(text: &str) -> Value {
    json!({ "type": "input_text", "text": text })
}

fn input_image(url: &str) -> Value {
    json!({ "type": "input_image", "image_url": url })
}

fn assistant(parts: &[AssistantPart], items: &mut Vec<Value>) {
    for part in parts {
        match part {
            AssistantPart::Thinking { opaque: Some(Opaque { format, data, .. }), .. } if format == FORMAT => {
                items.push(data.clone());
            }
            AssistantPart::Thinking { .. } => {}
            AssistantPart::Text(text) if text.is_empty() => {}
            AssistantPart::Text(text) => items.push(json!({
                "type": "message",
                "role": "assistant",
                "content": [{ "type": "output_text", "text": text }],
            })),
            AssistantPart::ToolCall { id, name, input, .. } => items.push(json!({
                "type": "function_call",
                "call_id": id,
                "name": name,
                "arguments": Value::Object(input.clone()).to_string(),
            })),
        }
    }
    // Reasoning is only accepted in front of what it led to.
    while items.last().is_some_and(|item| item["type"] == "reasoning") {
        items.pop();
    }
}

#[derive(Default)]
struct ResponsesReader {
    parts: Parts,
    refused: bool,
}

impl Reader for ResponsesReader {
    fn read(&mut self, event: &sse::Event, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let data = json(event)?;
        let Some(kind) = data["type"].as_str() else {
            return Err(match data.get("error") {
                Some(error) => reported(error),
                None => Problem::Malformed("an event has no type".to_owned()),
            });
        };
        let key = data["output_index"].as_u64().unwrap_or(0);
        let delta = data["delta"].as_str().unwrap_or_default();
        match kind {
            "response.output_text.delta" => self.text(key, delta, steps)?,
            "response.refusal.delta" => {
                self.refused = true;
                self.text(key, delta, steps)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.thinking(key, delta, steps)?;
            }
            // A summary has headed sections, which would run into each other.
            "response.reasoning_summary_part.added" if data["summary_index"].as_u64() > Some(0) => {
                self.thinking(key, "\n\n", steps)?;
            }
            "response.output_item.added" if data["item"]["type"] == "function_call" => {
                self.parts.call(key, data["item"]["name"].as_str().unwrap_or_default(), "")?;
            }
            "response.function_call_arguments.delta" => self.parts.call(key, "", delta)?,
            "response.function_call_arguments.done" => {
                if let Some(whole) = data["arguments"].as_str() {
                    self.parts.final_arguments(key, whole)?;
                }
            }
            "response.output_item.done" => self.item_done(key, &data["item"])?,
            "response.completed" | "response.incomplete" => steps.push(self.finish(&data["response"])?),
            "response.failed" => return Err(reported(&data["response"]["error"])),
            "error" => return Err(reported(data.get("error").unwrap_or(&data))),
            // Further kinds repeat in full what came in deltas, or are about tools that we do not use.
            _ => {}
        }
        Ok(())
    }

    fn size(&self) -> usize {
        self.parts.size()
    }
}

impl ResponsesReader {
    fn text(&mut self, key: u64, piece: &str, steps: &mut Vec<Step>) -> Result<(), Problem> {
        steps.push(Step::Text(piece.to_owned()));
        self.parts.text(key, piece)
    }

    fn thinking(&mut self, key: u64, piece: &str, steps: &mut Vec<Step>) -> Result<(), Problem> {
        steps.push(Step::Thinking(piece.to_owned()));
        self.parts.thinking(key, piece)
    }

    fn item_done(&mut self, key: u64, item: &Value) -> Result<(), Problem> {
        match item["type"].as_str() {
            Some("function_call") => {
                if self.parts.get(key).is_none() {
                    self.parts.call(key, item["name"].as_str().unwrap_or_default(), "")?;
                }
                if let Some(whole) = item["arguments"].as_str() {
                    self.parts.final_arguments(key, whole)?;
                }
            }
            Some("reasoning") if item["encrypted_content"].is_string() => {
                // Without its id: nothing is stored there, so that an id would be looked up in vain.
                let data = json!({
                    "type": "reasoning",
                    "summary": item["summary"].as_array().cloned().unwrap_or_default(),
                    "encrypted_content": item["encrypted_content"],
                });
                self.parts.opaque(key, Opaque { format: FORMAT.to_owned(), provider: None, data })?;
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, response: &Value) -> Result<Step, Problem> {
        let usage = &response["usage"];
        let usage = Usage {
            input_tokens: usage["input_tokens"].as_u64().unwrap_or(0),
            output_tokens: usage["output_tokens"].as_u64().unwrap_or(0),
            cached_input_tokens: usage["input_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0),
            ..Usage::default()
        };
        let stop = match response["incomplete_details"]["reason"].as_str() {
            Some("content_filter") => Stop::Refusal,
            Some(_) => Stop::MaxTokens,
            None if response["status"] == "incomplete" => Stop::MaxTokens,
            None if self.refused => Stop::Refusal,
            None if self.parts.has_calls() => Stop::ToolUse,
            None => Stop::EndTurn,
        };
        Ok(Step::Finished(self.parts.finish(usage, stop)?))
    }
}

#[cfg(test)]
mod tests;
