//! Reads Anthropic's answers, streamed or whole.

use std::collections::{BTreeMap, BTreeSet};

use petasos_core::model::{Answer, AnswerPart, Opaque, Stop, Usage};
use petasos_net::sse;
use serde_json::{Value, json};

use super::FORMAT;
use crate::wire::parts::Parts;
use crate::wire::{Problem, Reader, Step, call_ids, json, reported};

/// More than any seal of reasoning has, so that one without end cannot fill the memory.
const MAX_SIGNATURE: usize = 4 * 1024 * 1024;

#[derive(Default)]
pub(super) struct AnthropicReader {
    parts: Parts,
    /// The seals of reasoning so far, by its index.
    signatures: BTreeMap<u64, String>,
    /// Blocks of kinds that mean nothing to us, such as the vendor's own tools.
    passed_over: BTreeSet<u64>,
    /// Blocks of calls that have begun and not ended.
    open_calls: BTreeSet<u64>,
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
        if event.data.trim() == "[DONE]" {
            return self.done(steps);
        }
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
            "content_block_stop" => {
                self.open_calls.remove(&key);
            }
            "message_delta" => {
                self.usage.update(&data["usage"]);
                if let Some(reason) = data["delta"]["stop_reason"].as_str() {
                    self.stop_reason = Some(reason.to_owned());
                }
            }
            "message_stop" => steps.push(Step::Finished(self.finish()?)),
            "error" => return Err(reported(&data["error"])),
            // The protocol asks readers to pass over kinds that they do not know; `ping` is one.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, answer: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            return Err(reported(error));
        }
        let Some(content) = answer["content"].as_array() else {
            return Err(Problem::Malformed("the answer has no content".to_owned()));
        };
        for (key, block) in (0..).zip(content) {
            self.start(key, block, steps)?;
        }
        self.usage.update(&answer["usage"]);
        self.stop_reason = answer["stop_reason"].as_str().map(str::to_owned);
        steps.push(Step::Finished(self.finish()?));
        Ok(())
    }

    fn closed(&mut self) -> Option<Answer> {
        // Some proxies leave out the last event. A reason to stop is as good.
        self.stop_reason.as_ref()?;
        self.finish().ok()
    }

    fn has_stopped(&self) -> bool {
        self.stop_reason.is_some()
    }

    fn size(&self) -> usize {
        self.parts.size()
    }
}

impl AnthropicReader {
    /// The end marker of the other vendors, which some proxies send here too.
    fn done(&mut self, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if self.stop_reason.is_none() && !self.open_calls.is_empty() {
            return Err(Problem::Malformed("the stream ended inside a tool call".to_owned()));
        }
        steps.push(Step::Finished(self.finish()?));
        Ok(())
    }

    fn start(&mut self, key: u64, block: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        let field = |name: &str| block[name].as_str().unwrap_or_default();
        match block["type"].as_str() {
            Some("tool_use") => {
                // The input comes in deltas; some servers send all of it here instead.
                let whole = block["input"].as_object().filter(|input| !input.is_empty());
                let whole = whole.map(|input| Value::Object(input.clone()).to_string()).unwrap_or_default();
                self.parts.call(key, field("name"), &whole)?;
                self.open_calls.insert(key);
                match field("id") {
                    "" => Ok(()),
                    id => self.parts.opaque(key, call_ids::kept(FORMAT, id)),
                }
            }
            Some("redacted_thinking") => {
                let data = json!({ "type": "redacted_thinking", "data": block["data"] });
                self.parts.opaque(key, Opaque { format: FORMAT.to_owned(), provider: None, data })
            }
            Some("text") => self.text(key, field("text"), steps),
            Some("thinking") => {
                self.thinking(key, field("thinking"), steps)?;
                self.signature(key, field("signature"))
            }
            _ => {
                self.passed_over.insert(key);
                Ok(())
            }
        }
    }

    fn delta(&mut self, key: u64, delta: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if self.passed_over.contains(&key) {
            return Ok(());
        }
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

    fn signature(&mut self, key: u64, piece: &str) -> Result<(), Problem> {
        self.parts.thinking(key, "")?;
        if piece.is_empty() {
            return Ok(());
        }
        let signature = self.signatures.entry(key).or_default();
        signature.push_str(piece);
        if signature.len() > MAX_SIGNATURE {
            return Err(Problem::Malformed("a signature does not end".to_owned()));
        }
        Ok(())
    }

    /// Keeps whole blocks of reasoning: a signature is only valid for exactly its text.
    fn seal(&mut self) -> Result<(), Problem> {
        for (key, signature) in std::mem::take(&mut self.signatures) {
            let Some(AnswerPart::Thinking { text, .. }) = self.parts.get(key) else { continue };
            let data = json!({ "type": "thinking", "thinking": text, "signature": signature });
            self.parts.opaque(key, Opaque { format: FORMAT.to_owned(), provider: None, data })?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Answer, Problem> {
        self.seal()?;
        let stop = match self.stop_reason.as_deref() {
            Some("refusal") => Stop::Refusal,
            Some("max_tokens" | "model_context_window_exceeded") => Stop::MaxTokens,
            _ if self.parts.has_calls() => Stop::ToolUse,
            // `pause_turn` as well: only the vendor's own tools pause, and we offer none.
            _ => Stop::EndTurn,
        };
        let answer = self.parts.finish(self.usage.total(), stop)?;
        match (answer.parts.is_empty(), stop) {
            (true, Stop::EndTurn) => Err(Problem::Empty),
            _ => Ok(answer),
        }
    }
}
