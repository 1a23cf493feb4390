//! Server-sent events, decoded as they arrive.
//!
//! The decoder owns no connection and never panics: whatever the bytes and however they are cut into chunks,
//! the same events come out. It follows the WHATWG description, with two additions, a bound on sizes and an
//! error for text that is not UTF-8.

use std::borrow::Cow;
use std::iter;
use std::time::Duration;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name; `message` if the server gave none.
    pub event: Cow<'static, str>,
    /// Its data; lines are joined with a line feed.
    pub data: String,
    /// The last id that the server gave, with this event or earlier.
    pub id: Option<String>,
    /// The reconnection time, if the server gave one with this event.
    pub retry: Option<Duration>,
}

/// Why a stream cannot be read further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A line or an event is longer than allowed.
    #[error("an event of the stream is larger than {max} bytes")]
    TooLarge {
        /// The bound that it broke.
        max: usize,
    },
    /// A line is not UTF-8.
    #[error("the event stream is not valid UTF-8")]
    NotUtf8,
}

/// Turns chunks of bytes into events.
#[derive(Debug)]
pub struct Decoder {
    max_event_bytes: usize,
    line: Vec<u8>,
    /// The last byte ended a line as CR, so that an LF now belongs to the same line end.
    after_cr: bool,
    /// The byte-order mark can only be before the first line.
    first_line: bool,
    event: String,
    data: String,
    has_data: bool,
    id: Option<String>,
    retry: Option<Duration>,
    failed: bool,
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new(16 * 1024 * 1024)
    }
}

impl Decoder {
    /// A decoder for a new stream. No line and no event may be larger than `max_event_bytes`.
    pub fn new(max_event_bytes: usize) -> Self {
        Decoder {
            max_event_bytes,
            line: Vec::new(),
            after_cr: false,
            first_line: true,
            event: String::new(),
            data: String::new(),
            has_data: false,
            id: None,
            retry: None,
            failed: false,
        }
    }

