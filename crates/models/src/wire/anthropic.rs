//! Anthropic's messages.

mod messages;
mod reader;

use petasos_core::model::{ArgumentSchema, Request};
use petasos_core::model_settings::ReasoningEffort;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::{Value, json};

use self::messages::messages;
use self::reader::AnthropicReader;
use super::{Body, Reader, Target, WireFormat, with_tools};

/// Marks what came through this format and goes back unread.
const FORMAT: &str = "anthropic";

const VERSION: &str = "2023-06-01";

/// The format requires a limit. For a model of which nothing is known, this much; Claudes have written more for years.
const DEFAULT_MAX_TOKENS: u64 = 16_000;

/// The least that the vendor thinks with.
const MIN_THINKING: u64 = 1024;

/// The least `top_p` that the vendor takes while it thinks.
const MIN_THINKING_TOP_P: f64 = 0.95;

pub(super) struct Anthropic;

impl WireFormat for Anthropic {
    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn headers(&self, api_key: Option<&SecretString>) -> Vec<(String, String)> {
        let mut headers = vec![("anthropic-version".to_owned(), VERSION.to_owned())];
        if let Some(key) = api_key {
            headers.push(("x-api-key".to_owned(), key.expose_secret().to_owned()));
        }
        headers
    }

    fn body(&self, request: &Request, target: &Target<'_>) -> Body {
        let cached = (!target.refuses("cache_control")).then(|| json!({ "type": "ephemeral" }));
        let max_tokens = request.settings.max_output_tokens.or(target.max_output_tokens);
        let mut body = json!({
            "model": request.model,
            "max_tokens": max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            "messages": messages(&request.messages, target),
            "stream": true,
        });
        if !request.system.is_empty() {
            let mut system = json!({ "type": "text", "text": request.system });
            if let Some(cached) = &cached {
                system["cache_control"] = cached.clone();
            }
            body["system"] = json!([system]);
        }
        let left_out = settings(request, target, &mut body);
        let last = request.tools.last();
        let json = with_tools(&body, request, |spec| Tool {
            name: &spec.name,
            description: &spec.description,
            input_schema: &spec.input_schema,
            cache_control: cached
                .clone()
                .filter(|_| last.is_some_and(|last| std::ptr::eq(&raw const **last, spec))),
        });
        Body { json, left_out }
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(AnthropicReader::default())
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a ArgumentSchema,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

/// Writes the settings into the body, and names those that it has no field for.
fn settings(request: &Request, target: &Target<'_>, body: &mut Value) -> Vec<&'static str> {
    let settings = &request.settings;
    let mut left_out = Vec::new();
    let thinks = thinking(request, target, body, &mut left_out);
    let mut put = |field: &str, setting: &'static str, value: Option<Value>, fits: bool| match value {
        Some(value) if fits && !target.refuses(field) => body[field] = value,
        Some(_) => left_out.push(setting),
        None => {}
    };
    // Thinking changes how words are chosen; the vendor then refuses most other ways of doing so.
    let may_heat = |temperature: f64| !thinks || (temperature - 1.0).abs() < f64::EPSILON;
    let temperature = settings.temperature;
    put("temperature", "temperature", temperature.map(|t| json!(t)), temperature.is_none_or(may_heat));
    let top_p = settings.top_p;
    let top_p_fits = top_p.is_none_or(|top_p| !thinks || top_p >= MIN_THINKING_TOP_P);
    put("top_p", "topP", top_p.map(|top_p| json!(top_p)), top_p_fits);
    let stops = settings.stop_sequences.as_ref().filter(|stops| !stops.is_empty());
    put("stop_sequences", "stopSequences", stops.map(|stops| json!(stops)), true);
    let effort = settings.reasoning_effort.and_then(effort).map(|effort| json!({ "effort": effort }));
    put("output_config", "reasoningEffort", effort, true);
    put("seed", "seed", settings.seed.map(|seed| json!(seed)), false);
    if !request.tools.is_empty() {
        let parallel = settings.parallel_tool_calls;
        let choice = parallel.map(|yes| json!({ "type": "auto", "disable_parallel_tool_use": !yes }));
        put("tool_choice", "parallelToolCalls", choice, true);
    }
    left_out
}

/// Turns thinking on if the settings ask for it. Its budget is part of `max_tokens` and must be below it.
fn thinking(
    request: &Request,
    target: &Target<'_>,
    body: &mut Value,
    left_out: &mut Vec<&'static str>,
) -> bool {
    let Some(budget) = request.settings.thinking_budget_tokens else { return false };
    let most = body["max_tokens"].as_u64().unwrap_or_default().saturating_sub(1);
    // Thinking cannot go on without what was thought before.
    if most < MIN_THINKING || target.refuses("thinking") || target.refuses("signature") {
        left_out.push("thinkingBudgetTokens");
        return false;
    }
    if target.refuses("thinking.type") {
        // Newer models take no budget and find their own.
        left_out.push("thinkingBudgetTokens");
        body["thinking"] = json!({ "type": "adaptive" });
    } else {
        body["thinking"] = json!({ "type": "enabled", "budget_tokens": budget.clamp(MIN_THINKING, most) });
    }
    true
}

/// The vendor's word for an effort; it has none for no effort at all.
fn effort(effort: ReasoningEffort) -> Option<&'static str> {
    match effort {
        ReasoningEffort::None => None,
        ReasoningEffort::Minimal => Some(ReasoningEffort::Low.as_str()),
        effort => Some(effort.as_str()),
    }
}

#[cfg(test)]
mod tests;
