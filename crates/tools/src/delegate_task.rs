//! `delegate_task`: work for subagents. Here are its arguments; the engine runs the subagents, each in a log of its own.

use petasos_core::model::ToolSpec;
use serde_json::{Map, Value, json};

/// The tool's name.
pub const NAME: &str = "delegate_task";

/// Tools that a subagent does not have: it has nobody to ask, remembers nothing for itself, and delegates no further.
pub const NOT_FOR_SUBAGENTS: [&str; 6] =
    [NAME, "clarify", "request_secret", "memory", "skill_manage", "execute_code"];

const MAX_TEXT_CHARS: usize = 20_000;

/// What one subagent is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What it is to reach.
    pub goal: String,
    /// What it needs to know.
    pub context: Option<String>,
    /// The tools that it has; none for those of the agent.
    pub tools: Option<Vec<String>>,
}

impl Task {
    /// What the subagent is told.
    pub fn message(&self) -> String {
        match &self.context {
            Some(context) => format!("{}\n\nWhat you need to know:\n{context}", self.goal),
            None => self.goal.clone(),
        }
    }
}

/// How the model is told about it.
pub fn spec() -> ToolSpec {
    let task = json!({
        "goal": { "type": "string" },
        "context": { "type": "string", "description": "all that it needs to know; it sees nothing else" },
        "tools": { "type": "array", "items": { "type": "string" } },
    });
    let mut properties = task.as_object().cloned().unwrap_or_default();
    let one = json!({ "type": "object", "properties": task, "required": ["goal"] });
    properties.insert("tasks".to_owned(), json!({ "type": "array", "items": one }));
    ToolSpec {
        name: NAME.to_owned(),
        description:
            "Give work to subagents and wait for their results: one goal, or several tasks side by side."
                .to_owned(),
        input_schema: json!({ "type": "object", "properties": properties }).into(),
    }
}

/// Reads the arguments of a call: `tasks`, or one task by itself.
pub fn parse(input: &Map<String, Value>, most: usize) -> Result<Vec<Task>, String> {
    let tasks = match input.get("tasks") {
        None | Some(Value::Null) => vec![task(input, "")?],
        Some(Value::Array(tasks)) => {
            let read = |(index, value): (usize, &Value)| match value {
                Value::Object(input) => task(input, &format!("tasks[{index}].")),
                _ => Err(format!("tasks[{index}] must be an object with a goal")),
            };
            tasks.iter().enumerate().map(read).collect::<Result<Vec<Task>, String>>()?
        }
        Some(_) => return Err("tasks must be a list of objects with a goal".to_owned()),
    };
    match tasks.len() {
        0 => Err("tasks is empty".to_owned()),
        count if count > most => Err(format!("{count} tasks are too many; at most {most} run side by side")),
        _ => Ok(tasks),
    }
}

fn task(input: &Map<String, Value>, place: &str) -> Result<Task, String> {
    let text = |field: &str| match input.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.chars().count() > MAX_TEXT_CHARS => {
            Err(format!("{place}{field} must have at most {MAX_TEXT_CHARS} characters"))
        }
        Some(Value::String(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("{place}{field} must be text")),
    };
    let tools = match input.get("tools") {
        None | Some(Value::Null) => None,
        Some(Value::Array(names)) => {
            let names: Option<Vec<String>> =
                names.iter().map(|name| name.as_str().map(str::to_owned)).collect();
            Some(names.ok_or_else(|| format!("{place}tools must be a list of names"))?)
        }
        Some(_) => return Err(format!("{place}tools must be a list of names")),
    };
    let goal = text("goal")?.ok_or_else(|| format!("{place}goal must say what to do"))?;
    Ok(Task { goal, context: text("context")?, tools })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Result<Vec<Task>, String> {
        parse(value.as_object().unwrap(), 2)
    }

    #[test]
    fn one_goal_or_several_tasks() {
        let alone = Task { goal: "Count.".into(), context: None, tools: None };
        assert_eq!(read(json!({ "goal": " Count. " })), Ok(vec![alone.clone()]));
        let two = json!({ "tasks": [{ "goal": "Count." }, { "goal": "Sum", "context": "1 2", "tools": ["todo"] }] });
        let told = Task { goal: "Sum".into(), context: Some("1 2".into()), tools: Some(vec!["todo".into()]) };
        assert_eq!(told.message(), "Sum\n\nWhat you need to know:\n1 2");
        assert_eq!(read(two), Ok(vec![alone, told]));
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (input, problem) in [
            (json!({}), "goal must say what to do"),
            (json!({ "tasks": [] }), "tasks is empty"),
            (json!({ "tasks": [{ "goal": "a" }, { "goal": 1 }] }), "tasks[1].goal must be text"),
            (json!({ "tasks": ["a"] }), "tasks[0] must be an object with a goal"),
            (json!({ "goal": "a", "tools": "todo" }), "tools must be a list of names"),
        ] {
            assert_eq!(read(input), Err(problem.to_owned()));
        }
        let three = json!({ "tasks": [{ "goal": "a" }, { "goal": "b" }, { "goal": "c" }] });
        assert!(read(three).unwrap_err().contains("at most 2"));
    }
}