    /// Takes the next bytes and returns the events that they complete, which must all be taken.
    ///
    /// An error is always the last item; from then on the decoder returns nothing. An event without the empty
    /// line that ends it is never returned.
    pub fn feed<'a>(
        &'a mut self,
        mut bytes: &'a [u8],
    ) -> impl Iterator<Item = Result<Event, DecodeError>> + 'a {
        iter::from_fn(move || {
            while !self.failed && !bytes.is_empty() {
                if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                    bytes = &bytes[1..];
                    continue;
                }
                let end = memchr::memchr2(b'\n', b'\r', bytes);
                let outcome = match end {
                    Some(end) => {
                        self.after_cr = bytes[end] == b'\r';
                        self.end_line(&bytes[..end])
                    }
                    None => self.push(bytes).map(|()| None),
                };
                bytes = end.map_or(&[], |end| &bytes[end + 1..]);
                self.failed = outcome.is_err();
                if let Some(event) = outcome.transpose() {
                    return Some(event);
                }
            }
            None
        })
    }

    fn push(&mut self, text: &[u8]) -> Result<(), DecodeError> {
        if self.line.len() + text.len() > self.max_event_bytes {
            return Err(DecodeError::TooLarge { max: self.max_event_bytes });
        }
        self.line.extend_from_slice(text);
        Ok(())
    }

    /// Takes the rest of a line.
    fn end_line(&mut self, rest: &[u8]) -> Result<Option<Event>, DecodeError> {
        if self.line.is_empty() && rest.len() <= self.max_event_bytes {
            // Most lines come whole, and need not be copied.
            return self.take_line(rest);
        }
        self.push(rest)?;
        let mut line = std::mem::take(&mut self.line);
        let event = self.take_line(&line)?;
        line.clear();
        self.line = line;
        Ok(event)
    }

    fn take_line(&mut self, line: &[u8]) -> Result<Option<Event>, DecodeError> {
        let text = if std::mem::take(&mut self.first_line) {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
        } else {
            line
        };
        let text = std::str::from_utf8(text).map_err(|_| DecodeError::NotUtf8)?;
        if text.is_empty() {
            return Ok(self.dispatch());
        }
        self.field(text)?;
        Ok(None)
    }

    fn field(&mut self, line: &str) -> Result<(), DecodeError> {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.event),
            "data" => {
                if self.data.len() + value.len() + 1 > self.max_event_bytes {
                    return Err(DecodeError::TooLarge { max: self.max_event_bytes });
                }
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok().map(Duration::from_millis);
            }
            // A line that starts with a colon is a comment; unknown fields are ignored likewise.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        let retry = self.retry.take();
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        let event = if event.is_empty() { Cow::Borrowed("message") } else { Cow::Owned(event) };
        Some(Event { event, data, id: self.id.clone(), retry })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<Result<Event, DecodeError>> {
        let mut decoder = Decoder::new(64);
        chunks.iter().flat_map(|chunk| decoder.feed(chunk).collect::<Vec<_>>()).collect()
    }

    /// The names and data of the events, which must all be good.
    fn check(input: &str, expected: &[(&str, &str)]) {
        let events = decode(&[input.as_bytes()]);
        let found: Vec<_> = events.iter().flatten().map(|event| (&*event.event, &*event.data)).collect();
        assert_eq!((found.as_slice(), events.len()), (expected, expected.len()), "{input:?}");
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        check("data: a\n\n", &[("message", "a")]);
        check("data:a\n\n", &[("message", "a")]);
        check("data:  a\n\n", &[("message", " a")]);
        check("data: a\ndata\ndata: b\n\n", &[("message", "a\n\nb")]);
        check("event: x\ndata: a\n\ndata: b\n\n", &[("x", "a"), ("message", "b")]);
        check(": comment\n\n:\n\ndata: a\nother: b\nnonsense\n\n", &[("message", "a")]);
        check("data:\n\n", &[("message", "")]);
        check("event: x\n\n", &[]);
        check("data: never ended\n", &[]);
        check("data: a: b\n\n", &[("message", "a: b")]);
    }

    #[test]
    fn all_line_ends_are_the_same() {
        for end in ["\n", "\r", "\r\n"] {
            let text = "data: a|data: b||data: c||".replace('|', end);
            check(&text, &[("message", "a\nb"), ("message", "c")]);
        }
        check("data: a\r\n\ndata: b\n\r", &[("message", "a"), ("message", "b")]);
    }

    #[test]
    fn one_byte_order_mark_is_dropped() {
        check("\u{feff}data: a\n\n", &[("message", "a")]);
        check("\u{feff}\u{feff}data: a\n\n", &[]);
        check("\n\u{feff}data: a\n\n", &[]);
    }

    #[test]
    fn ids_stay_and_retries_do_not() {
        let input =
            b"id: 7\nretry: 1500\ndata: a\n\ndata: b\n\nid: x\0y\nretry: soon\ndata: c\n\nid\ndata: d\n\n";
        let events: Vec<_> = decode(&[input]).into_iter().map(|event| event.unwrap()).collect();
        let ids: Vec<_> = events.iter().map(|event| event.id.as_deref()).collect();
        assert_eq!(ids, [Some("7"), Some("7"), Some("7"), Some("")]);
        let retries: Vec<_> = events.iter().map(|event| event.retry).collect();
        assert_eq!(retries, [Some(Duration::from_millis(1500)), None, None, None]);
    }

    #[test]
    fn bad_input_is_an_error_after_the_good_events_and_the_end() {
        let too_long = [b"data: a\n\ndata: ", "b".repeat(99).as_bytes(), b"\n\ndata: c\n\n"].concat();
        let too_many = ["data: a\n\n", &"data: 0123456789\n".repeat(9), "\ndata: c\n\n"].concat();
        for (input, error) in [
            (&too_long[..], DecodeError::TooLarge { max: 64 }),
            (too_many.as_bytes(), DecodeError::TooLarge { max: 64 }),
            (b"data: a\n\ndata: \xff\n\ndata: c\n\n", DecodeError::NotUtf8),
        ] {
            let events = decode(&[input]);
            assert_eq!(events.len(), 2);
            assert_eq!(events[1], Err(error));
        }
    }

    /// Bytes that mean something to the decoder, and some that do not.
    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let pieces: Vec<&[u8]> = vec![
            b"data",
            b"event",
            b"id",
            b"retry",
            b":",
            b": ",
            b" ",
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
            b"7",
            b"\0",
            b"\xef",
            b"\xbb",
            b"\xbf",
            b"\xff",
            "\u{feff}".as_bytes(),
            "ä🏛".as_bytes(),
            b"0123456789abcdef",
        ];
        prop::collection::vec(prop::sample::select(pieces), 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(bytes in streams(), sizes in prop::collection::vec(1usize..9, 1..40)) {
            let mut chunks = Vec::new();
            let mut rest = bytes.as_slice();
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, after) = rest.split_at((*size).min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            prop_assert_eq!(decode(&chunks), decode(&[&bytes]));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            decode(&[&bytes]);
        }
    }
}
