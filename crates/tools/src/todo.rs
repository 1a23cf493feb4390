//! `todo`: the agent's plan for the work at hand.
//!
//! The list lives in the log, as the arguments of the last call; the tool itself keeps nothing.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use serde_json::{Map, Value, json};

use crate::tool::{Invocation, Tool, ToolOutput};

const MAX_ITEMS: usize = 100;

/// Writes down the whole plan and reads it back.
pub(crate) struct Todo;

impl Tool for Todo {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "todo".to_owned(),
            description:
                "Write down the plan for work of several steps, and keep it current. Pass the whole list."
                    .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "todos": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "content": { "type": "string" },
                                "status": { "enum": ["pending", "in_progress", "completed", "cancelled"] },
                            },
                            "required": ["content"],
                        },
                    },
                },
                "required": ["todos"],
            })
            .into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        Some(format!("{} items", input.get("todos")?.as_array()?.len()))
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let output = write_down(&invocation.input).unwrap_or_else(ToolOutput::error);
        std::future::ready(output).boxed()
    }
}

fn write_down(input: &Map<String, Value>) -> Result<ToolOutput, String> {
    let todos =
        input.get("todos").and_then(Value::as_array).ok_or("todos must be a list of {content, status}")?;
    if todos.len() > MAX_ITEMS {
        return Err(format!("{} items are too many; at most {MAX_ITEMS} fit", todos.len()));
    }
    let mut lines = Vec::with_capacity(todos.len());
    for (index, todo) in todos.iter().enumerate() {
        let content = match todo {
            Value::String(content) => content.as_str(),
            todo => todo["content"].as_str().ok_or_else(|| format!("todos[{index}].content must be text"))?,
        };
        let mark = match todo["status"].as_str() {
            Some("completed") => "[x]",
            Some("in_progress") => "[>]",
            Some("cancelled") => "[-]",
            _ => "[ ]",
        };
        lines.push(format!("{mark} {content}"));
    }
    Ok(ToolOutput::ok(if lines.is_empty() { "The list is empty.".to_owned() } else { lines.join("\n") }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(input: Value) -> ToolOutput {
        write_down(input.as_object().unwrap()).unwrap_or_else(ToolOutput::error)
    }

    #[test]
    fn the_list_is_read_back() {
        let output =
            run(json!({ "todos": [{ "content": "plan", "status": "completed" }, { "content": "do" }] }));
        assert_eq!(output, ToolOutput::ok("[x] plan\n[ ] do"));
        assert_eq!(run(json!({ "todos": ["only text"] })), ToolOutput::ok("[ ] only text"));
    }

    #[test]
    fn wrong_arguments_are_named() {
        assert_eq!(run(json!({})), ToolOutput::error("todos must be a list of {content, status}"));
        assert_eq!(run(json!({ "todos": [{}] })), ToolOutput::error("todos[0].content must be text"));
        assert!(run(json!({ "todos": vec!["x"; 101] })).is_error);
    }
}
