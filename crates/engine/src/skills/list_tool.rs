//! `skills_list`: which skills there are.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use petasos_tools::{Audience, Invocation, Tool, ToolOutput};
use serde_json::{Map, Value, json};

use super::{Skills, unreadable};

/// Lists names and descriptions.
pub(super) struct SkillsList(pub(super) Arc<Skills>);

impl Tool for SkillsList {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "skills_list".to_owned(),
            description: "List the skills there are now, those learned in this session included.".to_owned(),
            input_schema: json!({ "type": "object", "properties": {} }).into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn is_of_use(&self, to: Audience) -> bool {
        self.0.are_of_use(to)
    }

    fn preview(&self, _: &Map<String, Value>) -> Option<String> {
        None
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let skills = Arc::clone(&self.0);
        async move { list(&skills, &invocation).await.map_or_else(ToolOutput::error, ToolOutput::ok) }.boxed()
    }
}

async fn list(skills: &Skills, invocation: &Invocation) -> Result<String, String> {
    let (agent, scope) = skills.whose(invocation).await?;
    let learned = match &scope {
        Some(scope) => skills.store.skills(scope).await.map_err(unreadable)?,
        None => Vec::new(),
    };
    let lines = skills.index(&agent, learned).await;
    let shown = lines.iter().map(|line| {
        let is_configured = agent.skills.iter().any(|skill| skill.name == line.name);
        let source = if is_configured { "configured" } else { "learned" };
        json!({ "name": line.name, "description": line.description, "source": source })
    });
    let of_plugins = skills.of_plugins.iter();
    let of_plugins = of_plugins
        .map(|skill| json!({ "name": skill.name, "description": skill.description, "source": "plugin" }));
    Ok(json!({ "skills": shown.chain(of_plugins).collect::<Vec<Value>>() }).to_string())
}
