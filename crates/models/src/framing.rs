//! What a provider's bytes are: a stream of events, JSON objects in lines, one JSON answer, or something else.
//!
//! Servers send streams under any content type, and whole answers where a stream was asked for, so that only the bytes
//! tell. This module knows nothing of wire formats.

use petasos_net::sse;
use serde::de::IgnoredAny;
use serde_json::Value;

/// The most bytes of a JSON answer, and of something else that is read to be told about.
const MAX_JSON: usize = 16 * 1024 * 1024;
const MAX_FOREIGN: usize = 64 * 1024;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How a line of an event stream can begin.
const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b":", b"id:", b"retry:"];

/// Cuts the body of an answer into what it consists of.
pub(crate) struct Framing {
    shape: Shape,
    /// Whether the provider calls it a stream of events.
    is_declared: bool,
}

enum Shape {
    /// The bytes so far do not tell.
    Open(Vec<u8>),
    Events(sse::Decoder),
    Json(JsonText),
    Foreign(Vec<u8>),
}

/// How a body ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    /// As a stream, whatever it brought.
    Stream,
    /// As one JSON value.
    Whole(Value),
    /// As something that is no answer.
    Foreign(String),
}

/// A body that cannot be read further.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flaw<E> {
    /// It is no answer; this is its beginning.
    Foreign(String),
    /// It breaks the rules of what it is.
    Malformed(String),
    /// Whoever took the events could not use one.
    Taken(E),
}

impl Framing {
    pub(crate) fn new(content_type: Option<&str>) -> Self {
        let declared = content_type.map(|kind| kind.trim_start().to_lowercase());
        let is_declared = declared.is_none_or(|kind| kind.starts_with("text/event-stream"));
        Framing { shape: Shape::Open(Vec::new()), is_declared }
    }

    /// Takes the next bytes and hands on the events that they complete.
    pub(crate) fn feed<E>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(sse::Event) -> Result<(), E>,
    ) -> Result<(), Flaw<E>> {
        if let Shape::Open(start) = &mut self.shape {
            start.extend_from_slice(bytes);
            let Some(shape) = shape(start, self.is_declared) else { return Ok(()) };
            let start = std::mem::take(start);
            self.shape = shape;
            return self.continue_with(&start, &mut take);
        }
        self.continue_with(bytes, &mut take)
    }

    fn continue_with<E>(
        &mut self,
        bytes: &[u8],
        take: &mut impl FnMut(sse::Event) -> Result<(), E>,
    ) -> Result<(), Flaw<E>> {
        match &mut self.shape {
            Shape::Open(_) => Ok(()),
            Shape::Events(decoder) => {
                for event in decoder.feed(bytes) {
                    let event = event.map_err(|error| Flaw::Malformed(error.to_string()))?;
                    take(event).map_err(Flaw::Taken)?;
                }
                Ok(())
            }
            Shape::Json(text) => text.feed(bytes, take),
            Shape::Foreign(start) => {
                start.extend_from_slice(&bytes[..bytes.len().min(MAX_FOREIGN - start.len())]);
                if start.len() < MAX_FOREIGN { Ok(()) } else { Err(Flaw::Foreign(lossy(start))) }
            }
        }
    }

    /// The body has ended.
    pub(crate) fn end<E>(
        &mut self,
        mut take: impl FnMut(sse::Event) -> Result<(), E>,
    ) -> Result<End, Flaw<E>> {
        match &mut self.shape {
            Shape::Events(_) => Ok(End::Stream),
            Shape::Open(start) if self.is_declared && start.iter().all(u8::is_ascii_whitespace) => {
                Ok(End::Stream)
            }
            Shape::Open(start) | Shape::Foreign(start) => Ok(End::Foreign(lossy(start))),
            Shape::Json(text) => text.end(&mut take),
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a body is by its beginning; none if that is too short to tell.
fn shape(start: &[u8], is_declared: bool) -> Option<Shape> {
    if start.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(start) {
        return None;
    }
    let begun = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start).trim_ascii_start();
    let events = || Some(Shape::Events(sse::Decoder::default()));
    match begun.first() {
        None if start.len() < MAX_FOREIGN => None,
        Some(b'{' | b'[') => Some(Shape::Json(JsonText::default())),
        Some(b'<') => Some(Shape::Foreign(Vec::new())),
        _ if is_declared => events(),
        _ if FIELDS.iter().any(|field| begun.starts_with(field)) => events(),
        _ if FIELDS.iter().any(|field| field.starts_with(begun)) => None,
        _ => Some(Shape::Foreign(Vec::new())),
    }
}

/// One JSON value, or one in each line.
#[derive(Default)]
struct JsonText {
    text: Vec<u8>,
    /// How much of `text` has no line end in it.
    searched: usize,
    layout: Layout,
}

#[derive(Default, PartialEq)]
enum Layout {
    /// The first line is not complete, or nothing has followed it.
    #[default]
    FirstLine,
    Lines,
    Whole,
}

impl JsonText {
    fn feed<E>(
        &mut self,
        bytes: &[u8],
        take: &mut impl FnMut(sse::Event) -> Result<(), E>,
    ) -> Result<(), Flaw<E>> {
        if self.text.len() + bytes.len() > MAX_JSON {
            return Err(Flaw::Malformed(format!("a JSON answer is larger than {MAX_JSON} bytes")));
        }
        self.text.extend_from_slice(bytes);
        if self.layout == Layout::FirstLine {
            self.look_at_first_line();
        }
        if self.layout == Layout::Lines { self.take_lines(take) } else { Ok(()) }
    }

    /// A first line that is a whole object, and is followed by more, begins a stream.
    fn look_at_first_line(&mut self) {
        let begun = self.text.len() - self.text.trim_ascii_start().len();
        let from = self.searched.max(begun);
        let Some(end) = self.text[from..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.text.len();
            return;
        };
        let (line, rest) = self.text.split_at(from + end);
        self.searched = from + end;
        if serde_json::from_slice::<IgnoredAny>(line).is_err() {
            self.layout = Layout::Whole;
        } else if !rest.trim_ascii().is_empty() {
            self.layout = Layout::Lines;
        }
    }

    fn take_lines<E>(&mut self, take: &mut impl FnMut(sse::Event) -> Result<(), E>) -> Result<(), Flaw<E>> {
        let Some(end) = self.text.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let rest = self.text.split_off(end + 1);
        let lines = std::mem::replace(&mut self.text, rest);
        lines.split(|byte| *byte == b'\n').try_for_each(|line| take_line(line, take))
    }

    fn end<E>(&mut self, take: &mut impl FnMut(sse::Event) -> Result<(), E>) -> Result<End, Flaw<E>> {
        if self.layout == Layout::Lines {
            take_line(&self.text, take)?;
            return Ok(End::Stream);
        }
        let text = self.text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.text);
        Ok(match serde_json::from_slice(text) {
            Ok(value) => End::Whole(value),
            Err(_) => End::Foreign(lossy(&text[..text.len().min(MAX_FOREIGN)])),
        })
    }
}

