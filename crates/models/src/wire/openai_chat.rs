//! OpenAI's chat completions, as OpenAI and the many who copied it speak them.
//!
//! The format is loose: reasoning has two names, the end marker is sometimes missing, parallel calls sometimes
//! share an index. Whatever is unambiguous is accepted.

use std::borrow::Cow;

use petasos_core::event::{Block, joined_text};
use petasos_core::model::{
    Answer, ArgumentSchema, AssistantPart, Message, Opaque, Request, Stop, ToolOutcome, ToolSpec, Usage,
};
use petasos_net::sse;
use secrecy::SecretString;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::parts::Parts;
use super::{
    Body, Problem, Reader, Step, Target, WireFormat, bearer, json, outcome_text, reported, with_tools,
};

/// Marks reasoning that came through this format.
const FORMAT: &str = "openai-chat";

/// The names under which reasoning is streamed. OpenRouter sends the same text under both.
const REASONING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

pub(super) struct OpenaiChat;

impl WireFormat for OpenaiChat {
    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn headers(&self, api_key: Option<&SecretString>) -> Vec<(String, String)> {
        bearer(api_key)
    }

    fn body(&self, request: &Request, target: &Target<'_>) -> Body {
        let mut body = json!({
            "model": request.model,
            "messages": messages(request),
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        if let Some(max) = request.settings.max_output_tokens {
            // OpenAI's reasoning models refuse the old name, most other servers do not know the new one.
            let name =
                if target.base_url.contains("openai.com") { "max_completion_tokens" } else { "max_tokens" };
            body[name] = json!(max);
        }
        let json = with_tools(&body, request, |spec| Tool { kind: "function", function: Function::of(spec) });
        Body { json, left_out: Vec::new() }
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(ChatReader::default())
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a ArgumentSchema,
}

impl<'a> Function<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Function { name: &spec.name, description: &spec.description, parameters: &spec.input_schema }
    }
}

fn messages(request: &Request) -> Vec<Value> {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    let last_user = request.messages.iter().rposition(|message| matches!(message, Message::User(_)));
    for (index, message) in request.messages.iter().enumerate() {
        match message {
            Message::User(content) => {
                messages.push(json!({ "role": "user", "content": user_content(content) }));
            }
            Message::Assistant(parts) => {
                messages.extend(assistant(parts, last_user.is_none_or(|user| index > user)));
            }
            Message::ToolResults(outcomes) => tool_results(outcomes, &mut messages),
        }
    }
    messages
}

/// Text alone stays a text: many servers know nothing else.
fn user_content(content: &[Block]) -> Value {
    if content.iter().all(|block| matches!(block, Block::Text { .. })) {
        return json!(joined_text(content));
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
fn tool_results(outcomes: &[ToolOutcome], messages: &mut Vec<Value>) {
    messages.extend(outcomes.iter().map(
        |outcome| json!({ "role": "tool", "tool_call_id": outcome.id, "content": outcome_text(outcome) }),
    ));
    for outcome in outcomes.iter().filter(|outcome| !outcome.images.is_empty()) {
        let label =
            json!({ "type": "text", "text": format!("[Images from the result of {}]", outcome.name) });
        let images = outcome.images.iter().map(|url| image(url));
        let content: Vec<Value> = std::iter::once(label).chain(images).collect();
        messages.push(json!({ "role": "user", "content": content }));
    }
}

/// One assistant message; none if nothing of it can be sent.
fn assistant(parts: &[AssistantPart], in_this_turn: bool) -> Option<Value> {
    let mut text = String::new();
    let mut calls = Vec::new();
    let mut reasoning = Map::new();
    for part in parts {
        match part {
            AssistantPart::Text(more) => text.push_str(more),
            AssistantPart::ToolCall { id, name, input, .. } => calls.push(json!({
                "id": id,
                "type": "function",
                "function": { "name": name, "arguments": Value::Object(input.clone()).to_string() },
            })),
            AssistantPart::Thinking { text, opaque: Some(Opaque { format, data, .. }) }
                if format == FORMAT =>
            {
                let field = data.as_str().unwrap_or(REASONING_FIELDS[0]);
                let entry = reasoning.entry(field).or_insert_with(|| json!(""));
                *entry = json!(format!("{}{text}", entry.as_str().unwrap_or_default()));
            }
            AssistantPart::Thinking { .. } => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        if text.is_empty() {
            message["content"] = Value::Null;
        }
        message["tool_calls"] = Value::Array(calls);
        // Providers that reason between tool calls want the reasoning back until the turn is over, and some
        // refuse it afterwards.
        if in_this_turn && let Some(fields) = message.as_object_mut() {
            fields.extend(reasoning);
        }
    }
    Some(message)
}

/// An event that brings a piece of text and nothing else. Nearly all are like that, so they are read without making a
/// tree of them first.
#[derive(Deserialize)]
struct TextEvent<'a> {
    #[serde(borrow)]
    choices: [TextChoice<'a>; 1],
    error: Option<IgnoredAny>,
    usage: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct TextChoice<'a> {
    #[serde(borrow)]
    delta: TextDelta<'a>,
    finish_reason: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct TextDelta<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
    reasoning_content: Option<IgnoredAny>,
    reasoning: Option<IgnoredAny>,
    refusal: Option<IgnoredAny>,
    tool_calls: Option<IgnoredAny>,
}

/// The text of an event that brings nothing else.
fn plain_text(data: &str) -> Option<Cow<'_, str>> {
    let TextEvent { choices: [choice], error: None, usage: None } = serde_json::from_str(data).ok()? else {
        return None;
    };
    let TextChoice { delta, finish_reason: None } = choice else { return None };
    let TextDelta { content, reasoning_content: None, reasoning: None, refusal: None, tool_calls: None } =
        delta
    else {
        return None;
    };
    Some(content)
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Thinking,
}

/// A tool call under way.
struct Call {
    index: Option<u64>,
    id: String,
    key: u64,
}

#[derive(Default)]
struct ChatReader {
    parts: Parts,
    /// What is being written, and its key. Text after reasoning is a new part.
    open: Option<(Kind, u64)>,
    calls: Vec<Call>,
    next_key: u64,
    usage: Usage,
    finish_reason: Option<String>,
    refused: bool,
}

impl Reader for ChatReader {
    fn read(&mut self, event: &sse::Event, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if event.data.trim() == "[DONE]" {
            steps.push(Step::Finished(self.finish()?));
            return Ok(());
        }
        if let Some(piece) = plain_text(&event.data) {
            return self.text(&piece, steps);
        }
        let data = json(event)?;
        if let Some(error) = data.get("error").filter(|error| !error.is_null()) {
            return Err(reported(error));
        }
        if !data.is_object() {
            return Err(Problem::Malformed("an event is not an object".to_owned()));
        }
        self.read_usage(&data["usage"]);
        let choice = &data["choices"][0];
        self.read_delta(&choice["delta"], steps)?;
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish_reason = Some(reason.to_owned());
        }
        Ok(())
    }

    fn closed(&mut self) -> Option<Answer> {
        // Some servers leave out the end marker. A reason to finish is as good.
        self.finish_reason.as_ref()?;
        self.finish().ok()
    }

    fn size(&self) -> usize {
        self.parts.size()
    }
}

impl ChatReader {
    fn read_delta(&mut self, delta: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        let reasoning = REASONING_FIELDS.iter().find_map(|field| {
            let text = delta[*field].as_str().filter(|text| !text.is_empty())?;
            Some((*field, text))
        });
        if let Some((field, text)) = reasoning {
            let key = self.thinking(text, steps)?;
            self.parts
                .opaque(key, Opaque { format: FORMAT.to_owned(), provider: None, data: json!(field) })?;
        }
        match &delta["content"] {
            Value::Array(blocks) => {
                for block in blocks {
                    self.read_block(block, steps)?;
                }
            }
            content => self.text(content.as_str().unwrap_or_default(), steps)?,
        }
        if let Some(text) = delta["refusal"].as_str().filter(|text| !text.is_empty()) {
            self.refused = true;
            self.text(text, steps)?;
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.read_call(call)?;
        }
        Ok(())
    }

    /// Content in blocks is Mistral's way, and its only one for reasoning, which it does not want back.
    fn read_block(&mut self, block: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        for inner in block["thinking"].as_array().into_iter().flatten() {
            self.thinking(inner["text"].as_str().unwrap_or_default(), steps)?;
        }
        self.text(block["text"].as_str().unwrap_or_default(), steps)
    }

    fn text(&mut self, piece: &str, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if piece.is_empty() {
            return Ok(());
        }
        let key = self.open(Kind::Text);
        steps.push(Step::Text(piece.to_owned()));
        self.parts.text(key, piece)
    }

    fn thinking(&mut self, piece: &str, steps: &mut Vec<Step>) -> Result<u64, Problem> {
        let key = self.open(Kind::Thinking);
        steps.push(Step::Thinking(piece.to_owned()));
        self.parts.thinking(key, piece)?;
        Ok(key)
    }

    fn read_call(&mut self, piece: &Value) -> Result<(), Problem> {
        let key = self.call_key(piece["index"].as_u64(), piece["id"].as_str().unwrap_or_default());
        let function = &piece["function"];
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            object @ Value::Object(_) => object.to_string(),
            _ => String::new(),
        };
        self.parts.call(key, function["name"].as_str().unwrap_or_default(), &arguments)
    }

    /// Finds the call that a piece belongs to. An id that differs starts a new call even under an old index,
    /// since some servers number every call 0; a piece without an index belongs to its id or to the last call.
    fn call_key(&mut self, index: Option<u64>, id: &str) -> u64 {
        let same = |call: &&Call| match index {
            Some(_) => call.index == index && (id.is_empty() || call.id.is_empty() || call.id == id),
            None => id.is_empty() || call.id == id,
        };
        if let Some(call) = self.calls.iter().rev().find(same) {
            return call.key;
        }
        let key = self.new_key();
        self.open = None;
        self.calls.push(Call { index, id: id.to_owned(), key });
        key
    }

    fn open(&mut self, kind: Kind) -> u64 {
        match self.open {
            Some((open, key)) if open == kind => key,
            _ => {
                let key = self.new_key();
                self.open = Some((kind, key));
                key
            }
        }
    }

    fn new_key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }

    fn read_usage(&mut self, usage: &Value) {
        if let Some(input) = usage["prompt_tokens"].as_u64() {
            self.usage = Usage {
                input_tokens: input,
                output_tokens: usage["completion_tokens"].as_u64().unwrap_or(0),
                cached_input_tokens: usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0),
                ..Usage::default()
            };
        }
    }

    fn finish(&mut self) -> Result<Answer, Problem> {
        let stop = match self.finish_reason.as_deref() {
            None => return Err(Problem::Malformed("the stream ended without a reason".to_owned())),
            Some("content_filter") => Stop::Refusal,
            Some("length") => Stop::MaxTokens,
            Some(_) if self.refused => Stop::Refusal,
            // Some servers say "stop" although they call a tool.
            Some(_) if self.parts.has_calls() => Stop::ToolUse,
            Some(_) => Stop::EndTurn,
        };
        self.parts.finish(self.usage, stop)
    }
}

#[cfg(test)]
mod tests;
