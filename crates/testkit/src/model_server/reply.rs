//! What the server is told to say.

use bytes::Bytes;
use petasos_core::model::{Stop, Usage};
use serde_json::Value;

use super::Gate;

/// One scripted reply.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) content: Content,
    pub(super) headers: Vec<(String, String)>,
    pub(super) usage: Usage,
    pub(super) stop: Option<Stop>,
    pub(super) ending: Ending,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    /// An answer, put into the wire format of the request.
    Answer(Vec<Item>),
    /// An error, put into the wire format of the request.
    Status { status: u16, message: String },
    /// Bytes as they are.
    Raw { status: u16, chunks: Vec<Bytes>, content_type: String },
}

/// A piece of an answer.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Thinking(String),
    Text(String),
    Calls(Vec<(String, Value)>),
    Gate(Gate),
}

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Complete,
    /// The connection breaks after so many chunks.
    Cut(usize),
    /// The body ends in good order after so many chunks, without the format's terminal event.
    End(usize),
    /// Nothing more comes after so many chunks, and the connection stays.
    Stall(usize),
}

impl Reply {
    fn new(content: Content) -> Self {
        let usage = Usage { input_tokens: 10, output_tokens: 5, cached_input_tokens: 0, ..Usage::default() };
        Reply { content, headers: Vec::new(), usage, stop: None, ending: Ending::Complete }
    }

    fn and(mut self, item: Item) -> Self {
        if let Content::Answer(items) = &mut self.content {
            items.push(item);
        }
        self
    }

    /// An answer with nothing in it yet.
    pub fn empty() -> Self {
        Self::new(Content::Answer(Vec::new()))
    }

    /// An answer of text. It is streamed word by word.
    pub fn text(text: impl Into<String>) -> Self {
        Self::empty().and_text(text)
    }

    /// An answer that starts with reasoning.
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::empty().and_thinking(text)
    }

    /// An answer that calls one tool.
    pub fn tool_call(name: &str, arguments: Value) -> Self {
        Self::tool_calls([(name, arguments)])
    }

    /// An answer that calls several tools at once. Where the format allows it their arguments come interleaved.
    /// Arguments that are a JSON string are sent as that text, JSON or not.
    pub fn tool_calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        Self::empty().and_tool_calls(calls)
    }

    /// An HTTP error with a body in the vendor's shape.
    pub fn status(status: u16) -> Self {
        Self::new(Content::Status { status, message: format!("scripted status {status}") })
    }

    /// Status 200 with these bytes.
    pub fn raw(bytes: impl Into<Bytes>, content_type: &str) -> Self {
        let content_type = content_type.to_owned();
        Self::new(Content::Raw { status: 200, chunks: vec![bytes.into()], content_type })
    }

    /// An error with this JSON text as it is, for vendors whose words matter.
    pub fn refusal(status: u16, json: impl Into<Bytes>) -> Self {
        let content_type = "application/json".to_owned();
        Self::new(Content::Raw { status, chunks: vec![json.into()], content_type })
    }

    /// Adds reasoning.
    #[must_use]
    pub fn and_thinking(self, text: impl Into<String>) -> Self {
        self.and(Item::Thinking(text.into()))
    }

    /// Adds text.
    #[must_use]
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.and(Item::Text(text.into()))
    }

    /// Adds a tool call.
    #[must_use]
    pub fn and_tool_call(self, name: &str, arguments: Value) -> Self {
        self.and_tool_calls([(name, arguments)])
    }

    /// Adds tool calls.
    #[must_use]
    pub fn and_tool_calls<'a>(self, calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let calls = calls.into_iter().map(|(name, arguments)| (name.to_owned(), arguments)).collect();
        self.and(Item::Calls(calls))
    }

    /// Waits here until the gate is open. Only answers can have gates.
    #[must_use]
    pub fn gate(self, gate: &Gate) -> Self {
        self.and(Item::Gate(gate.clone()))
    }

    /// Sends a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces the message of an error.
    #[must_use]
    pub fn message(mut self, text: &str) -> Self {
        if let Content::Status { message, .. } = &mut self.content {
            text.clone_into(message);
        }
        self
    }

    /// Reports these tokens instead of 10 in and 5 out.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Stops for this reason instead of the one that follows from the content.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Cuts raw bytes into chunks of this size.
    #[must_use]
    pub fn in_chunks_of(mut self, size: usize) -> Self {
        if let Content::Raw { chunks, .. } = &mut self.content {
            let whole = chunks.concat();
            *chunks = whole.chunks(size.max(1)).map(Bytes::copy_from_slice).collect();
        }
        self
    }

    /// Breaks the connection after this many chunks.
    #[must_use]
    pub fn cut_after_chunks(mut self, count: usize) -> Self {
        self.ending = Ending::Cut(count);
        self
    }

    /// Ends the body in good order after this many chunks.
    #[must_use]
    pub fn end_after_chunks(mut self, count: usize) -> Self {
        self.ending = Ending::End(count);
        self
    }

    /// Sends nothing more after this many chunks, and keeps the connection.
    #[must_use]
    pub fn stall_after_chunks(mut self, count: usize) -> Self {
        self.ending = Ending::Stall(count);
        self
    }
}
