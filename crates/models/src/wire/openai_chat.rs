//! OpenAI's chat completions, as OpenAI and the many who copied it speak them.
//!
//! The format is loose: reasoning has two names, the end marker is sometimes missing, parallel calls sometimes
//! share an index. Whatever is unambiguous is accepted.

mod attached;
mod calls;
mod messages;
mod reader;
mod settings;
mod text_event;
mod usage;

use petasos_core::model::{ArgumentSchema, Request, ToolSpec};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::json;

use self::reader::ChatReader;
use super::{Body, Reader, Target, WireFormat, bearer, with_tools};

/// Marks reasoning that came through this format.
const FORMAT: &str = "openai-chat";

/// The names under which reasoning is streamed. OpenRouter sends the same text under both.
const REASONING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

pub(super) struct OpenaiChat;

impl WireFormat for OpenaiChat {
    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn headers(&self, api_key: Option<&SecretString>) -> Vec<(String, String)> {
        bearer(api_key)
    }

    fn body(&self, request: &Request, target: &Target<'_>) -> Body {
        let mut body = json!({
            "model": request.model,
            "messages": messages::messages(request, target),
            "stream": true,
        });
        if !target.drops.contains(&"stream_options") {
            body["stream_options"] = json!({ "include_usage": true });
        }
        let left_out = settings::write(&mut body, request, target);
        let json = with_tools(&body, request, |spec| Tool { kind: "function", function: Function::of(spec) });
        Body { json, left_out }
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(ChatReader::default())
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a ArgumentSchema,
}

impl<'a> Function<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Function { name: &spec.name, description: &spec.description, parameters: &spec.input_schema }
    }
}

#[cfg(test)]
mod tests;
