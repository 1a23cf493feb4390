//! What is given up when a context grows too long: first the output of old tool calls, then what was said.
//!
//! A plan depends on the context alone. Nothing here calls a model, and the log itself is never rewritten.

use crate::both_ends::both_ends;
use crate::context::Context;
use crate::event::{Block, joined_text};
use crate::model::{AssistantPart, Message};
use crate::tokens::{ContextSize, of_message, of_text};

/// Tool output up to this many characters is never shortened.
pub(crate) const SHORT_OUTPUT: usize = 600;
/// What is left of tool output that is shortened, from each of its ends.
const LEFT_OF_OUTPUT: usize = 200;
/// Characters of one message that a summary is made from.
const READ_OF_MESSAGE: usize = 4_000;

/// How much a context may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Tokens at which it is compacted.
    pub compact_at: u64,
    /// Whether a provider refused it already, so that more has to go than our count says.
    pub refused: bool,
}

impl Budget {
    /// Tokens of the newest messages that stay as they are.
    fn kept(&self) -> u64 {
        if self.refused { self.compact_at / 8 } else { self.compact_at / 4 }
    }

    /// Tokens that a compacted context may have.
    fn goal(&self) -> u64 {
        self.compact_at * 6 / 10
    }
}

/// What is given up.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Nothing can be.
    Nothing,
    /// The output of tool calls up to this event is shortened.
    Prune {
        /// The last event whose output is shortened.
        through: u64,
        /// The tokens that are left.
        tokens: u64,
    },
    /// Everything up to this event is read as a summary.
    Summarise {
        /// The last event that the summary stands for.
        through: u64,
        /// The last event whose output is shortened too; 0 if none is.
        pruned: u64,
        /// What the summary is to be made of.
        messages: Vec<Message>,
        /// What stays word for word, to follow the summary.
        kept: String,
        /// The tokens that are left, the summary not included.
        tokens: u64,
    },
}

/// Says what to give up of a context.
pub fn plan(context: &Context, size: &ContextSize, budget: Budget) -> Plan {
    let messages = context.numbered();
    // The system prompt and the tools are in what was counted, and stay.
    let all: u64 = messages.iter().map(|(_, message)| of_message(message)).sum();
    let fixed = size.tokens().saturating_sub(size.scaled(all));
    let first_kept = first_kept(messages, size, budget.kept());
    let prunable = messages[..first_kept].iter().map(|(_, message)| saved_by_pruning(message)).sum::<u64>();
    let pruned = size.tokens().saturating_sub(size.scaled(prunable));
    match messages[..first_kept].last() {
        // Notes about the message that is to be answered would stand beside that message.
        Some(_) if first_kept == 1 && context.turn_message() == Some(0) => Plan::Nothing,
        Some((through, _)) if prunable > 0 && pruned <= budget.goal() && !budget.refused => {
            Plan::Prune { through: *through, tokens: pruned }
        }
        Some((through, _)) => {
            let (old, new) = messages.split_at(first_kept);
            let tokens = new.iter().map(|(_, message)| of_message(message)).sum();
            let messages = old.iter().map(|(_, message)| message.clone()).collect();
            let kept = kept_word_for_word(context, *through);
            // After a refusal the newest tool output cannot stay whole either.
            let newest = new.last().map_or(0, |(sequence, _)| *sequence);
            let pruned = if budget.refused { newest } else { 0 };
            Plan::Summarise { through: *through, pruned, messages, kept, tokens: fixed + size.scaled(tokens) }
        }
        None => Plan::Nothing,
    }
}

/// The first of the newest messages that fit into a budget. Results never stay without their calls.
fn first_kept(messages: &[(u64, Message)], size: &ContextSize, budget: u64) -> usize {
    let mut left = budget;
    let mut first = messages.len();
    while let Some((_, message)) = first.checked_sub(1).and_then(|index| messages.get(index)) {
        let Some(rest) = left.checked_sub(size.scaled(of_message(message))) else { break };
        left = rest;
        first -= 1;
    }
    // What one event completed goes together, because a summary stands for whole events.
    let belongs_to_last = |first: usize, at: u64| {
        first.checked_sub(1).and_then(|last| messages.get(last)).is_some_and(|(last, _)| *last == at)
    };
    while let Some((at, message)) = messages.get(first)
        && (matches!(message, Message::ToolResults(_)) || belongs_to_last(first, *at))
    {
        first += 1;
    }
    first
}

fn saved_by_pruning(message: &Message) -> u64 {
    let Message::ToolResults(outcomes) = message else { return 0 };
    let saved = |text: &String| of_text(text).saturating_sub(of_text(&shortened(text)));
    outcomes.iter().map(|outcome| saved(&outcome.text)).sum()
}

/// Tool output that is no longer needed whole.
pub(crate) fn shortened(text: &str) -> String {
    if text.chars().count() <= SHORT_OUTPUT {
        return text.to_owned();
    }
    let note = |gone| {
        format!("[{gone} characters of this older output were removed; run the tool again to see them]")
    };
    both_ends(text, LEFT_OF_OUTPUT, LEFT_OF_OUTPUT, note).unwrap_or_else(|| text.to_owned())
}

/// The task and the list of what is to be done, if they are among what goes.
fn kept_word_for_word(context: &Context, through: u64) -> String {
    let mut kept = String::new();
    if let Some(task) = context.task_through(through) {
        kept.push_str("\n\n[What the user asked for, word for word]\n");
        kept.push_str(task);
    }
    if let Some(todo) = context.todo_through(through) {
        kept.push_str("\n\n[The list of what is to be done]\n");
        kept.push_str(todo);
    }
    kept
}

