//! What is said to a model and what it answers, without any vendor's words.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::argument_schema::ArgumentSchema;
use crate::event::{Block, CutShort};
use crate::model_settings::ModelSettings;

/// Tokens of one or many model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// The part of `input_tokens` that came from the provider's cache.
    pub cached_input_tokens: u64,
    /// The part of `input_tokens` that was written to the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// What they cost, in billionths of the currency of the prices; none if no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nanos: Option<u64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Tokens read and written.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_input_tokens = self.cached_input_tokens.saturating_add(other.cached_input_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.cost_nanos = match (self.cost_nanos, other.cost_nanos) {
            (Some(cost), Some(more)) => Some(cost.saturating_add(more)),
            (cost, more) => cost.or(more),
        };
    }
}

/// What a provider wants back, unread, to continue its own reasoning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque {
    /// The wire format that it belongs to; others must leave it out.
    pub format: String,
    /// The provider that it came from, which alone gets it back; any that speaks the format if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The data itself.
    pub data: Value,
}

/// A tool as the model is told about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Unique in one request.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments, an object.
    pub input_schema: ArgumentSchema,
}

/// One entry of the conversation that a model reads.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// From the user.
    User(Vec<Block>),
    /// From the model itself, earlier.
    Assistant(Vec<AssistantPart>),
    /// One result for each tool call of the assistant message before it, in the order of the calls.
    ToolResults(Vec<ToolOutcome>),
}

/// A part of what the model said earlier.
#[derive(Debug, Clone, PartialEq)]
pub enum AssistantPart {
    /// Reasoning.
    Thinking {
        /// The readable part.
        text: String,
        /// What the provider wants back.
        opaque: Option<Opaque>,
    },
    /// Text.
    Text(String),
    /// A tool call.
    ToolCall {
        /// Our id of the call.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments.
        input: Map<String, Value>,
        /// What the provider wants back with the call, its own id of it among that.
        opaque: Option<Opaque>,
    },
}

/// What the model is told about one of its calls.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// Our id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The result's text.
    pub text: String,
    /// Pictures that belong to it: `https://` links and `data:` URIs.
    pub images: Vec<String>,
    /// Whether it failed.
    pub is_error: bool,
}

/// One request to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The model's name at its provider, without the provider.
    pub model: String,
    /// The system prompt; empty for none.
    pub system: String,
    /// The conversation so far, oldest first.
    pub messages: Vec<Message>,
    /// The tools on offer.
    pub tools: Vec<Arc<ToolSpec>>,
    /// How the model is asked.
    pub settings: ModelSettings,
}

/// A model's finished answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What it said, in order. Neighbouring parts of one kind are already joined.
    pub parts: Vec<AnswerPart>,
    /// What it cost.
    pub usage: Usage,
    /// Why it stopped.
    pub stop: Stop,
    /// Settings that the request had no field for.
    pub left_out: Vec<&'static str>,
}

/// A part of a model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerPart {
    /// Reasoning.
    Thinking {
        /// The readable part.
        text: String,
        /// What the provider wants back.
        opaque: Option<Opaque>,
    },
    /// Text.
    Text(String),
    /// A tool call. The arguments are as the model wrote them and may not be JSON at all.
    ToolCall {
        /// The tool.
        name: String,
        /// The arguments as text; empty means none.
        arguments: String,
        /// What the provider wants back with the call, its own id of it among that.
        opaque: Option<Opaque>,
    },
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It said what it wanted.
    EndTurn,
    /// It waits for tools.
    ToolUse,
    /// It reached its output limit.
    MaxTokens,
    /// It declined.
    Refusal,
}

impl Stop {
    /// Why the answer is not all that the model wanted to say, if it is not.
    pub fn cut_short(self) -> Option<CutShort> {
        match self {
            Stop::EndTurn | Stop::ToolUse => None,
            Stop::MaxTokens => Some(CutShort::MaxTokens),
            Stop::Refusal => Some(CutShort::Refusal),
        }
    }
}
