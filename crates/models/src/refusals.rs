//! Fields of requests that providers refuse, and how they say so.
//!
//! Servers that copied a vendor's format know some of its fields and refuse a request with the others; vendors
//! themselves refuse a setting for one model that they take for the next. A refusal names the field, and the request is
//! made again without it. This module knows nothing of formats: what leaving a field out means is theirs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// The fields that a request can do without. Of two that begin alike the longer one stands first.
const FIELDS: &[&str] = &[
    "stream_options",
    "parallel_tool_calls",
    "reasoning_effort",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "temperature",
    "top_p",
    "seed",
    "stop_sequences",
    "stop",
    "reasoning.summary",
    "reasoning.effort",
    "reasoning",
    "include",
    "store",
    "output_config",
    "thinking.type",
    "thinking",
    "tool_choice",
    "cache_control",
];

/// Fields whose names are words that an error text may well use in another sense.
const WORDS: &[&str] = &["stop", "reasoning", "include", "store", "thinking"];

/// Names that stand for a field in the texts of its vendor.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("effort parameter", "output_config"),
    ("encrypted content is not supported", "include"),
    ("adaptive thinking is not supported", "thinking"),
    ("could not be verified", "encrypted_content"),
    ("could not be decrypted", "encrypted_content"),
    ("not issued to this caller", "encrypted_content"),
    ("signature in thinking block", "signature"),
    ("`signature` in `thinking` block", "signature"),
    ("must start with a thinking block", "signature"),
    ("reasoning summaries", "reasoning.summary"),
];

/// Reasoning that was attached to earlier answers, and is refused for what it is in this conversation: the key has
/// changed, or another model has answered in between. The next conversation has its own.
const OF_ONE_CONVERSATION: &[&str] = &["encrypted_content", "signature"];

/// What a refusal says, unlike a complaint about a value that the person who set it must hear.
const REFUSALS: &[&str] = &[
    "unsupported",
    "not support",
    "n't support",
    "unrecognized",
    "unknown",
    "not permitted",
    "extra_forbidden",
    "not allowed",
    "only allowed when",
    "not available",
    "deprecated",
    "unexpected",
    "invalid argument",
    "only the default",
    "may only be set",
    "no longer",
    "additional propert",
    "cannot be specified",
    "cannot both be specified",
    "cannot be used",
    "cannot be set",
    "incompatible",
    "must be verified",
    "input should be '",
    "could not be verified",
    "could not be decrypted",
    "not issued to this caller",
    "invalid signature",
    "invalid `signature`",
    "must start with a thinking block",
];

/// What one provider has refused: fields, each for one model or for all of them. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals(Arc<Mutex<KnownRefusals>>);

/// Fields, each with the only model that refuses it, or without one.
type KnownRefusals = BTreeSet<(Option<String>, &'static str)>;

impl Refusals {
    /// The fields that are not sent to this model.
    pub(crate) fn of(&self, model: &str) -> Vec<&'static str> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let for_it = known.iter().filter(|(only, _)| only.as_deref().is_none_or(|only| only == model));
        for_it.map(|(_, field)| *field).collect()
    }

    /// Remembers a field, for this model only if one is named.
    pub(crate) fn add(&self, model: Option<&str>, field: &'static str) {
        if OF_ONE_CONVERSATION.contains(&field) {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((model.map(str::to_owned), field));
    }
}

/// A field that an error body refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The field, as [`Target::drops`](crate::wire::Target) has it.
    pub(crate) field: &'static str,
    /// Whether the text speaks of the model, so that others may take the field.
    pub(crate) only_this_model: bool,
}