fn take_line<E>(line: &[u8], take: &mut impl FnMut(sse::Event) -> Result<(), E>) -> Result<(), Flaw<E>> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(());
    }
    let data = std::str::from_utf8(line).map_err(|error| Flaw::Malformed(error.to_string()))?.to_owned();
    take(sse::Event { event: "message".into(), data, id: None, retry: None }).map_err(Flaw::Taken)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The events of a body in chunks of this size, and its end.
    fn frames(content_type: &str, body: &str, size: usize) -> (Vec<String>, Result<End, Flaw<()>>) {
        let (mut framing, mut events) = (Framing::new(Some(content_type)), Vec::new());
        for chunk in body.as_bytes().chunks(size) {
            let fed = framing.feed(chunk, |event| {
                events.push(event.data);
                Ok(())
            });
            if let Err(flaw) = fed {
                return (events, Err(flaw));
            }
        }
        let end = framing.end(|event| {
            events.push(event.data);
            Ok(())
        });
        (events, end)
    }

    #[test]
    fn bytes_tell_what_a_body_is() {
        let whole = json!({ "a": 1 });
        for (content_type, body, events, end) in [
            ("text/plain", "data: {}\n\ndata: 1\n\n", &["{}", "1"][..], End::Stream),
            ("application/octet-stream", ": hi\n\nevent: x\ndata: {}\n\n", &["{}"], End::Stream),
            ("application/json", "\n\r\nid: 1\ndata: {}\n\n", &["{}"], End::Stream),
            (
                "application/x-ndjson",
                "{\"a\":1}\n{\"b\":2}\r\n\n{\"c\":3}",
                &["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"],
                End::Stream,
            ),
            ("text/event-stream", "{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"], End::Stream),
            ("text/event-stream", "{\"a\":1}\n", &[], End::Whole(whole.clone())),
            ("application/json", "\u{feff}{\"a\":1}", &[], End::Whole(whole.clone())),
            ("application/json", "{\n  \"a\": 1\n}\n", &[], End::Whole(whole)),
            ("application/json", "{\"a\":", &[], End::Foreign("{\"a\":".to_owned())),
            ("text/event-stream", "<html>", &[], End::Foreign("<html>".to_owned())),
            ("text/plain", "dat", &[], End::Foreign("dat".to_owned())),
            ("text/plain", "nope", &[], End::Foreign("nope".to_owned())),
            ("text/event-stream", "nope", &[], End::Stream),
            ("text/event-stream", "", &[], End::Stream),
        ] {
            for size in [1, 3, 1000] {
                let found = frames(content_type, body, size);
                assert_eq!(found.0, events, "{content_type} {body:?} in chunks of {size}");
                assert_eq!(found.1, Ok(end.clone()), "{content_type} {body:?} in chunks of {size}");
            }
        }
    }

    #[test]
    fn bodies_without_end_are_given_up() {
        let json = format!("{{\"a\": \"{}", "x".repeat(MAX_JSON));
        assert!(matches!(frames("application/json", &json, 1 << 20).1, Err(Flaw::Malformed(_))));
        let page = format!("<html>{}", "x".repeat(MAX_FOREIGN));
        let Err(Flaw::Foreign(start)) = frames("text/html", &page, 1000).1 else { panic!("it is read on") };
        assert_eq!(start.len(), MAX_FOREIGN);
    }
}
