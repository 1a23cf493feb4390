//! `clarify`: a question to the user. It runs nothing: the turn pauses until the answer comes.

use petasos_core::model::ToolSpec;
use serde_json::{Map, Value, json};

/// The tool's name.
pub const NAME: &str = "clarify";

const MAX_QUESTION_CHARS: usize = 20_000;
const MAX_CHOICES: usize = 20;

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The question.
    pub text: String,
    /// Offered answers; none for an open question.
    pub choices: Option<Vec<String>>,
}

/// How the model is told about it.
pub fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description:
            "Ask the user a question and wait for the answer. Use it when you cannot go on without it."
                .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "question": { "type": "string" },
                "choices": { "type": "array", "items": { "type": "string" } },
            },
            "required": ["question"],
        })
        .into(),
    }
}

/// Reads the arguments of a call.
pub fn parse(input: &Map<String, Value>) -> Result<Question, String> {
    let text = match input.get("question").and_then(Value::as_str).map(str::trim) {
        Some(text) if !text.is_empty() => text.to_owned(),
        _ => return Err("question must be a text that is not empty".to_owned()),
    };
    if text.chars().count() > MAX_QUESTION_CHARS {
        return Err(format!("question must have at most {MAX_QUESTION_CHARS} characters"));
    }
    let choices = match input.get("choices") {
        None | Some(Value::Null) => None,
        Some(Value::Array(choices)) if choices.len() <= MAX_CHOICES => {
            let texts = choices.iter().map(|choice| choice.as_str().map(str::to_owned));
            let texts: Option<Vec<String>> = texts.collect();
            Some(texts.ok_or("choices must be a list of texts")?).filter(|choices| !choices.is_empty())
        }
        Some(_) => return Err(format!("choices must be a list of at most {MAX_CHOICES} texts")),
    };
    Ok(Question { text, choices })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_or_named() {
        let read = |value: Value| parse(value.as_object().unwrap());
        let open = Question { text: "Which?".into(), choices: None };
        assert_eq!(read(json!({ "question": " Which? " })), Ok(open.clone()));
        assert_eq!(read(json!({ "question": "Which?", "choices": [] })), Ok(open));
        let closed = Question { text: "Which?".into(), choices: Some(vec!["a".into()]) };
        assert_eq!(read(json!({ "question": "Which?", "choices": ["a"] })), Ok(closed));
        assert!(read(json!({ "question": "" })).is_err());
        assert!(read(json!({ "question": "Which?", "choices": [1] })).is_err());
        assert!(read(json!({ "question": "Which?", "choices": "a" })).is_err());
    }
}
