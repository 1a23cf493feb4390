//! How many tokens a model will count, as far as can be known without its tokenizer.
//!
//! What a provider counted is the truth. What came since is estimated from its characters, by a rate that is
//! corrected with every count, so that it fits the model and the language of the session.

use serde::{Deserialize, Serialize};

use crate::event::{Block, Payload, Purpose, joined_text};
use crate::model::{AssistantPart, Message, ToolOutcome, Usage};

/// How far a rate may be from the usual one, in thousandths.
const RATES: std::ops::RangeInclusive<u64> = 500..=2500;
/// Fewer tokens than this say nothing about the rate.
const ENOUGH_TO_LEARN: u64 = 200;
/// What a picture of the usual size is counted as.
const PICTURE: u64 = 1_500;

/// Tokens of a text at the usual rate: four characters of ASCII, or one of anything else.
pub fn of_text(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let others = text.chars().count() as u64 - ascii;
    ascii.div_ceil(4) + others
}

/// Tokens of text and pictures at the usual rate.
fn of_blocks(content: &[Block]) -> u64 {
    let pictures = content.iter().filter(|block| matches!(block, Block::Image { .. })).count() as u64;
    of_text(&joined_text(content)) + pictures * PICTURE
}

/// Tokens of one message at the usual rate.
pub fn of_message(message: &Message) -> u64 {
    let part = |part: &AssistantPart| match part {
        AssistantPart::Thinking { text, .. } | AssistantPart::Text(text) => of_text(text),
        AssistantPart::ToolCall { name, input, .. } => of_call(name, input),
    };
    match message {
        Message::User(content) => of_blocks(content),
        Message::Assistant(parts) => parts.iter().map(part).sum(),
        Message::ToolResults(outcomes) => {
            let of_outcome =
                |outcome: &ToolOutcome| of_text(&outcome.text) + outcome.images.len() as u64 * PICTURE;
            outcomes.iter().map(of_outcome).sum()
        }
    }
}

fn of_call(name: &str, input: &serde_json::Map<String, serde_json::Value>) -> u64 {
    of_text(name) + serde_json::to_string(input).map_or(0, |text| of_text(&text))
}

/// The size of a session's context: a fold of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextSize {
    /// What the provider counted last, with what the model answered.
    counted: u64,
    /// What came since, at the usual rate.
    since: u64,
    /// How many tokens really are where the usual rate says a thousand.
    rate: u64,
    /// Whether what the model says is part of what was counted.
    answer_counted: bool,
    /// What was left when it was last compacted.
    compacted_to: u64,
}

impl Default for ContextSize {
    fn default() -> Self {
        ContextSize { counted: 0, since: 0, rate: 1000, answer_counted: false, compacted_to: 0 }
    }
}

impl ContextSize {
    /// The tokens that the next model call will read, as far as is known.
    pub fn tokens(&self) -> u64 {
        self.counted.saturating_add(self.scaled(self.since))
    }

    /// Whether it should be compacted at so many tokens. What could not be made shorter is not tried again before it
    /// has grown.
    pub(crate) fn is_over(&self, most: u64) -> bool {
        self.tokens() >= most.max(self.compacted_to.saturating_add(most / 10))
    }

    /// What a number of tokens at the usual rate is in this session.
    pub fn scaled(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.rate) / 1000
    }

    /// Takes the next event of the log into account.
    pub(crate) fn apply(&mut self, payload: &Payload) {
        match payload {
            // It read something else.
            Payload::ModelFinished(finished) if finished.purpose == Purpose::Summary => {}
            Payload::ModelFinished(finished) if finished.usage.input_tokens > 0 => self.count(finished.usage),
            Payload::ModelFinished(_) => self.answer_counted = false,
            Payload::Compacted(compacted) => {
                self.counted = compacted.tokens;
                self.compacted_to = compacted.tokens;
                self.since = 0;
            }
            _ => self.since = self.since.saturating_add(self.of_payload(payload)),
        }
    }

    fn count(&mut self, usage: Usage) {
        let new = usage.input_tokens.saturating_sub(self.counted);
        // The first call also reads the system prompt and the tools, which are not in the log.
        if self.counted > 0 && self.since >= ENOUGH_TO_LEARN {
            let seen = new.saturating_mul(1000) / self.since;
            self.rate = ((self.rate + seen) / 2).clamp(*RATES.start(), *RATES.end());
        }
        self.counted = usage.total();
        self.since = 0;
        self.answer_counted = true;
    }

    fn of_payload(&self, payload: &Payload) -> u64 {
        match payload {
            Payload::UserMessage(message) => of_blocks(&message.content),
            Payload::UserSteer(steer) => of_text(&steer.message),
            Payload::PersonMessage(message) => of_text(&message.told()),
            Payload::PersonNote(note) => of_text(&note.told()),
            Payload::CustomerVariables(known) => of_text(&known.told()),
            Payload::RunReminded(reminded) => of_text(&reminded.text),
            Payload::UserCustomToolResult(result) => of_blocks(&result.content),
            Payload::UserClarifyResult(result) => of_text(&result.answer),
            Payload::ToolResultTransformed(transformed) => of_text(&transformed.text),
            Payload::ToolResult(result) | Payload::McpToolResult(result) => of_blocks(&result.content),
            _ if self.answer_counted => 0,
            Payload::AgentMessage(message) => of_text(&message.text),
            Payload::ToolUse(call) if call.budget.is_some() => 0,
            Payload::ToolUse(call) | Payload::McpToolUse(call) => of_call(&call.tool, &call.input),
            Payload::CustomToolUse(call) => of_call(&call.tool, &call.input),
            Payload::ClarifyRequest(request) => of_text(&request.question),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ModelFinished, UserMessage};

    fn say(size: &mut ContextSize, text: &str) {
        size.apply(&Payload::UserMessage(UserMessage::new(vec![Block::text(text)])));
    }

    fn finish(size: &mut ContextSize, input_tokens: u64, output_tokens: u64) {
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        size.apply(&Payload::ModelFinished(ModelFinished { usage, ..ModelFinished::default() }));
    }

    #[test]
    fn what_the_provider_counted_is_the_truth() {
        let mut size = ContextSize::default();
        say(&mut size, &"word ".repeat(100));
        finish(&mut size, 5_000, 300);
        assert_eq!(size.tokens(), 5_300);
        say(&mut size, &"word ".repeat(80));
        assert_eq!(size.tokens(), 5_400);
    }

    #[test]
    fn the_estimate_stays_within_a_tenth_of_the_count_in_any_language() {
        // Characters for a token, in thousandths, of a terse and of a wordy tokenizer; and text of two scripts.
        for (text, thousandths) in
            [("abcd efgh ", 2_700), ("abcd efgh ", 5_500), ("言葉", 700), ("言葉", 1_900)]
        {
            let mut size = ContextSize::default();
            let mut truth = 3_000;
            for turn in 1..40_u64 {
                let text = text.repeat(usize::try_from(turn * 37 % 200 + 5).unwrap());
                say(&mut size, &text);
                truth += text.chars().count() as u64 * 1000 / thousandths;
                if turn > 4 {
                    let off = size.tokens().abs_diff(truth);
                    assert!(off * 10 <= truth, "turn {turn}: {} instead of {truth}", size.tokens());
                }
                finish(&mut size, truth, 150);
                truth += 150;
            }
        }
    }
}
