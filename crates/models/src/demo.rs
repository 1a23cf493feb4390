//! The demo model: scripted, offline, and open about it.
//!
//! It answers by simple rules from the last message, so that every feature of Petasos can be tried and tested
//! without a key or a network. What it says is decided in [`script`]; this file only plays it.

mod sample;
mod script;

use std::time::Duration;

use futures_util::stream::BoxStream;
use petasos_core::model::{Answer, AnswerPart, AssistantPart, Message, Request, Usage};
use tokio::time::sleep;

use self::script::{Beat, Script};
use crate::generate::{Emitter, generate};
use crate::{Delta, Error, Model};

/// The model name that streams without pauses.
const FAST: &str = "fast";
const BETWEEN_WORDS: Duration = Duration::from_millis(15);

/// The provider `demo`.
pub(crate) struct Demo;

impl Model for Demo {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Delta, Error>> {
        generate(|emitter| async move {
            let script = script::script(&request);
            play(&script, request.model != FAST, &emitter).await;
            emitter.emit(Ok(Delta::Finished(answer(&request, script)))).await;
        })
    }
}

async fn play(script: &Script, with_pauses: bool, emitter: &Emitter<Result<Delta, Error>>) {
    for beat in &script.beats {
        let (text, delta): (&str, fn(String) -> Delta) = match beat {
            Beat::Thinking(text) => (text, Delta::Thinking),
            Beat::Text(text) => (text, Delta::Text),
            Beat::Pause(pause) => {
                if with_pauses {
                    sleep(*pause).await;
                }
                continue;
            }
            Beat::Call { .. } => continue,
        };
        for word in text.split_inclusive(' ') {
            if with_pauses {
                sleep(BETWEEN_WORDS).await;
            }
            emitter.emit(Ok(delta(word.to_owned()))).await;
        }
    }
}

fn answer(request: &Request, script: Script) -> Answer {
    let mut parts: Vec<AnswerPart> = Vec::new();
    for beat in script.beats {
        match (beat, parts.last_mut()) {
            (Beat::Text(more), Some(AnswerPart::Text(text))) => text.push_str(&more),
            (Beat::Text(text), _) => parts.push(AnswerPart::Text(text)),
            (Beat::Thinking(more), Some(AnswerPart::Thinking { text, .. })) => text.push_str(&more),
            (Beat::Thinking(text), _) => parts.push(AnswerPart::Thinking { text, opaque: None }),
            (Beat::Call { name, arguments }, _) => {
                parts.push(AnswerPart::ToolCall { name, arguments, opaque: None });
            }
            (Beat::Pause(_), _) => {}
        }
    }
    let written: usize = parts
        .iter()
        .map(|part| match part {
            AnswerPart::Thinking { text, .. } | AnswerPart::Text(text) => text.len(),
            AnswerPart::ToolCall { name, arguments, .. } => name.len() + arguments.len(),
        })
        .sum();
    let usage = Usage {
        input_tokens: tokens(characters_of(request)),
        output_tokens: tokens(written),
        ..Usage::default()
    };
    Answer { parts, usage, stop: script.stop, left_out: Vec::new() }
}

/// The usual estimate of four characters for a token.
fn tokens(characters: usize) -> u64 {
    characters.div_ceil(4) as u64
}

fn characters_of(request: &Request) -> usize {
    let of_message = |message: &Message| match message {
        Message::User(content) => content.iter().map(|block| block.as_text().len()).sum::<usize>(),
        Message::Assistant(parts) => parts
            .iter()
            .map(|part| match part {
                AssistantPart::Thinking { text, .. } | AssistantPart::Text(text) => text.len(),
                AssistantPart::ToolCall { name, .. } => name.len(),
            })
            .sum(),
        Message::ToolResults(outcomes) => outcomes.iter().map(|outcome| outcome.text.len()).sum(),
    };
    request.system.len() + request.messages.iter().map(of_message).sum::<usize>()
}
