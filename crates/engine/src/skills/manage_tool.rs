//! `skill_manage`: the agent writes down what it has learned.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use petasos_tools::{Audience, Invocation, Tool, ToolOutput};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::learned::SkillChange;
use super::patch::Patch;
use super::{Skills, unreadable};

/// Makes and changes learned skills.
pub(super) struct SkillManage(pub(super) Arc<Skills>);

#[derive(Deserialize)]
struct Arguments {
    action: Action,
    name: String,
    content: Option<String>,
    old_string: Option<String>,
    new_string: Option<String>,
    #[serde(default)]
    replace_all: bool,
    file_path: Option<String>,
    file_content: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Action {
    Create,
    Edit,
    Patch,
    Delete,
    WriteFile,
    RemoveFile,
}

impl Arguments {
    /// The change; none for a skill that is to go.
    fn read(self) -> Result<Option<SkillChange>, String> {
        let given = |value: Option<String>, field: &str| {
            value.ok_or_else(|| format!("{field} is missing, which this action needs."))
        };
        Ok(Some(match self.action {
            Action::Create => SkillChange::Create { content: given(self.content, "content")? },
            Action::Edit => SkillChange::Edit { content: given(self.content, "content")? },
            Action::Patch => {
                let old = given(self.old_string, "old_string")?;
                let new = given(self.new_string, "new_string")?;
                let patch = Patch { old, new, everywhere: self.replace_all };
                SkillChange::Patch { path: self.file_path, patch }
            }
            Action::WriteFile => SkillChange::WriteFile {
                path: given(self.file_path, "file_path")?,
                content: given(self.file_content.or(self.content), "file_content")?,
            },
            Action::RemoveFile => SkillChange::RemoveFile { path: given(self.file_path, "file_path")? },
            Action::Delete => return Ok(None),
        }))
    }
}

impl Tool for SkillManage {
    fn spec(&self) -> ToolSpec {
        let text = json!({ "type": "string" });
        ToolSpec {
            name: "skill_manage".to_owned(),
            description: "Write down how a kind of task is done, for later sessions with this user: after work that \
                          took several tries, or that will come again. Keep skills true: patch one that was wrong."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "action": { "enum": ["create", "patch", "edit", "delete", "write_file", "remove_file"] },
                    "name": { "type": "string", "description": "Lower-case words joined by hyphens" },
                    "content": {
                        "type": "string",
                        "description": "The whole SKILL.md for create and edit: ---, name, description, ---, then Markdown",
                    },
                    "old_string": text,
                    "new_string": text,
                    "replace_all": { "type": "boolean" },
                    "file_path": { "type": "string", "description": "In references/, templates/, assets/ or scripts/" },
                    "file_content": text,
                },
                "required": ["action", "name"],
            }).into(),
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
        Some(format!("{} {}", input.get("action")?.as_str()?, input.get("name")?.as_str()?))
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let skills = Arc::clone(&self.0);
        async move { manage(&skills, invocation).await.map_or_else(ToolOutput::error, ToolOutput::ok) }
            .boxed()
    }
}

async fn manage(skills: &Skills, invocation: Invocation) -> Result<String, String> {
    let (agent, scope) = skills.whose(&invocation).await?;
    let scope = scope.ok_or("This session has no user, so nothing can be kept for later.")?;
    let arguments: Arguments = serde_json::from_value(Value::Object(invocation.input))
        .map_err(|error| format!("The arguments are wrong: {error}."))?;
    let name = arguments.name.trim().to_owned();
    if agent.skills.iter().any(|skill| skill.name == name) {
        return Err(format!(
            "The skill {name} belongs to the agent and cannot be changed; choose another name."
        ));
    }
    let done = match arguments.read()? {
        Some(change) => {
            let changed = skills.change(&scope, &name, &change).await;
            changed.map_err(|problem| format!("The skill {name} was not changed: {problem}."))?;
            "saved"
        }
        None => match skills.store.delete_skill(&scope, &name).await.map_err(unreadable)? {
            true => "deleted",
            false => return Err(format!("There is no learned skill {name}.")),
        },
    };
    Ok(json!({ "success": true, "name": name, "message": format!("The skill is {done}.") }).to_string())
}
