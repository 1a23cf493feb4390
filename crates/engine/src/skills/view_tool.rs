//! `skill_view`: loads a skill, or one of its files.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use petasos_tools::{Audience, Invocation, Tool, ToolOutput};
use serde_json::{Map, Value, json};

use super::{Skills, unreadable};

/// The tool that skills are loaded with.
pub(crate) const NAME: &str = "skill_view";

/// Loads a skill.
pub(super) struct SkillView(pub(super) Arc<Skills>);

impl Tool for SkillView {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Load a skill, with the list of its files, or one of its files.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string" },
                    "file_path": { "type": "string", "description": "A file of the skill, such as references/notes.md" },
                },
                "required": ["name"],
            }).into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn is_of_use(&self, to: Audience) -> bool {
        self.0.are_of_use(to)
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        input.get("name")?.as_str().map(str::to_owned)
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let skills = Arc::clone(&self.0);
        async move { view(&skills, &invocation).await.map_or_else(ToolOutput::error, ToolOutput::ok) }.boxed()
    }
}

async fn view(skills: &Skills, invocation: &Invocation) -> Result<String, String> {
    let text = |name: &str| invocation.input.get(name).and_then(Value::as_str).map(str::trim);
    let name = text("name").filter(|name| !name.is_empty()).ok_or("name is missing.")?;
    let path = text("file_path").filter(|path| !path.is_empty());
    let sentence = |problem: String| format!("The skill {name} cannot be loaded: {problem}.");
    if let Some(skill) = skills.of_plugins.iter().find(|skill| skill.name == name) {
        return match path {
            Some(path) => skills.sources.file_beside(&skill.path, path).await.map_err(sentence),
            None => {
                let loaded = skills.sources.load_from(&skill.path).await.map_err(sentence)?;
                Ok(show(name, &loaded.content, &loaded.files))
            }
        };
    }
    let (agent, scope) = skills.whose(invocation).await?;
    if let Some(skill) = agent.skills.iter().find(|skill| skill.name == name) {
        return match path {
            Some(path) => skills.sources.file(skill, path).await.map_err(sentence),
            None => {
                let loaded = skills.sources.load(skill).await.map_err(sentence)?;
                Ok(show(name, &loaded.content, &loaded.files))
            }
        };
    }
    let missing = || format!("There is no skill {name}. Call skills_list to see which there are.");
    let scope = scope.ok_or_else(missing)?;
    let skill = skills.store.skill(&scope, name).await.map_err(unreadable)?.ok_or_else(missing)?;
    match path {
        Some(path) => {
            let file = skills.store.skill_file(&scope, name, path).await.map_err(unreadable)?;
            file.ok_or_else(|| format!("The skill {name} has no file {path}."))
        }
        None => {
            let files: Vec<String> = skill.files.into_iter().map(|file| file.path).collect();
            Ok(show(name, &skill.content, &files))
        }
    }
}

fn show(name: &str, content: &str, files: &[String]) -> String {
    json!({ "name": name, "content": content, "files": files }).to_string()
}
