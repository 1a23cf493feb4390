//! Reads OpenAI's responses, streamed or whole.
//!
//! Servers that copied the format leave out one half of it or the other: the deltas, the events that repeat them, or
//! the whole at the end. Each text and each call is taken from where it comes first.

use std::collections::BTreeSet;

use petasos_core::model::{Answer, AnswerPart, Opaque, Stop, Usage};
use petasos_net::sse;
use serde_json::{Value, json};

use super::FORMAT;
use crate::wire::parts::Parts;
use crate::wire::{Problem, Reader, Step, call_ids, json, reported};

/// Keys of items that were first heard of at the end, beyond all that a stream gives.
const AT_THE_END: u64 = 1 << 32;

#[derive(Default)]
pub(super) struct ResponsesReader {
    parts: Parts,
    /// The texts that have come, by the index of their item and by their own in it.
    said: BTreeSet<(u64, u64)>,
    /// Items that have begun and not ended.
    open: BTreeSet<u64>,
    /// Whether an item with text or a whole call has ended.
    has_whole_item: bool,
    refused: bool,
}

impl Reader for ResponsesReader {
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
        let key = data["output_index"].as_u64().unwrap_or(0);
        let content = data["content_index"].as_u64().unwrap_or(0);
        let delta = data["delta"].as_str().unwrap_or_default();
        match kind {
            "response.output_text.delta" => self.text((key, content), delta, steps)?,
            "response.output_text.done" => self.whole_text((key, content), &data["text"], steps)?,
            "response.refusal.delta" => {
                self.refused = true;
                self.text((key, content), delta, steps)?;
            }
            "response.refusal.done" => {
                self.refused = true;
                self.whole_text((key, content), &data["refusal"], steps)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.thinking(key, delta, steps)?;
            }
            // A summary has headed sections, which would run into each other.
            "response.reasoning_summary_part.added" if data["summary_index"].as_u64() > Some(0) => {
                self.thinking(key, "\n\n", steps)?;
            }
            "response.output_item.added" => self.item_added(key, &data["item"])?,
            "response.function_call_arguments.delta" => self.parts.call(key, "", delta)?,
            "response.function_call_arguments.done" => {
                if let Some(whole) = data["arguments"].as_str() {
                    self.parts.final_arguments(key, whole)?;
                }
            }
            "response.output_item.done" => self.item_done(key, &data["item"], steps)?,
            "response.completed" | "response.incomplete" | "response.done" => {
                self.unheard(&data["response"], steps)?;
                steps.push(Step::Finished(self.finish(&data["response"])?));
            }
            "response.failed" => return Err(reported(&data["response"]["error"])),
            "error" => return Err(reported(data.get("error").unwrap_or(&data))),
            // Further kinds repeat in full what came in deltas, or are about tools that we do not use.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, answer: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            return Err(reported(error));
        }
        let Some(output) = answer["output"].as_array() else {
            return Err(Problem::Malformed("the answer has no output".to_owned()));
        };
        for (key, item) in (0..).zip(output) {
            self.item_done(key, item, steps)?;
        }
        steps.push(Step::Finished(self.finish(answer)?));
        Ok(())
    }

    fn closed(&mut self) -> Option<Answer> {
        // Without the last event, items that have all ended are as good.
        if !self.has_whole_item || !self.open.is_empty() {
            return None;
        }
        self.finish(&Value::Null).ok()
    }

    fn size(&self) -> usize {
        self.parts.size()
    }
}

impl ResponsesReader {
    /// The end marker of chat completions, which some servers send here too, mostly after the end.
    fn done(&mut self, steps: &mut Vec<Step>) -> Result<(), Problem> {
        let has_open_call = self.open.iter().any(|key| self.is_call(*key));
        if !has_open_call && (self.has_whole_item || !self.said.is_empty()) {
            steps.push(Step::Finished(self.finish(&Value::Null)?));
        }
        Ok(())
    }

    fn text(&mut self, at: (u64, u64), piece: &str, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if !piece.is_empty() {
            self.said.insert(at);
            steps.push(Step::Text(piece.to_owned()));
        }
        self.parts.text(at.0, piece)
    }

    /// A text that is complete, and may have come in pieces before.
    fn whole_text(&mut self, at: (u64, u64), text: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        match text.as_str() {
            Some(text) if !text.is_empty() && !self.said.contains(&at) => self.text(at, text, steps),
            _ => Ok(()),
        }
    }

    fn thinking(&mut self, key: u64, piece: &str, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if !piece.is_empty() {
            steps.push(Step::Thinking(piece.to_owned()));
        }
        self.parts.thinking(key, piece)
    }

