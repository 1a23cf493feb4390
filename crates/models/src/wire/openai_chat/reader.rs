//! Reads an answer, streamed or whole.

use petasos_core::model::{Answer, Opaque, Stop, Usage};
use petasos_net::sse;
use serde_json::{Value, json};

use super::attached::Attached;
use super::calls::{Calls, Piece, is_whole};
use super::text_event::plain_text;
use super::usage::usage;
use super::{FORMAT, REASONING_FIELDS};
use crate::wire::parts::Parts;
use crate::wire::{self, Problem, Reader, Step, reported, with_words};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Thinking,
}

#[derive(Default)]
pub(super) struct ChatReader {
    parts: Parts,
    /// What is being written, and its key. Text after reasoning is a new part.
    open: Option<(Kind, u64)>,
    calls: Calls,
    /// The first reasoning and the name under which it came; what is attached to the answer is kept with it.
    reasoning: Option<(u64, &'static str)>,
    attached: Attached,
    next_key: u64,
    usage: Usage,
    finish_reason: Option<String>,
    refused: bool,
    /// Whether text came as deltas, so that a message repeats it.
    has_text_deltas: bool,
}

impl Reader for ChatReader {
    fn read(&mut self, event: &sse::Event, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if event.data.trim() == "[DONE]" {
            steps.push(Step::Finished(self.finish()?));
            return Ok(());
        }
        if let Some(piece) = plain_text(&event.data) {
            self.has_text_deltas |= !piece.is_empty();
            return self.text(&piece, steps);
        }
        let data = wire::json(event)?;
        if event.event == "error" {
            return Err(reported(data.get("error").unwrap_or(&data)));
        }
        self.read_object(&data, steps)
    }

    fn whole(&mut self, answer: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        self.read_object(answer, steps)?;
        steps.push(Step::Finished(self.finish()?));
        Ok(())
    }

    fn closed(&mut self) -> Option<Answer> {
        // Some servers leave out the end marker. A reason to finish is as good.
        self.finish_reason.as_ref()?;
        self.finish().ok()
    }

    fn unfinished(&mut self) -> Option<Answer> {
        self.finish().ok()
    }

    fn size(&self) -> usize {
        self.parts.size()
    }
}

impl ChatReader {
    fn read_object(&mut self, data: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        let choice = &data["choices"][0];
        // OpenRouter reports what its upstream did inside the choice.
        for error in [&data["error"], &choice["error"]] {
            if !error.is_null() {
                return Err(reported(error));
            }
        }
        if data["object"] == "error" {
            return Err(reported(data));
        }
        if !data.is_object() {
            return Err(Problem::Malformed("an event is not an object".to_owned()));
        }
        if let Some(usage) = usage(data) {
            self.usage = usage;
        }
        self.has_text_deltas |= choice["delta"]["content"].as_str().is_some_and(|text| !text.is_empty());
        self.read_delta(&choice["delta"], steps)?;
        if choice["message"].is_object() {
            self.read_message(&choice["message"], steps)?;
        }
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.finish_reason = Some(reason.to_lowercase());
        }
        Ok(())
    }

    fn read_delta(&mut self, delta: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        let reasoning = REASONING_FIELDS.iter().find_map(|field| {
            let text = delta[*field].as_str().filter(|text| !text.is_empty())?;
            Some((*field, text))
        });
        if let Some((field, text)) = reasoning {
            let key = self.thinking(text, steps)?;
            self.reasoning.get_or_insert((key, field));
            self.parts.opaque_if_none(key, || opaque(json!(field)))?;
        }
        let attached = self.attached.read(delta);
        self.parts.grow(attached);
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
        match delta["tool_calls"].as_array().filter(|calls| !calls.is_empty()) {
            Some(calls) => calls.iter().try_for_each(|call| self.read_call(call)),
            // The name of calls before there could be several.
            None if delta["function_call"].is_object() => {
                self.read_call(&json!({ "function": delta["function_call"] }))
            }
            None => Ok(()),
        }
    }

