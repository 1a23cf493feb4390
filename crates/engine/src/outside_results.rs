//! Results that came from outside (of the application's tools, answers, secrets): hooks may put another text in their
//! place before the model reads them. The log keeps what came, and what the hooks made of it.

use std::collections::HashMap;

use petasos_core::event::ToolResultTransformed;
use petasos_core::model::{AssistantPart, Message, ToolOutcome};
use petasos_core::step::Input;
use petasos_hooks::{HookEvent, ToolResult};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use crate::actor::Report;
use crate::surroundings::Surroundings;
use crate::tool_run::bounded;

/// Asks hooks for other texts in place of results that no model has read yet, and writes down what they say. `durations`
/// are those of the calls that are known.
pub(crate) async fn transform(
    around: &Surroundings,
    reports: &mpsc::UnboundedSender<Report>,
    ids: &[String],
    messages: &[Message],
    durations: &HashMap<String, u64>,
) -> Vec<ToolResultTransformed> {
    let mut transformed = Vec::new();
    let hooks = &around.shared.hooks;
    if ids.is_empty() || !hooks.wants(HookEvent::TransformToolResult) {
        return transformed;
    }
    for id in ids {
        let Some(outcome) = outcome_of(messages, id) else { continue };
        let input = input_of(messages, id);
        let duration_ms = durations.get(id).copied().unwrap_or_default();
        let (tool, text) = (outcome.name.as_str(), outcome.text.as_str());
        let result = ToolResult { tool_use_id: id, tool, input: &input, result: text, duration_ms };
        let Some(instead) = hooks.transform_tool_result(&around.turn, result).await else { continue };
        let text = bounded(instead, around.shared.max_tool_output_chars);
        let (written, is_written) = oneshot::channel();
        let input = Input::ResultTransformed { tool_use_id: id.clone(), text: text.clone() };
        // The model must not read what the log does not have. Nobody answers if the turn was stopped.
        if reports.send(Report::Note { input, written }).is_ok() {
            let _ = is_written.await;
        }
        transformed.push(ToolResultTransformed { tool_use_id: id.clone(), text });
    }
    transformed
}

/// The result of a call, as the model would read it.
fn outcome_of<'a>(messages: &'a [Message], id: &str) -> Option<&'a ToolOutcome> {
    let outcomes = messages.iter().rev().filter_map(|message| match message {
        Message::ToolResults(outcomes) => Some(outcomes),
        _ => None,
    });
    outcomes.flatten().find(|outcome| outcome.id == id)
}

/// The arguments of a call.
fn input_of(messages: &[Message], id: &str) -> Map<String, Value> {
    let parts = messages.iter().rev().filter_map(|message| match message {
        Message::Assistant(parts) => Some(parts),
        _ => None,
    });
    let found = parts.flatten().find_map(|part| match part {
        AssistantPart::ToolCall { id: call, input, .. } if call == id => Some(input.clone()),
        _ => None,
    });
    found.unwrap_or_default()
}
