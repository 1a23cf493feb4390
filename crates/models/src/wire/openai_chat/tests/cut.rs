//! Streams that are cut anywhere, and arrive in pieces of any size.

use petasos_core::model::{Answer, AnswerPart, Stop};
use petasos_net::sse;

use super::calls;
use crate::ProviderKind;
use crate::wire::{self, Problem, Step, Target};

/// All recorded streams of this format.
fn recorded() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/openai");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| (file.display().to_string(), std::fs::read(file).unwrap())).collect()
}

/// Reads a stream as a call does. The text and the reasoning of its steps are those of the answer.
fn play<'a>(pieces: impl Iterator<Item = &'a [u8]>, thinks_in_text: bool) -> Result<Option<Answer>, Problem> {
    let target = Target { thinks_in_text, ..Target::default() };
    let mut reader = wire::reader(ProviderKind::Openai, &target);
    let mut decoder = sse::Decoder::default();
    let (mut steps, mut said) = (Vec::new(), (String::new(), String::new()));
    for piece in pieces {
        for event in decoder.feed(piece) {
            let event = event.map_err(|error| Problem::Malformed(error.to_string()))?;
            reader.read(&event, &mut steps)?;
            for step in steps.drain(..) {
                match step {
                    Step::Text(text) => said.0.push_str(&text),
                    Step::Thinking(text) => said.1.push_str(&text),
                    Step::Finished(answer) => {
                        assert_eq!(said, texts(&answer));
                        return Ok(Some(answer));
                    }
                }
            }
        }
    }
    Ok(reader.closed())
}

fn texts(answer: &Answer) -> (String, String) {
    let (mut said, mut thought) = (String::new(), String::new());
    for part in &answer.parts {
        match part {
            AnswerPart::Text(text) => said.push_str(text),
            AnswerPart::Thinking { text, .. } => thought.push_str(text),
            AnswerPart::ToolCall { .. } => {}
        }
    }
    (said, thought)
}

#[test]
fn a_stream_closed_at_any_byte_is_its_answer_or_none() {
    for (file, bytes) in recorded() {
        for thinks_in_text in [false, true] {
            let whole = play(std::iter::once(bytes.as_slice()), thinks_in_text);
            for end in 0..bytes.len() {
                // The whole prefix at once: cutting it further is what the next test does.
                if let Ok(Some(answer)) = play(std::iter::once(&bytes[..end]), thinks_in_text) {
                    let complete = whole.as_ref().unwrap().as_ref().unwrap();
                    assert_eq!(texts(&answer), texts(complete), "{file} cut at {end}");
                }
            }
        }
    }
}

#[test]
fn pieces_of_any_size_make_the_same_answer() {
    let mut random: u64 = 20_26;
    let mut next = |most: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1 + usize::try_from(random >> 33).unwrap() % most
    };
    for (file, bytes) in recorded() {
        let whole = play(std::iter::once(bytes.as_slice()), true);
        for round in 0..50 {
            let most = if round % 2 == 0 { 5 } else { 400 };
            let (mut rest, mut pieces) = (bytes.as_slice(), Vec::new());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(next(most).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            assert_eq!(play(pieces.into_iter(), true), whole, "{file}");
        }
    }
}

#[test]
fn recorded_dialects_come_to_what_was_meant() {
    let play_file = |name: &str| {
        let path = format!("{}/tests/fixtures/openai/{name}.sse", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).unwrap();
        play(std::iter::once(bytes.as_slice()), true).unwrap().unwrap()
    };
    let routed = play_file("openrouter_reasoning");
    assert_eq!(texts(&routed), ("I look.".to_owned(), "Let me look – 🏛.".to_owned()));
    assert_eq!(calls(&routed.parts), [("get_weather", "{\"city\":\"Paris\"}")]);
    let usage = routed.usage;
    assert_eq!((usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens), (900, 512, 300));
    let local = play_file("think_tags");
    assert_eq!(texts(&local), ("It is `<think>` 42.".to_owned(), "Six times seven</b>.\n".to_owned()));
    // Both calls have the index 0, and the reason to finish is that of a text.
    let gemini = play_file("gemini_tool_calls");
    let both = [("get_weather", "{\"city\":\"Paris\"}"), ("get_time", "{\"zone\":\"CET\"}")];
    assert_eq!((calls(&gemini.parts).as_slice(), gemini.stop), (&both[..], Stop::ToolUse));
    // Each piece has an id of its own, and none says why the answer ends.
    let vllm = play_file("repeated_name");
    assert_eq!(calls(&vllm.parts), [("get_weather", "{\"city\":\"Paris\"}")]);
}

#[test]
fn line_ends_and_comments_change_nothing() {
    for (file, bytes) in recorded() {
        let whole = play(std::iter::once(bytes.as_slice()), false);
        let text = String::from_utf8(bytes).unwrap();
        let commented = text.replace("\n\n", "\n\n: keep-alive\n\n");
        for variant in [text.replace('\n', "\r\n"), commented] {
            assert_eq!(play(variant.as_bytes().chunks(3), false), whole, "{file}");
        }
    }
}