    /// A message repeats what came as deltas, or is the only place where it is said.
    fn read_message(&mut self, message: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        let mut news = message.clone();
        let Some(fields) = news.as_object_mut() else { return Ok(()) };
        if self.reasoning.is_some() {
            REASONING_FIELDS.iter().for_each(|name| drop(fields.remove(*name)));
        }
        if !self.attached.is_empty() {
            Attached::remove(fields);
        }
        if self.parts.has_calls() {
            fields.remove("tool_calls");
            fields.remove("function_call");
        }
        let said = self.parts.said();
        if !said.is_empty() {
            let text = fields.get("content").and_then(Value::as_str).unwrap_or_default();
            let rest = text.strip_prefix(said.as_str());
            let rest = rest.or((!self.has_text_deltas).then_some(text)).unwrap_or_default().to_owned();
            fields.insert("content".to_owned(), rest.into());
            fields.remove("refusal");
        }
        self.read_delta(&news, steps)
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

    fn read_call(&mut self, call: &Value) -> Result<(), Problem> {
        let piece = Piece::of(call);
        let key = match self.calls.key_of(&piece, &self.parts) {
            Some(key) => key,
            None => {
                let key = self.new_key();
                self.open = None;
                self.calls.begin(&piece, key);
                key
            }
        };
        self.parts.call(key, piece.name, &piece.arguments)?;
        let kept = self.calls.keep(key, call);
        self.parts.grow(kept);
        Ok(())
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

    fn finish(&mut self) -> Result<Answer, Problem> {
        let stop = self.stop()?;
        for (key, data) in self.calls.take().filter(|(_, data)| !data.is_empty()).collect::<Vec<_>>() {
            self.parts.call_opaque(key, opaque(Value::Object(data)));
        }
        if let Some(mut fields) = self.attached.take() {
            match self.reasoning {
                Some((key, field)) => {
                    fields.insert("field".to_owned(), json!(field));
                    self.parts.opaque(key, opaque(Value::Object(fields)))?;
                }
                None => self.parts.lead_with(opaque(Value::Object(fields))),
            }
        }
        with_words(self.parts.finish(self.usage, stop)?)
    }

    fn stop(&self) -> Result<Stop, Problem> {
        let complete = || if self.parts.has_calls() { Stop::ToolUse } else { Stop::EndTurn };
        match self.finish_reason.as_deref() {
            None if self.is_whole() => Ok(complete()),
            None => Err(Problem::Malformed("the stream ended without a reason".to_owned())),
            Some("length" | "max_tokens" | "max_output_tokens" | "model_length") => Ok(Stop::MaxTokens),
            Some(
                "content_filter" | "content-filter" | "safety" | "refusal" | "recitation" | "sensitive"
                | "prohibited_content" | "blocklist" | "spii" | "image_safety",
            ) => Ok(Stop::Refusal),
            Some(
                reason @ ("error"
                | "network_error"
                | "abort"
                | "insufficient_system_resource"
                | "malformed_function_call"),
            ) => {
                let message = format!("the model stopped with the reason {reason:?}");
                Err(Problem::Reported { kind: reason.to_owned(), message })
            }
            Some(_) if self.refused => Ok(Stop::Refusal),
            // Some servers say "stop" although they call a tool.
            Some(_) => Ok(complete()),
        }
    }

    /// Whether what came can be an answer, although nothing says that it is the end: text, or calls that are whole.
    fn is_whole(&self) -> bool {
        let mut calls = self.parts.calls().peekable();
        if calls.peek().is_none() {
            return !self.parts.said().is_empty();
        }
        calls.all(|arguments| arguments.is_empty() || is_whole(arguments))
    }
}

fn opaque(data: Value) -> Opaque {
    Opaque { format: FORMAT.to_owned(), provider: None, data }
}
