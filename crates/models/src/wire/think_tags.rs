//! Reasoning of local models, which many servers pass on as text between `<think>` and `</think>`.
//!
//! Only an answer that begins with the tag reasons like that: later on the word is what somebody talks about.

use petasos_core::model::{Answer, AnswerPart};
use petasos_net::sse;
use serde_json::Value;

use super::{Problem, Reader, Step, with_words};

const OPENING: &str = "<think>";
const CLOSING: &str = "</think>";

/// Reads an answer, and tells reasoning from text by its tags.
pub(super) struct ThinkTags {
    inner: Box<dyn Reader>,
    splitter: Splitter,
}

impl ThinkTags {
    /// The same answers as `inner` reads.
    pub(super) fn around(inner: Box<dyn Reader>) -> Self {
        ThinkTags { inner, splitter: Splitter::default() }
    }

    fn split(&mut self, read: Vec<Step>, steps: &mut Vec<Step>) -> Result<(), Problem> {
        for step in read {
            match step {
                Step::Text(text) => self.splitter.feed(&text, |said| steps.push(said.into())),
                Step::Thinking(text) => steps.push(Step::Thinking(text)),
                Step::Finished(answer) => {
                    self.splitter.flush(|said| steps.push(said.into()));
                    steps.push(Step::Finished(with_words(without_tags(answer))?));
                }
            }
        }
        Ok(())
    }
}

impl Reader for ThinkTags {
    fn read(&mut self, event: &sse::Event, steps: &mut Vec<Step>) -> Result<(), Problem> {
        let mut read = Vec::new();
        self.inner.read(event, &mut read)?;
        self.split(read, steps)
    }

    fn whole(&mut self, answer: &Value, steps: &mut Vec<Step>) -> Result<(), Problem> {
        let mut read = Vec::new();
        self.inner.whole(answer, &mut read)?;
        self.split(read, steps)
    }

    fn closed(&mut self) -> Option<Answer> {
        with_words(without_tags(self.inner.closed()?)).ok()
    }

    fn unfinished(&mut self) -> Option<Answer> {
        with_words(without_tags(self.inner.unfinished()?)).ok()
    }

