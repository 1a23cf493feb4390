//! What a wire format has to provide.
//!
//! A format translates, and does nothing else: a request into a JSON body, and events of a stream into steps.
//! It has no connection and no clock, so that it can be tested with text alone.

mod anthropic;
mod call_ids;
mod openai_chat;
mod openai_responses;
mod parts;
mod settled;
mod think_tags;

use petasos_core::model::{Answer, AnswerPart, Request, Stop, ToolOutcome, ToolSpec};
use petasos_net::sse;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

use self::think_tags::ThinkTags;
pub(crate) use settled::settle_calls;

use crate::ProviderKind;

/// Room for a body with the tools that come with the server.
const USUAL_BODY: usize = 32 * 1024;

/// One vendor's protocol.
pub(crate) trait WireFormat: Send + Sync {
    /// What is appended to the provider's base URL.
    fn path(&self) -> &'static str;

    /// The headers that the protocol asks for, the key among them.
    fn headers(&self, api_key: Option<&SecretString>) -> Vec<(String, String)>;

    /// The body of the request.
    fn body(&self, request: &Request, target: &Target<'_>) -> Body;

    /// Reads one answer.
    fn reader(&self) -> Box<dyn Reader>;
}

/// Where a request goes, as far as its body depends on it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Target<'a> {
    /// Its address.
    pub(crate) base_url: &'a str,
    /// The most tokens that the model can write, if the catalog knows it.
    pub(crate) max_output_tokens: Option<u64>,
    /// Fields of the request that this provider has refused.
    pub(crate) drops: &'a [&'static str],
    /// Whether `<think>` at the start of a text begins reasoning.
    pub(crate) thinks_in_text: bool,
}

impl Target<'_> {
    /// Whether the provider has refused this field.
    pub(crate) fn refuses(&self, field: &str) -> bool {
        self.drops.contains(&field)
    }
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Body {
    /// Its JSON.
    pub(crate) json: String,
    /// The settings that it has no field for, by their names in JSON.
    pub(crate) left_out: Vec<&'static str>,
}

/// Reads the events of one answer.
pub(crate) trait Reader: Send {
    /// Takes the next event, and adds what it brought to `steps`.
    fn read(&mut self, event: &sse::Event, steps: &mut Vec<Step>) -> Result<(), Problem>;

    /// The stream has ended: the answer, if it is complete all the same.
    fn closed(&mut self) -> Option<Answer> {
        None
    }

    /// Takes an answer that came in one piece although a stream was asked for, and ends with [`Step::Finished`].
    fn whole(&mut self, answer: &Value, steps: &mut Vec<Step>) -> Result<(), Problem>;

    /// Whether the model has said why it stops, so that an end marker is all that can follow.
    fn has_stopped(&self) -> bool {
        false
    }

    /// The stream has ended without a word about why, and will not be asked for again: the answer, if what came can be
    /// one.
    fn unfinished(&mut self) -> Option<Answer> {
        None
    }

    /// Characters of text, reasoning and arguments so far.
    fn size(&self) -> usize;
}

/// What an event brought.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// More reasoning.
    Thinking(String),
    /// More text.
    Text(String),
    /// The end.
    Finished(Answer),
}

/// Why an answer cannot be read further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// This is not the protocol.
    Malformed(String),
    /// The answer has neither text nor a tool call.
    Empty,
    /// The provider reports an error inside the stream.
    Reported {
        /// Its type or code.
        kind: String,
        /// Its text.
        message: String,
    },
}

impl ProviderKind {
    /// The format of this kind. A new format is named here and nowhere else.
    pub(crate) fn format(self) -> &'static dyn WireFormat {
        match self {
            ProviderKind::Openai => &openai_chat::OpenaiChat,
            ProviderKind::OpenaiResponses => &openai_responses::OpenaiResponses,
            ProviderKind::Anthropic => &anthropic::Anthropic,
        }
    }
}

/// Reads one answer of a provider of this kind.
pub(crate) fn reader(kind: ProviderKind, target: &Target<'_>) -> Box<dyn Reader> {
    let reader = kind.format().reader();
    if target.thinks_in_text { Box::new(ThinkTags::around(reader)) } else { reader }
}

/// An answer that says something or calls a tool. One that does neither can only be complete if it was cut or declined.
fn with_words(answer: Answer) -> Result<Answer, Problem> {
    let has_words = answer.parts.iter().any(|part| !matches!(part, AnswerPart::Thinking { .. }));
    let is_complete = has_words || matches!(answer.stop, Stop::MaxTokens | Stop::Refusal);
    if is_complete { Ok(answer) } else { Err(Problem::Empty) }
}