    fn item_added(&mut self, key: u64, item: &Value) -> Result<(), Problem> {
        self.open.insert(key);
        match item["type"].as_str() {
            Some("function_call") => self.call(key, item),
            _ => Ok(()),
        }
    }

    /// A call by its name and its vendor's id, which are only told here and when the item ends.
    fn call(&mut self, key: u64, item: &Value) -> Result<(), Problem> {
        let name = item["name"].as_str().unwrap_or_default();
        let name = if self.has_named_call(key) { "" } else { name };
        self.parts.call(key, name, "")?;
        match item["call_id"].as_str() {
            Some(id) if !id.is_empty() => self.parts.opaque(key, call_ids::kept(FORMAT, id)),
            _ => Ok(()),
        }
    }

    fn item_done(&mut self, key: u64, item: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        self.open.remove(&key);
        match item["type"].as_str() {
            Some("function_call") => {
                self.has_whole_item = true;
                self.call(key, item)?;
                if let Some(whole) = item["arguments"].as_str() {
                    self.parts.final_arguments(key, whole)?;
                }
                Ok(())
            }
            Some("message") => self.message(key, item, steps),
            Some("reasoning") => self.reasoning(key, item, steps),
            _ => Ok(()),
        }
    }

    fn message(&mut self, key: u64, item: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        for (content, part) in (0..).zip(item["content"].as_array().into_iter().flatten()) {
            match part["type"].as_str() {
                Some("output_text") => self.whole_text((key, content), &part["text"], steps)?,
                Some("refusal") => {
                    self.refused = true;
                    self.whole_text((key, content), &part["refusal"], steps)?;
                }
                _ => {}
            }
        }
        self.has_whole_item |= self.said.iter().any(|(item, _)| *item == key);
        Ok(())
    }

    fn reasoning(&mut self, key: u64, item: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        if self.parts.get(key).is_none() {
            let sections = item["summary"].as_array().into_iter().flatten();
            let texts: Vec<&str> = sections.filter_map(|section| section["text"].as_str()).collect();
            self.thinking(key, &texts.join("\n\n"), steps)?;
        }
        if !item["encrypted_content"].is_string() {
            return Ok(());
        }
        // Without its id: nothing is stored there, so that an id would be looked up in vain.
        let data = json!({
            "type": "reasoning",
            "summary": item["summary"].as_array().cloned().unwrap_or_default(),
            "encrypted_content": item["encrypted_content"],
        });
        self.parts.opaque(key, Opaque { format: FORMAT.to_owned(), provider: None, data })
    }

    /// Reads from the whole at the end what no event before it has told. Indexes are not compared: they differ where
    /// something was left out.
    fn unheard(&mut self, response: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        let (has_text, has_calls) = (!self.said.is_empty(), self.parts.has_calls());
        let has_any = has_text || has_calls || self.parts.size() > 0;
        let output = response["output"].as_array().into_iter().flatten();
        for (key, item) in (AT_THE_END..).zip(output) {
            let is_new = match item["type"].as_str() {
                Some("message") => !has_text,
                Some("function_call") => !has_calls,
                Some("reasoning") => !has_any,
                _ => false,
            };
            if is_new {
                self.item_done(key, item, steps)?;
            }
        }
        Ok(())
    }

    fn is_call(&self, key: u64) -> bool {
        matches!(self.parts.get(key), Some(AnswerPart::ToolCall { .. }))
    }

    fn has_named_call(&self, key: u64) -> bool {
        matches!(self.parts.get(key), Some(AnswerPart::ToolCall { name, .. }) if !name.is_empty())
    }

    fn finish(&mut self, response: &Value) -> Result<Answer, Problem> {
        let usage = &response["usage"];
        let details = &usage["input_tokens_details"];
        let usage = Usage {
            input_tokens: usage["input_tokens"].as_u64().unwrap_or(0),
            output_tokens: usage["output_tokens"].as_u64().unwrap_or(0),
            cached_input_tokens: details["cached_tokens"].as_u64().unwrap_or(0),
            cache_write_tokens: details["cache_write_tokens"].as_u64().unwrap_or(0),
            cost_nanos: None,
        };
        let stop = match response["incomplete_details"]["reason"].as_str() {
            Some("content_filter") => Stop::Refusal,
            Some(_) => Stop::MaxTokens,
            None if response["status"] == "incomplete" => Stop::MaxTokens,
            None if self.refused => Stop::Refusal,
            None if self.parts.has_calls() => Stop::ToolUse,
            None => Stop::EndTurn,
        };
        let answer = self.parts.finish(usage, stop)?;
        match (answer.parts.is_empty(), stop) {
            (true, Stop::EndTurn) => Err(Problem::Empty),
            _ => Ok(answer),
        }
    }
}