/// The fields that an error body refuses, the likeliest first.
pub(crate) fn refused(body: &str) -> Vec<Refused> {
    let said = body.to_lowercase();
    if !REFUSALS.iter().any(|phrase| said.contains(phrase)) {
        return Vec::new();
    }
    let mut found: Vec<(usize, &'static str)> =
        FIELDS.iter().filter_map(|field| Some((mention(&said, field)?, *field))).collect();
    // The text names the field first and what to do instead after it. Of names at one place the longer one is meant.
    found.sort_by_key(|(place, field)| (*place, std::cmp::Reverse(field.len())));
    let named = parameter(body);
    let named = FIELDS.iter().copied().filter(|field| Some(*field) == named.as_deref());
    let only_this_model = said.contains("model");
    let mut fields: Vec<&'static str> = Vec::new();
    // What is said in other words is said on purpose, whichever names stand beside it.
    let otherwise = OTHER_NAMES.iter().filter(|(name, _)| said.contains(name)).map(|(_, field)| *field);
    for field in named.chain(otherwise).chain(found.into_iter().map(|(_, field)| field)) {
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    fields.into_iter().map(|field| Refused { field, only_this_model }).collect()
}

/// Where a text names a field, as a word of its own; words of the language count in quotes alone.
fn mention(said: &str, field: &str) -> Option<usize> {
    let is_word = WORDS.contains(&field);
    said.match_indices(field).map(|(place, _)| place).find(|place| {
        let before = said[..*place].chars().next_back();
        let after = said[place + field.len()..].chars().next();
        let is_part = |next: Option<char>| next.is_some_and(|next| next.is_alphanumeric() || next == '_');
        let is_quote = |next: Option<char>| matches!(next, Some('\'' | '"' | '`'));
        !is_part(before)
            && !is_part(after)
            && (!is_word || is_quote(before) && (is_quote(after) || after == Some('.')))
    })
}

/// The field that the error names in a place of its own.
fn parameter(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body.trim()).ok()?;
    let param = body["error"]["param"].as_str().or_else(|| body["param"].as_str())?;
    Some(param.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(body: &str) -> Option<&'static str> {
        refused(body).first().map(|refused| refused.field)
    }

    /// Each text is from the public thread that it is named after.
    #[test]
    fn refusals_name_their_field() {
        for (thread, body, field) in [
            (
                "danielmiessler/Fabric#1678",
                r#"{"message":"Unsupported parameter: 'temperature' is not supported with this model.","type":"invalid_request_error","param":"temperature","code":null}"#,
                "temperature",
            ),
            (
                "ITSpecialist111/ai_automation_suggester#38",
                r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
                "max_tokens",
            ),
            (
                "1Panel-dev/MaxKB#2912",
                r#"{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted', 'input': 800}]","type":"BadRequestError","param":null,"code":400}"#,
                "max_completion_tokens",
            ),
            (
                "FlowiseAI/Flowise#2866",
                r#"{"error":{"message":"Extra inputs are not permitted, field: 'stream_options'"}}"#,
                "stream_options",
            ),
            (
                "OpenHands/software-agent-sdk#987",
                r#"{"error":{"message":"Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}"#,
                "reasoning.summary",
            ),
            (
                "NousResearch/hermes-agent#24234",
                r#"{"error":{"message":"Encrypted content is not supported with this model","type":"invalid_request_error","param":"include","code":null}}"#,
                "include",
            ),
            (
                "Oaklight/llm-rosetta#289",
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"This model does not support the effort parameter."}}"#,
                "output_config",
            ),
            (
                "maximhq/bifrost#5934",
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior."}}"#,
                "thinking.type",
            ),
            (
                "openai/codex#8119",
                r#"{"error":{"message":"The encrypted content gAAA...c90= could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}"#,
                "encrypted_content",
            ),
            (
                "can1357/oh-my-pi#6046",
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#,
                "signature",
            ),
            (
                "lbjlaq/Antigravity-Manager#139",
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.129.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."}}"#,
                "signature",
            ),
            (
                "vellum-ai/vellum-assistant#37276",
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"adaptive thinking is not supported on this model"}}"#,
                "thinking",
            ),
            (
                "mnfst/modelparams.dev#214",
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"`temperature` may only be set to 1 when thinking is enabled or in adaptive mode."}}"#,
                "temperature",
            ),
            (
                "quelmap-inc/quelmap#4",
                r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}"#,
                "temperature",
            ),
        ] {
            assert_eq!(first(body), Some(field), "{thread}");
        }
    }

    #[test]
    fn a_complaint_about_a_value_is_no_refusal() {
        for body in [
            r#"{"error":{"message":"max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens"}}"#,
            r#"{"error":{"message":"temperature: range: 0..1"}}"#,
            r#"{"error":{"message":"Please include a message, and stop; the model is unknown"}}"#,
            "",
        ] {
            assert_eq!(first(body), None, "{body}");
        }
    }

    #[test]
    fn what_one_conversation_holds_is_not_remembered() {
        let refusals = Refusals::default();
        refusals.add(None, "signature");
        assert!(refusals.of("m").is_empty());
    }

    #[test]
    fn what_one_model_refuses_another_may_take() {
        let refusals = Refusals::default();
        refusals.add(Some("gpt-5"), "temperature");
        refusals.add(None, "stream_options");
        assert_eq!(refusals.of("gpt-5"), ["stream_options", "temperature"]);
        assert_eq!(refusals.of("gpt-4.1"), ["stream_options"]);
        let body = r#"{"error":{"message":"Extra inputs are not permitted, field: 'seed'"}}"#;
        assert_eq!(refused(body), [Refused { field: "seed", only_this_model: false }]);
    }
}