    fn has_stopped(&self) -> bool {
        self.inner.has_stopped()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

/// A finished answer whose reasoning is apart from its text.
fn without_tags(answer: Answer) -> Answer {
    let (mut splitter, mut parts) = (Splitter::default(), Vec::new());
    for part in answer.parts {
        match part {
            AnswerPart::Text(text) => splitter.feed(&text, |said| add(&mut parts, said)),
            part => parts.push(part),
        }
    }
    splitter.flush(|said| add(&mut parts, said));
    Answer { parts, ..answer }
}

/// Adds a piece to the part before it, if that is of the same kind.
fn add(parts: &mut Vec<AnswerPart>, said: Said) {
    match (parts.last_mut(), said) {
        (Some(AnswerPart::Text(text)), Said::Text(more)) => text.push_str(&more),
        (Some(AnswerPart::Thinking { text, opaque: None }), Said::Thinking(more)) => text.push_str(&more),
        (_, Said::Text(text)) => parts.push(AnswerPart::Text(text)),
        (_, Said::Thinking(text)) => parts.push(AnswerPart::Thinking { text, opaque: None }),
    }
}

/// A piece of an answer.
#[derive(Debug, PartialEq)]
enum Said {
    Text(String),
    Thinking(String),
}

impl From<Said> for Step {
    fn from(said: Said) -> Self {
        match said {
            Said::Text(text) => Step::Text(text),
            Said::Thinking(text) => Step::Thinking(text),
        }
    }
}

/// Where in an answer its text stands.
#[derive(Debug, Default, PartialEq)]
enum Place {
    /// Nothing but blanks, or a part of the tag, has come.
    #[default]
    Start,
    /// Behind the opening tag, with nothing but blanks since.
    Opened,
    /// Between the tags.
    Inside,
    /// Behind the closing tag, with nothing but blanks since.
    Gap,
    /// In the answer itself.
    After,
}

/// Splits text while it comes.
#[derive(Debug, Default)]
struct Splitter {
    place: Place,
    /// What may be the beginning of a tag.
    held: String,
}

impl Splitter {
    fn feed(&mut self, piece: &str, mut say: impl FnMut(Said)) {
        if self.place == Place::After {
            return say(Said::Text(piece.to_owned()));
        }
        self.held.push_str(piece);
        loop {
            match self.place {
                Place::Start => {
                    let begun = self.held.trim_start();
                    if let Some(rest) = begun.strip_prefix(OPENING) {
                        self.held = rest.to_owned();
                        self.place = Place::Opened;
                    } else if OPENING.starts_with(begun) {
                        return;
                    } else {
                        self.place = Place::After;
                    }
                }
                Place::Opened => {
                    self.held = self.held.trim_start().to_owned();
                    if self.held.is_empty() {
                        return;
                    }
                    self.place = Place::Inside;
                }
                Place::Inside => {
                    let Some(end) = self.held.find(CLOSING) else {
                        let safe = self.held.len() - overlap(&self.held);
                        let rest = self.held.split_off(safe);
                        let thought = std::mem::replace(&mut self.held, rest);
                        if !thought.is_empty() {
                            say(Said::Thinking(thought));
                        }
                        return;
                    };
                    let rest = self.held.split_off(end);
                    let thought =
                        std::mem::replace(&mut self.held, rest.split_at(CLOSING.len()).1.to_owned());
                    if !thought.is_empty() {
                        say(Said::Thinking(thought));
                    }
                    self.place = Place::Gap;
                }
                Place::Gap => {
                    self.held = self.held.trim_start().to_owned();
                    if self.held.is_empty() {
                        return;
                    }
                    self.place = Place::After;
                }
                Place::After => {
                    let text = std::mem::take(&mut self.held);
                    if !text.is_empty() {
                        say(Said::Text(text));
                    }
                    return;
                }
            }
        }
    }

    /// The text has ended: what was held was no tag.
    fn flush(&mut self, mut say: impl FnMut(Said)) {
        let held = std::mem::take(&mut self.held);
        match self.place {
            _ if held.is_empty() => {}
            Place::Opened | Place::Inside => say(Said::Thinking(held)),
            Place::Start | Place::Gap | Place::After => say(Said::Text(held)),
        }
    }
}

/// How many bytes at the end of a text may be the beginning of the closing tag.
fn overlap(text: &str) -> usize {
    (1..CLOSING.len()).rev().find(|length| text.ends_with(&CLOSING[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text is split into when it comes in pieces of so many characters.
    fn split(text: &str, size: usize) -> (String, String) {
        let (mut thinking, mut said) = (String::new(), String::new());
        let mut splitter = Splitter::default();
        let mut take = |piece: Said| match piece {
            Said::Text(text) => said.push_str(&text),
            Said::Thinking(text) => thinking.push_str(&text),
        };
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(size) {
            splitter.feed(&piece.iter().collect::<String>(), &mut take);
        }
        splitter.flush(&mut take);
        (thinking, said)
    }

    #[test]
    fn think_tags_split_an_answer_wherever_it_is_cut() {
        for (text, thinking, said) in [
            ("<think>Six times seven.</think>\n\nIt is 42.", "Six times seven.", "It is 42."),
            ("\n<think>\nHm.\n</think>Yes", "Hm.\n", "Yes"),
            ("<think></think>Yes", "", "Yes"),
            ("<think>never closed < / <b", "never closed < / <b", ""),
            ("Write `<think>` and `</think>` around it.", "", "Write `<think>` and `</think>` around it."),
            ("<think>a</think>Use <think>x</think> here", "a", "Use <think>x</think> here"),
            ("<thinner> is no tag", "", "<thinner> is no tag"),
            ("<thi", "", "<thi"),
            ("ä<think>", "", "ä<think>"),
            ("<think>ä</think>ö", "ä", "ö"),
        ] {
            for size in 1..=text.len() {
                assert_eq!(split(text, size), (thinking.to_owned(), said.to_owned()), "{text:?} by {size}");
            }
        }
    }
}