/// The host of a base URL.
fn host(base_url: &str) -> &str {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    host.split(':').next().unwrap_or_default()
}

/// Writes a body with the tools on offer, and with `extraBody` in the place of fields of the same name. The schemas of
/// the tools are most of a body, and are written as they stand: copied into a [`Value`] first, they would cost more
/// than the rest of the call.
fn with_tools<'a, T: Serialize>(
    body: &Value,
    request: &'a Request,
    tool: impl Fn(&'a ToolSpec) -> T,
) -> String {
    let extra = request.settings.extra_body.as_ref();
    let is_replaced = |name: &str| extra.is_some_and(|extra| extra.contains_key(name));
    let mut json = Vec::with_capacity(USUAL_BODY);
    let mut write = || -> serde_json::Result<()> {
        let mut serializer = serde_json::Serializer::new(&mut json);
        let mut fields = serializer.serialize_map(None)?;
        for (name, value) in body.as_object().into_iter().flatten().filter(|(name, _)| !is_replaced(name)) {
            fields.serialize_entry(name, value)?;
        }
        if !request.tools.is_empty() && !is_replaced("tools") {
            let tools: Vec<T> = request.tools.iter().map(|spec| tool(spec)).collect();
            fields.serialize_entry("tools", &tools)?;
        }
        for (name, value) in extra.into_iter().flatten() {
            fields.serialize_entry(name, value)?;
        }
        fields.end()
    };
    // Writing to memory cannot fail, and a body has no keys but texts.
    let written = write();
    written.ok().and_then(|()| String::from_utf8(json).ok()).unwrap_or_default()
}

/// The data of an event as JSON.
fn json(event: &sse::Event) -> Result<Value, Problem> {
    serde_json::from_str(&event.data).map_err(|error| {
        let start: String = event.data.chars().take(80).collect();
        Problem::Malformed(format!("an event holds {start:?}, which is not JSON ({error})"))
    })
}

/// An `error` object of any of the vendors: `{type, code, message}` in part, or just a text.
fn reported(error: &Value) -> Problem {
    let field = |name: &str| match &error[name] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let kind = field("code").or_else(|| field("type")).unwrap_or_default();
    let message = field("message").or_else(|| error.as_str().map(str::to_owned)).unwrap_or_default();
    Problem::Reported { kind, message }
}

/// The text of a tool's result where the format has no field for failure.
fn outcome_text(outcome: &ToolOutcome) -> String {
    if outcome.is_error && !outcome.text.to_lowercase().contains("error") {
        format!("Error: {}", outcome.text)
    } else {
        outcome.text.clone()
    }
}

