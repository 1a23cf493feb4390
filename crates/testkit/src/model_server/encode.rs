//! Puts replies into the three wire formats.

mod anthropic;
mod chat;
mod responses;

use std::collections::VecDeque;

use bytes::Bytes;
use petasos_core::model::Stop;
use serde_json::{Value, json};

use super::Gate;
use super::reply::{Item, Reply};

/// The wire formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Chat,
    Responses,
    Anthropic,
}

/// What is sent, or waited for.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Bytes(Bytes),
    Gate(Gate),
}

impl Format {
    pub(super) fn of_path(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Format::Chat),
            "/v1/responses" => Some(Format::Responses),
            "/v1/messages" => Some(Format::Anthropic),
            _ => None,
        }
    }

    /// The stream of an answer.
    pub(super) fn answer(self, reply: &Reply, items: &[Item]) -> VecDeque<Piece> {
        let calls = items.iter().any(|item| matches!(item, Item::Calls(_)));
        let stop = reply.stop.unwrap_or(if calls { Stop::ToolUse } else { Stop::EndTurn });
        let mut frames = Frames::default();
        match self {
            Format::Chat => chat::answer(&mut frames, items, reply.usage, stop),
            Format::Responses => responses::answer(&mut frames, items, reply.usage, stop),
            Format::Anthropic => anthropic::answer(&mut frames, items, reply.usage, stop),
        }
        frames.pieces
    }

    /// The body of an error.
    pub(super) fn error(self, status: u16, message: &str) -> Value {
        match self {
            Format::Chat | Format::Responses => {
                json!({ "error": { "message": message, "type": "scripted", "param": null, "code": null } })
            }
            Format::Anthropic => {
                let kind = match status {
                    401 => "authentication_error",
                    429 => "rate_limit_error",
                    529 => "overloaded_error",
                    400..500 => "invalid_request_error",
                    _ => "api_error",
                };
                json!({ "type": "error", "error": { "type": kind, "message": message } })
            }
        }
    }
}

/// The frames so far.
#[derive(Default)]
pub(super) struct Frames {
    pieces: VecDeque<Piece>,
}

impl Frames {
    /// A frame without a name.
    fn data(&mut self, data: &str) {
        self.pieces.push_back(Piece::Bytes(format!("data: {data}\n\n").into()));
    }

    /// A frame that is named after its `type`.
    fn typed(&mut self, data: &Value) {
        let name = data["type"].as_str().unwrap_or_default();
        self.pieces.push_back(Piece::Bytes(format!("event: {name}\ndata: {data}\n\n").into()));
    }

    fn gate(&mut self, gate: &Gate) {
        self.pieces.push_back(Piece::Gate(gate.clone()));
    }
}

/// A text in pieces that end after a space.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// The arguments as text, in two halves.
fn halves(arguments: &Value) -> [String; 2] {
    let text = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    let middle = text.chars().count() / 2;
    [text.chars().take(middle).collect(), text.chars().skip(middle).collect()]
}
