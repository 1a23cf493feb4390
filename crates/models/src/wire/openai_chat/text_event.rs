//! Events that bring a piece of text and nothing else. Nearly all are like that, so they are read without making a tree
//! of them first.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Deserialize)]
struct TextEvent<'a> {
    #[serde(borrow)]
    choices: [TextChoice<'a>; 1],
    error: Option<IgnoredAny>,
    usage: Option<IgnoredAny>,
    x_groq: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct TextChoice<'a> {
    #[serde(borrow)]
    delta: TextDelta<'a>,
    finish_reason: Option<IgnoredAny>,
    message: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
    usage: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct TextDelta<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
    reasoning_content: Option<IgnoredAny>,
    reasoning: Option<IgnoredAny>,
    reasoning_details: Option<IgnoredAny>,
    extra_content: Option<IgnoredAny>,
    refusal: Option<IgnoredAny>,
    tool_calls: Option<IgnoredAny>,
    function_call: Option<IgnoredAny>,
}

/// The text of an event that brings nothing else.
pub(super) fn plain_text(data: &str) -> Option<Cow<'_, str>> {
    let TextEvent { choices: [choice], error: None, usage: None, x_groq: None } =
        serde_json::from_str(data).ok()?
    else {
        return None;
    };
    let TextChoice { delta, finish_reason: None, message: None, error: None, usage: None } = choice else {
        return None;
    };
    let TextDelta {
        content,
        reasoning_content: None,
        reasoning: None,
        reasoning_details: None,
        extra_content: None,
        refusal: None,
        tool_calls: None,
        function_call: None,
    } = delta
    else {
        return None;
    };
    Some(content)
}
