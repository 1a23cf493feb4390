//! What the stream of a session tells, read from the server's envelopes.

use petasos_models::presets::key_variable;
use serde_json::Value;

/// What an agent says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its message.
    Text,
    /// Its reasoning.
    Thinking,
}

/// How a piece of text relates to what came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// It goes on from there.
    Piece,
    /// What was said so far does not count; this is the new beginning.
    Afresh,
    /// It is the whole text, as it is in the log.
    Whole,
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Happening {
    /// The agent says something.
    Said { kind: Kind, extent: Extent, text: String },
    /// A tool is called.
    Called { tool: String, preview: String },
    /// A tool has answered.
    Answered { tool: String, text: String, is_error: bool },
    /// The session is idle.
    Idle(Stop),
    /// Something else, which is not shown.
    Other,
}

/// Why a session is idle.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stop {
    /// The turn has ended.
    End,
    /// It has ended early: `max_tokens` or `refusal`.
    CutShort(String),
    /// It was interrupted.
    Interrupted,
    /// It has failed.
    Failed { code: String, message: String },
    /// It waits for answers.
    Waits,
    /// There was no turn: a person answers in this session.
    Person,
}

impl Happening {
    /// Reads an envelope.
    pub(crate) fn read(envelope: &Value) -> Happening {
        let payload = &envelope["payload"];
        match envelope["type"].as_str().unwrap_or_default() {
            "agent.message" => said(Kind::Text, payload),
            "agent.thinking" => said(Kind::Thinking, payload),
            "agent.tool_use" | "agent.mcp_tool_use" | "agent.custom_tool_use" => {
                Happening::Called { tool: text_of(&payload["tool"]), preview: preview(payload) }
            }
            "agent.tool_result" | "agent.mcp_tool_result" => Happening::Answered {
                tool: text_of(&payload["tool"]),
                text: content(payload),
                is_error: payload["is_error"] == true,
            },
            "session.status_idle" => Happening::Idle(Stop::read(&payload["stop_reason"])),
            _ => Happening::Other,
        }
    }
}

impl Stop {
    /// The same in the words of somebody whose shell may have the key that a running server lacks. `server` is where
    /// that server is.
    pub(crate) fn in_server(self, server: Option<&str>, model: &str) -> Stop {
        match (self, server) {
            (Stop::Failed { code, message }, Some(url)) => {
                let cure = lacking(&code, url, model);
                Stop::Failed {
                    message: cure.map_or(message.clone(), |cure| format!("{cure}\n  {message}")),
                    code,
                }
            }
            (stop, _) => stop,
        }
    }

    /// Reads a stop reason.
    pub(crate) fn read(reason: &Value) -> Stop {
        match reason["type"].as_str().unwrap_or_default() {
            "error" => Stop::Failed { code: text_of(&reason["code"]), message: text_of(&reason["message"]) },
            "requires_action" => Stop::Waits,
            _ if reason["interrupted"] == true => Stop::Interrupted,
            _ => reason["reason"].as_str().map_or(Stop::End, |cut| Stop::CutShort(cut.to_owned())),
        }
    }
}

/// What a running server needs for a model that it could not call.
fn lacking(code: &str, url: &str, model: &str) -> Option<String> {
    let provider = model.split('/').next().unwrap_or_default();
    match (code, key_variable(provider)) {
        ("model_missing_key" | "model_unknown_provider", Some(variable)) => Some(format!(
            "the running server at {url} has no key for {provider}; set {variable} in its environment and restart it"
        )),
        ("model_unknown_provider", None) => Some(format!(
            "the running server at {url} has no provider {provider}; add it to its config.yaml and restart it"
        )),
        _ => None,
    }
}

fn said(kind: Kind, payload: &Value) -> Happening {
    let extent = match (payload["delta"] == true, payload["reset"] == true) {
        (true, true) => Extent::Afresh,
        (true, false) => Extent::Piece,
        (false, _) => Extent::Whole,
    };
    Happening::Said { kind, extent, text: content(payload) }
}

fn content(payload: &Value) -> String {
    let blocks = payload["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

/// What a call is about: the server's preview, else its arguments.
fn preview(payload: &Value) -> String {
    match payload["preview"].as_str() {
        Some(preview) => preview.to_owned(),
        None => arguments(&payload["input"]),
    }
}

/// Arguments as one line; nothing if there are none.
pub(crate) fn arguments(input: &Value) -> String {
    match input.as_object() {
        Some(fields) if !fields.is_empty() => input.to_string(),
        _ => String::new(),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn envelopes_are_read() {
        let read = |kind: &str, payload: Value| Happening::read(&json!({ "type": kind, "payload": payload }));
        let blocks = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        assert_eq!(
            read("agent.message", json!({ "content": blocks, "delta": true, "reset": true })),
            Happening::Said { kind: Kind::Text, extent: Extent::Afresh, text: "ab".to_owned() }
        );
        assert_eq!(
            read("agent.tool_use", json!({ "tool": "todo", "input": { "a": 1 } })),
            Happening::Called { tool: "todo".to_owned(), preview: r#"{"a":1}"#.to_owned() }
        );
        assert_eq!(read("agent.unheard_of", json!({})), Happening::Other);
    }

    #[test]
    fn stop_reasons_are_read() {
        assert_eq!(Stop::read(&json!({ "type": "end_turn" })), Stop::End);
        assert_eq!(Stop::read(&json!({ "type": "end_turn", "interrupted": true })), Stop::Interrupted);
        assert_eq!(
            Stop::read(&json!({ "type": "end_turn", "reason": "refusal" })),
            Stop::CutShort("refusal".to_owned())
        );
        assert_eq!(Stop::read(&json!({ "type": "requires_action", "event_ids": [] })), Stop::Waits);
    }
}
