//! Finished answers whose tool calls need mending, whichever format they came in.

use std::sync::Arc;

use petasos_core::model::{Answer, AnswerPart, ToolSpec};
use serde_json::Value;

/// The namespace that models of OpenAI put in front of a tool's name when a server does not take it off.
const NAMESPACE: &str = "functions.";

/// Takes a namespace off the names of calls, and a second encoding off their arguments.
pub(crate) fn settle_calls(answer: &mut Answer, offered: &[Arc<ToolSpec>]) {
    let is_offered = |name: &str| offered.iter().any(|spec| spec.name == name);
    for part in &mut answer.parts {
        let AnswerPart::ToolCall { name, arguments, .. } = part else { continue };
        if let Some(stripped) = name.strip_prefix(NAMESPACE)
            && is_offered(stripped)
            && !is_offered(name)
        {
            *name = stripped.to_owned();
        }
        if let Some(inner) = decoded(arguments) {
            *arguments = inner;
        }
    }
}

/// The object that a JSON string holds as text.
fn decoded(arguments: &str) -> Option<String> {
    if !arguments.trim_start().starts_with('"') {
        return None;
    }
    let inner: String = serde_json::from_str(arguments).ok()?;
    serde_json::from_str::<Value>(&inner).is_ok_and(|value| value.is_object()).then_some(inner)
}

#[cfg(test)]
mod tests {
    use petasos_core::model::{Stop, Usage};
    use serde_json::json;

    use super::*;

    fn settled(name: &str, arguments: &str) -> (String, String) {
        let tool = |name: &str| {
            let input_schema = json!({ "type": "object" }).into();
            Arc::new(ToolSpec { name: name.to_owned(), description: String::new(), input_schema })
        };
        let call =
            AnswerPart::ToolCall { name: name.to_owned(), arguments: arguments.to_owned(), opaque: None };
        let mut answer =
            Answer { parts: vec![call], usage: Usage::default(), stop: Stop::ToolUse, left_out: Vec::new() };
        settle_calls(&mut answer, &[tool("terminal"), tool("functions.own"), tool("own")]);
        let Some(AnswerPart::ToolCall { name, arguments, .. }) = answer.parts.pop() else { unreachable!() };
        (name, arguments)
    }

    #[test]
    fn a_namespace_is_taken_off_if_only_the_rest_is_offered() {
        for (name, expected) in [
            ("functions.terminal", "terminal"),
            ("functions.own", "functions.own"),
            ("functions.other", "functions.other"),
            ("terminal", "terminal"),
        ] {
            assert_eq!(settled(name, "{}").0, expected);
        }
    }

    #[test]
    fn arguments_that_were_encoded_twice_are_decoded_once_more() {
        let twice = serde_json::to_string(r#"{"path":"a \"b\""}"#).unwrap();
        assert_eq!(settled("terminal", &twice).1, r#"{"path":"a \"b\""}"#);
        for untouched in ["\"just text\"", "\"[1]\"", "{\"a\":", "", "\"cut"] {
            assert_eq!(settled("terminal", untouched).1, untouched);
        }
    }
}