/// The type and the data of a `data:` URI.
fn data_uri(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// OpenAI's header, in both of its formats.
fn bearer(api_key: Option<&SecretString>) -> Vec<(String, String)> {
    let header = |key: &SecretString| ("authorization".to_owned(), format!("Bearer {}", key.expose_secret()));
    api_key.map(header).into_iter().collect()
}

#[cfg(test)]
mod testing {
    //! What the tests of the formats share.

    use petasos_core::event::Block;
    use petasos_core::model::{AssistantPart, Message, Opaque, Request, ToolOutcome, ToolSpec};
    use petasos_net::sse;
    use serde_json::{Value, json};

    use super::{Body, Problem, Reader, Step, Target, WireFormat};

    /// A provider of which nothing is known but its address.
    pub(super) fn target(base_url: &str) -> Target<'_> {
        Target { base_url, ..Target::default() }
    }

    /// The body of a request.
    pub(super) fn body(format: &dyn WireFormat, request: &Request, base_url: &str) -> Value {
        serde_json::from_str(&format.body(request, &target(base_url)).json).unwrap()
    }

    /// A body and the settings that are not in it.
    pub(super) fn told(
        format: &dyn WireFormat,
        request: &Request,
        target: &Target<'_>,
    ) -> (Value, Vec<&'static str>) {
        let Body { json, left_out } = format.body(request, target);
        (serde_json::from_str(&json).unwrap(), left_out)
    }

    pub(super) fn user(text: &str) -> Message {
        Message::User(vec![Block::text(text)])
    }

    pub(super) fn call(id: &str, name: &str, input: &Value) -> AssistantPart {
        let input = input.as_object().cloned().unwrap();
        AssistantPart::ToolCall { id: id.to_owned(), name: name.to_owned(), input, opaque: None }
    }

    pub(super) fn thinking(text: &str, format: &str, data: Value) -> AssistantPart {
        let opaque = Some(Opaque { format: format.to_owned(), provider: None, data });
        AssistantPart::Thinking { text: text.to_owned(), opaque }
    }

    pub(super) fn outcome(id: &str, text: &str, is_error: bool) -> ToolOutcome {
        ToolOutcome {
            id: id.to_owned(),
            name: "look".to_owned(),
            text: text.to_owned(),
            images: vec![],
            is_error,
        }
    }

    pub(super) fn request(system: &str, messages: Vec<Message>) -> Request {
        let tool = ToolSpec {
            name: "look".to_owned(),
            description: "Looks".to_owned(),
            input_schema: json!({ "type": "object" }).into(),
        };
        Request {
            model: "m-1".to_owned(),
            system: system.to_owned(),
            messages,
            tools: vec![tool.into()],
            settings: petasos_core::model_settings::ModelSettings::default(),
        }
    }

    /// Feeds data lines; the event's name is its `type`, as the vendors do it.
    pub(super) fn read(reader: &mut dyn Reader, data: &[Value]) -> Result<Vec<Step>, Problem> {
        let mut steps = Vec::new();
        for data in data {
            let name = data["type"].as_str().unwrap_or("message");
            let text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
            let event = sse::Event { event: name.to_owned().into(), data: text, id: None, retry: None };
            reader.read(&event, &mut steps)?;
        }
        Ok(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Framing;

    /// Events of all recorded streams.
    fn recorded() -> Vec<Vec<sse::Event>> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
        let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files =
            folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|file| file.unwrap().path());
        files
            .map(|file| {
                let (mut decoder, bytes) = (sse::Decoder::default(), std::fs::read(file).unwrap());
                decoder.feed(&bytes).map(|event| event.unwrap()).collect()
            })
            .collect()
    }

    /// What happens to a reader is up to it, as long as it does not panic.
    #[test]
    fn streams_of_another_vendor_or_with_gaps_are_survived() {
        let streams = recorded();
        assert!(streams.len() >= 18, "{}", streams.len());
        for kind in [ProviderKind::Openai, ProviderKind::OpenaiResponses, ProviderKind::Anthropic] {
            for events in &streams {
                for gap in 0..events.len() {
                    let mut reader = kind.format().reader();
                    let rest = events.iter().enumerate().filter(|(index, _)| *index != gap);
                    for (_, event) in rest {
                        let _ = reader.read(event, &mut Vec::new());
                    }
                    let _ = reader.closed();
                }
            }
        }
    }

    /// The answer of a recorded stream that is closed after these bytes, if it is taken for one.
    fn closed_after(kind: ProviderKind, bytes: &[u8], chunk: usize) -> Option<Answer> {
        let (mut framing, mut reader) = (Framing::new(None), kind.format().reader());
        let mut steps = Vec::new();
        for bytes in bytes.chunks(chunk) {
            framing.feed(bytes, |event| reader.read(&event, &mut steps)).ok()?;
            if let Some(Step::Finished(answer)) = steps.last() {
                return Some(answer.clone());
            }
        }
        reader.closed()
    }

    /// Closed at any byte, a stream ends in an error or in an answer whose parts are all whole.
    #[test]
    fn streams_closed_at_any_byte_end_in_an_answer_or_an_error() {
        for (kind, folder) in
            [(ProviderKind::OpenaiResponses, "openai-responses"), (ProviderKind::Anthropic, "anthropic")]
        {
            for scenario in ["text", "reasoning", "tool_calls", "refusal", "length", "error_mid_stream"] {
                let file = format!("{}/tests/fixtures/{folder}/{scenario}.sse", env!("CARGO_MANIFEST_DIR"));
                let bytes = std::fs::read(file).unwrap();
                let whole = closed_after(kind, &bytes, bytes.len());
                assert_eq!(whole.is_some(), scenario != "error_mid_stream", "{folder} {scenario}");
                for cut in 0..bytes.len() {
                    // Chunks of many sizes, and the same ones in each run.
                    let chunk = 1 + (cut * 7919) % 512;
                    let Some(answer) = closed_after(kind, &bytes[..cut], chunk) else { continue };
                    let whole = &whole.as_ref().unwrap().parts;
                    assert!(whole.starts_with(&answer.parts), "{folder} {scenario} at {cut}: {answer:?}");
                }
            }
        }
    }
}
