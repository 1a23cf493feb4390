//! What a provider attaches to be sent back goes back to that provider alone.

use petasos_core::model::{Answer, AnswerPart, AssistantPart, Message, Opaque, Request};

/// Notes on everything that an answer carries for its provider from whom it came.
pub(crate) fn mark(answer: &mut Answer, provider: &str) {
    for part in &mut answer.parts {
        if let AnswerPart::Thinking { opaque: Some(opaque), .. }
        | AnswerPart::ToolCall { opaque: Some(opaque), .. } = part
        {
            opaque.provider = Some(provider.to_owned());
        }
    }
}

/// Takes away what came from other providers.
pub(crate) fn keep_own(request: &mut Request, provider: &str) {
    let is_foreign =
        |opaque: &mut Opaque| opaque.provider.as_ref().is_some_and(|came_from| came_from != provider);
    for message in &mut request.messages {
        let Message::Assistant(parts) = message else { continue };
        for part in parts {
            if let AssistantPart::Thinking { opaque, .. } | AssistantPart::ToolCall { opaque, .. } = part {
                opaque.take_if(is_foreign);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use petasos_core::model::{Stop, Usage};
    use petasos_core::model_settings::ModelSettings;
    use serde_json::{Map, json};

    use super::*;

    fn opaque(provider: Option<&str>) -> Option<Opaque> {
        let provider = provider.map(str::to_owned);
        Some(Opaque { format: "openai-chat".to_owned(), provider, data: json!({ "id": "1" }) })
    }

    #[test]
    fn opaque_data_goes_back_to_its_own_provider_alone() {
        let mut answer = Answer {
            parts: vec![
                AnswerPart::Thinking { text: String::new(), opaque: opaque(None) },
                AnswerPart::ToolCall {
                    name: "look".to_owned(),
                    arguments: String::new(),
                    opaque: opaque(None),
                },
            ],
            usage: Usage::default(),
            stop: Stop::ToolUse,
            left_out: Vec::new(),
        };
        mark(&mut answer, "here");
        let parts = answer.parts.into_iter().map(|part| match part {
            AnswerPart::Thinking { text, opaque } => AssistantPart::Thinking { text, opaque },
            AnswerPart::Text(text) => AssistantPart::Text(text),
            AnswerPart::ToolCall { name, opaque, .. } => {
                AssistantPart::ToolCall { id: "tu_1".to_owned(), name, input: Map::new(), opaque }
            }
        });
        let unknown = AssistantPart::Thinking { text: String::new(), opaque: opaque(None) };
        let request = Request {
            model: "m-1".to_owned(),
            system: String::new(),
            messages: vec![Message::Assistant(parts.chain([unknown]).collect())],
            tools: Vec::new(),
            settings: ModelSettings::default(),
        };
        for (provider, expected) in [("here", [true, true, true]), ("elsewhere", [false, false, true])] {
            let mut request = request.clone();
            keep_own(&mut request, provider);
            let Message::Assistant(parts) = &request.messages[0] else { unreachable!() };
            let kept = parts.iter().map(|part| {
                matches!(
                    part,
                    AssistantPart::Thinking { opaque: Some(_), .. }
                        | AssistantPart::ToolCall { opaque: Some(_), .. }
                )
            });
            assert_eq!(kept.collect::<Vec<_>>(), expected, "{provider}");
        }
    }
}
