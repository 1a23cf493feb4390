//! OpenAI's responses, used without their storage: we send the whole conversation every time, and reasoning
//! travels encrypted.

mod input;
mod reader;

use petasos_core::model::{ArgumentSchema, Request};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};

use self::input::input;
use self::reader::ResponsesReader;
use super::{Body, Reader, Target, WireFormat, bearer, with_tools};

/// Marks what came through this format and goes back unread.
const FORMAT: &str = "openai-responses";

pub(super) struct OpenaiResponses;

impl WireFormat for OpenaiResponses {
    fn path(&self) -> &'static str {
        "/responses"
    }

    fn headers(&self, api_key: Option<&SecretString>) -> Vec<(String, String)> {
        bearer(api_key)
    }

    fn body(&self, request: &Request, target: &Target<'_>) -> Body {
        let mut body = json!({
            "model": request.model,
            "input": input(&request.messages, target),
            "stream": true,
            "store": false,
        });
        if target.refuses("store") {
            body.as_object_mut().map(|body| body.remove("store"));
        }
        if may_reason(&request.model) && !target.refuses("include") {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        if !request.system.is_empty() {
            body["instructions"] = json!(request.system);
        }
        let left_out = settings(request, target, &mut body);
        let json = with_tools(&body, request, |spec| Tool {
            kind: "function",
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.input_schema,
            strict: false,
        });
        Body { json, left_out }
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(ResponsesReader::default())
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a ArgumentSchema,
    strict: bool,
}

/// Writes the settings into the body, and names those that it has no field for.
fn settings(request: &Request, target: &Target<'_>, body: &mut Value) -> Vec<&'static str> {
    let settings = &request.settings;
    let mut left_out = Vec::new();
    let parallel = settings.parallel_tool_calls.filter(|_| !request.tools.is_empty());
    for (field, setting, value) in [
        ("max_output_tokens", "maxOutputTokens", settings.max_output_tokens.map(|max| json!(max))),
        ("temperature", "temperature", settings.temperature.map(|temperature| json!(temperature))),
        ("top_p", "topP", settings.top_p.map(|top_p| json!(top_p))),
        ("parallel_tool_calls", "parallelToolCalls", parallel.map(|parallel| json!(parallel))),
    ] {
        match value {
            Some(value) if !target.refuses(field) => body[field] = value,
            Some(_) => left_out.push(setting),
            None => {}
        }
    }
    let has_stops = settings.stop_sequences.as_ref().is_some_and(|stops| !stops.is_empty());
    for (setting, is_set) in [
        ("stopSequences", has_stops),
        ("seed", settings.seed.is_some()),
        ("thinkingBudgetTokens", settings.thinking_budget_tokens.is_some()),
    ] {
        left_out.extend(is_set.then_some(setting));
    }
    reasoning(request, target, body, &mut left_out);
    left_out
}

/// Asks for a summary of the reasoning, and for as much of it as the settings say.
fn reasoning(request: &Request, target: &Target<'_>, body: &mut Value, left_out: &mut Vec<&'static str>) {
    let refused = target.refuses("reasoning");
    if may_reason(&request.model) && !refused && !target.refuses("reasoning.summary") {
        body["reasoning"] = json!({ "summary": "auto" });
    }
    let Some(effort) = request.settings.reasoning_effort else { return };
    if refused || target.refuses("reasoning.effort") {
        left_out.push("reasoningEffort");
    } else {
        body["reasoning"]["effort"] = json!(effort.as_str());
    }
}

/// Whether reasoning may be asked for. The older families refuse a request that does; of names that we do not
/// know we expect that they are newer.
fn may_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let older = ["gpt-3.5", "gpt-4", "chatgpt"];
    !older.iter().any(|family| name.starts_with(family)) && !name.contains("-chat")
}

#[cfg(test)]
mod tests;
