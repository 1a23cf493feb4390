//! Anthropic's messages.

use petasos_core::event::Block;
use petasos_core::model::{AnswerPart, ArgumentSchema, AssistantPart, Message, Opaque, Request, Stop, Usage};
use petasos_net::sse;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::{Value, json};

use super::parts::Parts;
use super::{Body, Problem, Reader, Step, Target, WireFormat, data_uri, json, reported, with_tools};

/// Marks reasoning that came through this format.
const FORMAT: &str = "anthropic";

const VERSION: &str = "2023-06-01";

/// The format requires a limit. All models of the last years can write this much.
const DEFAULT_MAX_TOKENS: u64 = 8192;

pub(super) struct Anthropic;

impl WireFormat for Anthropic {
    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn headers(&self, api_key: Option<&SecretString>) -> Vec<(String, String)> {
        let mut headers = vec![("anthropic-version".to_owned(), VERSION.to_owned())];
        if let Some(key) = api_key {
            headers.push(("x-api-key".to_owned(), key.expose_secret().to_owned()));
        }
        headers
    }

    fn body(&self, request: &Request, _target: &Target<'_>) -> Body {
        let mut body = json!({
            "model": request.model,
            "max_tokens": request.settings.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            "messages": messages(&request.messages),
            "stream": true,
        });
        if !request.system.is_empty() {
            let cached = json!({ "type": "ephemeral" });
            body["system"] = json!([{ "type": "text", "text": request.system, "cache_control": cached }]);
        }
        let json = with_tools(&body, request, |spec| Tool {
            name: &spec.name,
            description: &spec.description,
            input_schema: &spec.input_schema,
        });
        Body { json, left_out: Vec::new() }
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(AnthropicReader::default())
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a ArgumentSchema,
}

/// The conversation with strictly alternating roles, and a cache mark at its end.
fn messages(messages: &[Message]) -> Vec<Value> {
    let mut merged: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = blocks(message);
        match merged.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => merged.push((role, blocks)),
        }
    }
    if let Some(block) = merged.last_mut().and_then(|(_, content)| content.last_mut()) {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
    merged.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn blocks(message: &Message) -> (&'static str, Vec<Value>) {
    match message {
        Message::User(content) => ("user", content.iter().filter_map(user_block).collect()),
        Message::ToolResults(outcomes) => {
            let result = |outcome: &petasos_core::model::ToolOutcome| {
                let mut block = json!({ "type": "tool_result", "tool_use_id": outcome.id });
                if !outcome.images.is_empty() {
                    let images = outcome.images.iter().map(|url| image(url));
                    block["content"] = text(&outcome.text).into_iter().chain(images).collect();
                } else if !outcome.text.trim().is_empty() {
                    block["content"] = json!(outcome.text);
                }
                if outcome.is_error {
                    block["is_error"] = json!(true);
                }
                block
            };
            ("user", outcomes.iter().map(result).collect())
        }
        Message::Assistant(parts) => {
            let mut blocks: Vec<Value> = parts.iter().filter_map(assistant_block).collect();
            // A message must not end in reasoning.
            let is_reasoning =
                |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
            while blocks.last().is_some_and(is_reasoning) {
                blocks.pop();
            }
            ("assistant", blocks)
        }
    }
}

fn user_block(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text: said } => text(said),
        Block::Image { url } => Some(image(url)),
    }
}

/// A picture: here the data of a URI and its type are sent apart.
fn image(url: &str) -> Value {
    let source = match data_uri(url) {
        Some((media_type, data)) => json!({ "type": "base64", "media_type": media_type, "data": data }),
        None => json!({ "type": "url", "url": url }),
    };
    json!({ "type": "image", "source": source })
}

