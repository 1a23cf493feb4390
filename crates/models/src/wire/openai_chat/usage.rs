//! The tokens of an answer, under all the names that vendors have for them.

use petasos_core::model::Usage;
use serde_json::Value;

/// The figures of an event, if it has any. Groq has them under a name of its own, Moonshot inside the choice.
pub(super) fn usage(event: &Value) -> Option<Usage> {
    [&event["usage"], &event["x_groq"]["usage"], &event["choices"][0]["usage"]].into_iter().find_map(figures)
}

fn figures(usage: &Value) -> Option<Usage> {
    let first = |values: &[&Value]| values.iter().find_map(|value| value.as_u64()).unwrap_or_default();
    let details = &usage["prompt_tokens_details"];
    Some(Usage {
        input_tokens: usage["prompt_tokens"].as_u64()?,
        output_tokens: first(&[&usage["completion_tokens"]]),
        cached_input_tokens: first(&[
            &details["cached_tokens"],
            &usage["prompt_cache_hit_tokens"],
            &usage["cache_read_input_tokens"],
            &usage["cached_tokens"],
        ]),
        cache_write_tokens: first(&[
            &usage["cache_creation_input_tokens"],
            &details["cache_creation_tokens"],
            &details["cache_write_tokens"],
        ]),
        cost_nanos: None,
    })
}