/// A conversation as one text, for a model that is to summarise it. If it is longer than `most` characters, what is
/// in the middle is left out: the beginning says what it is about, and the end where it stands.
pub fn transcript(messages: &[Message], most: usize) -> String {
    let entries: Vec<String> = messages.iter().map(entry).collect();
    let text = entries.join("\n\n");
    let note = |_| "\n[The middle of the conversation is left out here.]\n".to_owned();
    both_ends(&text, most / 4, most * 3 / 4, note).unwrap_or(text)
}

fn entry(message: &Message) -> String {
    let bounded = |text: &str| -> String {
        let mut start: String = text.chars().take(READ_OF_MESSAGE).collect();
        if start.len() < text.len() {
            start.push_str(" […]");
        }
        start
    };
    match message {
        Message::User(content) => format!("USER: {}", bounded(&joined_text(content))),
        Message::Assistant(parts) => {
            let parts = parts.iter().filter_map(|part| match part {
                AssistantPart::Thinking { .. } => None,
                AssistantPart::Text(text) => Some(format!("AGENT: {}", bounded(text))),
                AssistantPart::ToolCall { name, input, .. } => {
                    let input = serde_json::to_string(input).unwrap_or_default();
                    Some(format!("AGENT calls {name}: {}", bounded(&input)))
                }
            });
            parts.collect::<Vec<_>>().join("\n")
        }
        Message::ToolResults(outcomes) => {
            let results = outcomes.iter().map(|outcome| {
                let failed = if outcome.is_error { " (failed)" } else { "" };
                format!("RESULT of {}{failed}: {}", outcome.name, bounded(&outcome.text))
            });
            results.collect::<Vec<_>>().join("\n")
        }
    }
}

/// A summary that needs no model: what was asked, and what was said last.
pub fn plain_summary(messages: &[Message]) -> String {
    let asked = messages.iter().filter_map(|message| match message {
        Message::User(content) => Some(joined_text(content)),
        _ => None,
    });
    let asked: Vec<String> = asked.map(|text| text.chars().take(2_000).collect()).collect();
    let said = messages.iter().rev().find_map(|message| match message {
        Message::Assistant(parts) => parts.iter().rev().find_map(|part| match part {
            AssistantPart::Text(text) => Some(text.chars().take(2_000).collect::<String>()),
            _ => None,
        }),
        _ => None,
    });
    // The first message says what it is all about, and may be an earlier summary.
    let newest = asked.len().saturating_sub(8).max(1).min(asked.len());
    let asked = asked.iter().take(1).chain(&asked[newest..]);
    let mut summary =
        "(No summary could be made; this is what was asked, and what was said last.)".to_owned();
    for text in asked {
        summary.push_str("\nThe user: ");
        summary.push_str(text);
    }
    if let Some(said) = said {
        summary.push_str("\nYou: ");
        summary.push_str(&said);
    }
    summary
}

/// A message that stands for what was summarised.
pub(crate) fn summary_message(summary: &str) -> Message {
    Message::User(vec![Block::text(format!("[Summary of the conversation so far]\n{summary}"))])
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::event::{
        Compacted, CustomToolResult, CustomToolUse, Event, ModelStarted, Payload, UserMessage, UserSteer,
    };
    use crate::ids::ToolUseId;

    /// A turn in which the user guides the agent while a tool runs.
    fn guided() -> (Context, ContextSize) {
        let id = ToolUseId::for_custom(uuid::Uuid::nil());
        let said = |text: &str| UserMessage::new(vec![Block::text(text.repeat(50))]);
        let payloads = [
            Payload::UserMessage(said("first ")),
            Payload::CustomToolUse(CustomToolUse {
                id: id.clone(),
                tool: "look".into(),
                input: Default::default(),
            }),
            Payload::UserSteer(UserSteer { message: "guidance".into() }),
            Payload::UserCustomToolResult(CustomToolResult {
                tool_use_id: id,
                content: vec![Block::text("result ".repeat(50))],
                is_error: false,
            }),
            Payload::ModelStarted(ModelStarted { call: 2, takes_up: vec![3] }),
            Payload::UserMessage(said("last ")),
        ];
        let (mut context, mut size) = (Context::default(), ContextSize::default());
        for (sequence, payload) in (1..).zip(payloads) {
            size.apply(&payload);
            context.apply(&Event {
                session_id: "session_1".parse().unwrap(),
                sequence,
                created_at: Timestamp::UNIX_EPOCH,
                processed_at: None,
                payload,
            });
        }
        (context, size)
    }

    #[test]
    fn whatever_is_given_up_is_in_what_the_summary_is_made_of() {
        let (context, size) = guided();
        let mut cuts = std::collections::BTreeSet::new();
        for compact_at in 0..2_000 {
            let Plan::Summarise { through, messages, .. } =
                plan(&context, &size, Budget { compact_at, refused: true })
            else {
                continue;
            };
            cuts.insert(through);
            let mut left = context.clone();
            let (summary, pruned, tokens) = (String::new(), 0, 0);
            left.compact(&Compacted { through, pruned, summary, tokens });
            let all: Vec<Message> = messages.into_iter().chain(left.messages().into_iter().skip(1)).collect();
            assert_eq!(all, context.messages(), "cut after {through}");
        }
        assert!(cuts.len() > 2, "{cuts:?}");
    }
}
