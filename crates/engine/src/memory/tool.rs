//! `memory`: notes for later sessions.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::memory::{MemoryEntry, MemorySource, MemoryTarget, UserScope};
use petasos_core::model::ToolSpec;
use petasos_store::Store;
use petasos_tools::{Audience, Invocation, Tool, ToolOutput};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::notes::{self, Change, Writer};
use super::scan::scan;
use super::{Edited, MemorySettings, edit};
use crate::engine::now;

/// Changes the notes of the session's user.
pub(crate) struct MemoryTool {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: MemorySettings,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    target: MemoryTarget,
    #[serde(flatten)]
    single: Operation,
    #[serde(default)]
    operations: Vec<Operation>,
}

#[derive(Deserialize)]
struct Operation {
    action: Option<Action>,
    content: Option<String>,
    old_text: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Action {
    Add,
    Replace,
    Remove,
}

impl Operation {
    fn read(self) -> Result<Change, String> {
        let missing = |field: &str, action: &str| format!("{field} is missing, which {action} needs.");
        let content = |action: &str| self.content.clone().ok_or_else(|| missing("content", action));
        let old_text = |action: &str| self.old_text.clone().ok_or_else(|| missing("old_text", action));
        match self.action {
            None => Err("action is missing; it is add, replace or remove.".to_owned()),
            Some(Action::Add) => Ok(Change::Add { content: content("add")? }),
            Some(Action::Replace) => {
                Ok(Change::Replace { old_text: old_text("replace")?, content: content("replace")? })
            }
            Some(Action::Remove) => Ok(Change::Remove { old_text: old_text("remove")? }),
        }
    }
}

impl Tool for MemoryTool {
    fn spec(&self) -> ToolSpec {
        let operation = json!({
            "action": { "enum": ["add", "replace", "remove"] },
            "content": { "type": "string", "description": "The note, for add and replace" },
            "old_text": { "type": "string", "description": "A part of the note to replace or remove that no other contains" },
        });
        let mut properties = json!({
            "target": { "enum": ["memory", "user"], "description": "memory: about the work; user: about the user" },
            "operations": {
                "type": "array",
                "description": "Several changes, all of them or none",
                "items": { "type": "object", "properties": operation, "required": ["action"] },
            },
        });
        if let (Value::Object(all), Value::Object(operation)) = (&mut properties, operation) {
            all.extend(operation);
        }
        ToolSpec {
            name: "memory".to_owned(),
            description: "Keep short notes for later sessions with this user: preferences, corrections, facts about \
                          their work. Not for what only matters now, and never for secrets. Later sessions start \
                          with the notes; this one does not change."
                .to_owned(),
            input_schema: json!({ "type": "object", "properties": properties, "required": ["target"] }).into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::SideEffect
    }

    fn asks_by_default(&self) -> bool {
        false
    }

    fn is_of_use(&self, to: Audience) -> bool {
        to.has_user
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        let text = |name: &str| input.get(name).and_then(Value::as_str);
        match input.get("operations").and_then(Value::as_array) {
            Some(operations) if !operations.is_empty() => Some(format!("{} changes", operations.len())),
            _ => Some(format!("{} {}", text("action")?, text("content").or(text("old_text"))?)),
        }
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let (store, settings) = (Arc::clone(&self.store), self.settings);
        async move { run(store.as_ref(), settings, invocation).await.unwrap_or_else(ToolOutput::error) }
            .boxed()
    }
}

async fn run(
    store: &dyn Store,
    settings: MemorySettings,
    invocation: Invocation,
) -> Result<ToolOutput, String> {
    let Invocation { tenant, agent_id, user_id, input, .. } = invocation;
    let user_id = user_id.ok_or("This session has no user, so nothing can be kept for later.")?;
    let scope = UserScope { tenant, agent_id, user_id };
    let arguments: Arguments = serde_json::from_value(Value::Object(input))
        .map_err(|error| format!("The arguments are wrong: {error}."))?;
    let target = arguments.target;
    let operations =
        if arguments.operations.is_empty() { vec![arguments.single] } else { arguments.operations };
    let changes = operations.into_iter().map(Operation::read).collect::<Result<Vec<_>, _>>()?;
    let writer = Writer { source: MemorySource::Agent, at: now() };
    let edited =
        edit(store, &scope, |entries| notes::apply(entries, target, &changes, writer, &settings)).await;
    let Edited { entries, outcome } = edited.map_err(|error| {
        tracing::error!(%error, "notes could not be kept");
        "The notes could not be written; try again later.".to_owned()
    })?;
    Ok(match outcome {
        Ok(()) => ToolOutput::ok(show(&entries, target, &settings, None)),
        Err(why) => ToolOutput::error(show(&entries, target, &settings, Some(&why))),
    })
}

/// The notes of a target as the model reads them, so that it can put them in order.
fn show(
    entries: &[MemoryEntry],
    target: MemoryTarget,
    settings: &MemorySettings,
    error: Option<&str>,
) -> String {
    let shown: Vec<String> = notes::of(entries, target).map(|entry| readable(&entry.content)).collect();
    let (used, most) = (notes::used(entries, target), settings.most(target));
    let mut result = json!({ "success": error.is_none() });
    if let Some(error) = error {
        result["error"] = error.into();
    }
    result["target"] = target.as_str().into();
    result["entries"] = shown.into();
    result["usage"] = format!("{used} of {most} characters").into();
    result.to_string()
}

/// A note as a model may read it. One that could not be written today is not repeated.
pub(crate) fn readable(content: &str) -> String {
    match scan(content) {
        None => content.to_owned(),
        Some(finding) => format!("[A note was left out: {}.]", finding.describe()),
    }
}