/// A text block; blank ones are refused there.
fn text(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn assistant_block(part: &AssistantPart) -> Option<Value> {
    match part {
        AssistantPart::Text(said) => text(said),
        AssistantPart::ToolCall { id, name, input, .. } => {
            Some(json!({ "type": "tool_use", "id": id, "name": name, "input": input }))
        }
        AssistantPart::Thinking { opaque: Some(Opaque { format, data, .. }), .. }
            if format == FORMAT && data.is_object() =>
        {
            Some(data.clone())
        }
        AssistantPart::Thinking { .. } => None,
    }
}

#[derive(Default)]
struct AnthropicReader {
    parts: Parts,
    usage: RawUsage,
    stop_reason: Option<String>,
}

/// The vendor's figures. Cached tokens are not part of its `input_tokens`.
#[derive(Default)]
struct RawUsage {
    input: u64,
    cache_read: u64,
    cache_creation: u64,
    output: u64,
}

impl RawUsage {
    /// Takes the figures that are present: later events repeat only some of them.
    fn update(&mut self, usage: &Value) {
        for (field, name) in [
            (&mut self.input, "input_tokens"),
            (&mut self.cache_read, "cache_read_input_tokens"),
            (&mut self.cache_creation, "cache_creation_input_tokens"),
            (&mut self.output, "output_tokens"),
        ] {
            *field = usage[name].as_u64().unwrap_or(*field);
        }
    }

    fn total(&self) -> Usage {
        Usage {
            input_tokens: self.input.saturating_add(self.cache_read).saturating_add(self.cache_creation),
            output_tokens: self.output,
            cached_input_tokens: self.cache_read,
            cache_write_tokens: self.cache_creation,
            cost_nanos: None,
        }
    }
}

impl Reader for AnthropicReader {
    fn read(&mut self, event: &sse::Event, steps: &mut Vec<Step>) -> Result<(), Problem> {
        let data = json(event)?;
        let Some(kind) = data["type"].as_str() else {
            return Err(match data.get("error") {
                Some(error) => reported(error),
                None => Problem::Malformed("an event has no type".to_owned()),
            });
        };
        let key = data["index"].as_u64().unwrap_or(0);
        match kind {
            "message_start" => self.usage.update(&data["message"]["usage"]),
            "content_block_start" => self.start(key, &data["content_block"], steps)?,
            "content_block_delta" => self.delta(key, &data["delta"], steps)?,
            "message_delta" => {
                self.usage.update(&data["usage"]);
                if let Some(reason) = data["delta"]["stop_reason"].as_str() {
                    self.stop_reason = Some(reason.to_owned());
                }
            }
            "message_stop" => steps.push(self.finish()?),
            "error" => return Err(reported(&data["error"])),
            // The protocol asks readers to pass over kinds that they do not know; `ping` is one.
            _ => {}
        }
        Ok(())
    }

    fn size(&self) -> usize {
        self.parts.size()
    }
}

impl AnthropicReader {
    fn start(&mut self, key: u64, block: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        match block["type"].as_str() {
            Some("tool_use") => {
                // The input comes in deltas; some servers send all of it here instead.
                let whole = block["input"].as_object().filter(|input| !input.is_empty());
                let whole = whole.map(|input| Value::Object(input.clone()).to_string()).unwrap_or_default();
                self.parts.call(key, block["name"].as_str().unwrap_or_default(), &whole)
            }
            Some("redacted_thinking") => {
                let data = json!({ "type": "redacted_thinking", "data": block["data"] });
                self.parts.opaque(key, Opaque { format: FORMAT.to_owned(), provider: None, data })
            }
            Some("text") => self.text(key, block["text"].as_str().unwrap_or_default(), steps),
            Some("thinking") => self.thinking(key, block["thinking"].as_str().unwrap_or_default(), steps),
            _ => Ok(()),
        }
    }

    fn delta(&mut self, key: u64, delta: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        let field = |name: &str| delta[name].as_str().unwrap_or_default();
        match delta["type"].as_str() {
            Some("text_delta") => self.text(key, field("text"), steps),
            Some("thinking_delta") => self.thinking(key, field("thinking"), steps),
            Some("signature_delta") => self.signature(key, field("signature")),
            Some("input_json_delta") => self.parts.call(key, "", field("partial_json")),
            _ => Ok(()),
        }
    }

    fn text(&mut self, key: u64, piece: &str, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if !piece.is_empty() {
            steps.push(Step::Text(piece.to_owned()));
        }
        self.parts.text(key, piece)
    }

    fn thinking(&mut self, key: u64, piece: &str, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if !piece.is_empty() {
            steps.push(Step::Thinking(piece.to_owned()));
        }
        self.parts.thinking(key, piece)
    }

    /// Keeps the whole block: the signature is only valid for exactly this text.
    fn signature(&mut self, key: u64, piece: &str) -> Result<(), Problem> {
        let Some(AnswerPart::Thinking { text, opaque }) = self.parts.get(key) else {
            return Err(Problem::Malformed("a signature came without reasoning".to_owned()));
        };
        let before = opaque.as_ref().and_then(|opaque| opaque.data["signature"].as_str()).unwrap_or_default();
        let data = json!({ "type": "thinking", "thinking": text, "signature": format!("{before}{piece}") });
        self.parts.opaque(key, Opaque { format: FORMAT.to_owned(), provider: None, data })
    }

    fn finish(&mut self) -> Result<Step, Problem> {
        let stop = match self.stop_reason.as_deref() {
            Some("refusal") => Stop::Refusal,
            Some("max_tokens" | "model_context_window_exceeded") => Stop::MaxTokens,
            _ if self.parts.has_calls() => Stop::ToolUse,
            _ => Stop::EndTurn,
        };
        Ok(Step::Finished(self.parts.finish(self.usage.total(), stop)?))
    }
}

#[cfg(test)]
mod tests;
