//! How a model is asked, in the fields of this format.

use petasos_core::model::Request;
use serde_json::{Value, json};

use crate::wire::{Target, host};

/// The address at which only OpenAI itself answers.
const OPENAI: &str = "api.openai.com";

/// Writes the settings into a body. Returns those that it has no field for, and those whose field this provider has
/// refused.
pub(super) fn write(body: &mut Value, request: &Request, target: &Target<'_>) -> Vec<&'static str> {
    let settings = &request.settings;
    let mut left_out = Vec::new();
    let parallel = settings.parallel_tool_calls.filter(|_| !request.tools.is_empty());
    let stops = settings.stop_sequences.as_ref().filter(|stops| !stops.is_empty());
    for (setting, field, value) in [
        ("maxOutputTokens", limit_field(target), settings.max_output_tokens.map(|most| json!(most))),
        ("temperature", "temperature", settings.temperature.map(|value| json!(value))),
        ("topP", "top_p", settings.top_p.map(|value| json!(value))),
        ("stopSequences", "stop", stops.map(|stops| json!(stops))),
        (
            "reasoningEffort",
            "reasoning_effort",
            settings.reasoning_effort.map(|effort| json!(effort.as_str())),
        ),
        ("seed", "seed", settings.seed.map(|seed| json!(seed))),
        ("parallelToolCalls", "parallel_tool_calls", parallel.map(|parallel| json!(parallel))),
    ] {
        match value {
            None => {}
            Some(_) if target.drops.contains(&field) => left_out.push(setting),
            Some(value) => body[field] = value,
        }
    }
    if settings.thinking_budget_tokens.is_some() {
        left_out.push("thinkingBudgetTokens");
    }
    left_out
}

/// OpenAI's reasoning models refuse the old name, and most other servers do not know the new one. A provider that has
/// refused one name gets the other.
fn limit_field(target: &Target<'_>) -> &'static str {
    let (old, new) = ("max_tokens", "max_completion_tokens");
    let (usual, other) = if host(target.base_url) == OPENAI { (new, old) } else { (old, new) };
    if target.drops.contains(&usual) { other } else { usual }
}
