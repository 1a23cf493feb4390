//! Server-sent events, decoded as they arrive.
//!
//! The decoder owns no connection and never panics: whatever the bytes and however they are cut into chunks,
//! the same events come out. It follows the WHATWG description, with two additions, a bound on sizes and an
//! error for text that is not UTF-8.

use std::time::Duration;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name; `message` if the server gave none.
    pub event: String,
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

    /// Takes the next bytes and returns the events that they complete.
    ///
    /// An error is always the last item; from then on the decoder returns nothing. An event without the empty
    /// line that ends it is never returned.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Vec<Result<Event, DecodeError>> {
        let mut events = Vec::new();
        while !self.failed && !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let text = &bytes[..end.unwrap_or(bytes.len())];
            let outcome = self.push(text).and_then(|()| match end {
                Some(end) => {
                    self.after_cr = bytes[end] == b'\r';
                    self.end_line()
                }
                None => Ok(None),
            });
            match outcome {
                Ok(event) => events.extend(event.map(Ok)),
                Err(error) => {
                    self.failed = true;
                    events.push(Err(error));
                }
            }
            bytes = end.map_or(&[], |end| &bytes[end + 1..]);
        }
        events
    }

    fn push(&mut self, text: &[u8]) -> Result<(), DecodeError> {
        if self.line.len() + text.len() > self.max_event_bytes {
            return Err(DecodeError::TooLarge { max: self.max_event_bytes });
        }
        self.line.extend_from_slice(text);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<Event>, DecodeError> {
        let mut line = std::mem::take(&mut self.line);
        let text = if std::mem::take(&mut self.first_line) {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line)
        } else {
            &line
        };
        let text = std::str::from_utf8(text).map_err(|_| DecodeError::NotUtf8)?;
        let event = if text.is_empty() {
            self.dispatch()
        } else {
            self.field(text)?;
            None
        };
        line.clear();
        self.line = line;
        Ok(event)
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
        let event = if event.is_empty() { "message".to_owned() } else { event };
        Some(Event { event, data, id: self.id.clone(), retry })
    }
}
