//! Skills that an agent has learned with a user, as the tool and applications change them.

use petasos_core::memory::{LearnedSkill, SkillSummary, UserScope};
use petasos_store::SkillWrite;

use super::patch::Patch;
use super::{Skills, document, unreadable};
use crate::engine::{Engine, now};
use crate::error::{Error, Result};

/// A change of a learned skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SkillChange {
    /// Makes it.
    Create { content: String },
    /// Replaces its text.
    Edit { content: String },
    /// Replaces a part of its text, or of one of its files.
    Patch { path: Option<String>, patch: Patch },
    /// Writes one of its files.
    WriteFile { path: String, content: String },
    /// Removes one of its files.
    RemoveFile { path: String },
}

impl Skills {
    /// Changes a learned skill. It is durable when this returns; the error is for the model or the caller.
    pub(super) async fn change(
        &self,
        scope: &UserScope,
        name: &str,
        change: &SkillChange,
    ) -> std::result::Result<(), String> {
        loop {
            let current = self.store.skill(scope, name).await.map_err(unreadable)?;
            let write = self.plan(scope, name, current, change).await?;
            match self.store.write_skill(scope, write).await {
                Ok(()) => return Ok(()),
                // Another session of the same user wrote in between; the change applies to what it left.
                Err(
                    petasos_store::Error::Stale { .. }
                    | petasos_store::Error::AlreadyExists { .. }
                    | petasos_store::Error::NotFound { .. },
                ) => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
    }

    async fn plan(
        &self,
        scope: &UserScope,
        name: &str,
        current: Option<LearnedSkill>,
        change: &SkillChange,
    ) -> std::result::Result<SkillWrite, String> {
        let (content, files) = match (change, &current) {
            (SkillChange::Create { .. }, Some(_)) => {
                return Err(format!("there is a skill {name} already; change it with edit or patch"));
            }
            (SkillChange::Create { content }, None) => {
                let count = self.store.skills(scope).await.map_err(unreadable)?.len();
                if count >= self.settings.learned {
                    return Err(format!(
                        "there are {count} learned skills, the most that are kept; delete one first"
                    ));
                }
                (content.clone(), Vec::new())
            }
            (_, None) => return Err(format!("there is no learned skill {name}")),
            (SkillChange::Edit { content }, Some(_)) => (content.clone(), Vec::new()),
            (SkillChange::Patch { path: None, patch }, Some(skill)) => {
                (patch.apply(&skill.content)?, Vec::new())
            }
            (SkillChange::Patch { path: Some(path), patch }, Some(skill)) => {
                let file = self.store.skill_file(scope, name, path).await.map_err(unreadable)?;
                let file = patch.apply(&file.ok_or_else(|| format!("there is no file {path}"))?)?;
                (skill.content.clone(), vec![(path.clone(), Some(file))])
            }
            (SkillChange::WriteFile { path, content }, Some(skill)) => {
                let is_new = skill.files.iter().all(|file| file.path != *path);
                if is_new && skill.files.len() >= self.settings.files {
                    return Err(format!("a skill may have {} files; remove one first", self.settings.files));
                }
                (skill.content.clone(), vec![(path.clone(), Some(content.clone()))])
            }
            (SkillChange::RemoveFile { path }, Some(skill)) => {
                if skill.files.iter().all(|file| file.path != *path) {
                    return Err(format!("there is no file {path}"));
                }
                (skill.content.clone(), vec![(path.clone(), None)])
            }
        };
        for (path, text) in &files {
            document::file(path, text.as_deref().unwrap_or_default(), &self.settings)?;
        }
        let description = document::learned(name, &content, &self.settings)?;
        let expected_revision = current.map(|skill| skill.revision);
        Ok(SkillWrite { name: name.to_owned(), expected_revision, description, content, files, at: now() })
    }
}

impl Engine {
    /// The learned skills of a scope, by name.
    pub async fn learned_skills(&self, scope: &UserScope) -> Result<Vec<SkillSummary>> {
        self.agent(&scope.tenant, &scope.agent_id, None).await?;
        Ok(self.shared.store.skills(scope).await?)
    }

    /// One learned skill.
    pub async fn learned_skill(&self, scope: &UserScope, name: &str) -> Result<LearnedSkill> {
        self.agent(&scope.tenant, &scope.agent_id, None).await?;
        let skill = self.shared.store.skill(scope, name).await?;
        skill.ok_or_else(|| not_found(name))
    }

    /// What is in a file of a learned skill.
    pub async fn learned_skill_file(&self, scope: &UserScope, name: &str, path: &str) -> Result<String> {
        self.learned_skill(scope, name).await?;
        let file = self.shared.store.skill_file(scope, name, path).await?;
        file.ok_or_else(|| Error::NotFound { kind: "file", id: path.to_owned() })
    }

    /// Writes the text of a learned skill anew, for an application.
    pub async fn change_learned_skill(
        &self,
        scope: &UserScope,
        name: &str,
        content: &str,
    ) -> Result<LearnedSkill> {
        self.learned_skill(scope, name).await?;
        let change = SkillChange::Edit { content: content.to_owned() };
        let changed = self.shared.skills.change(scope, name, &change).await;
        changed.map_err(|problem| Error::InvalidSkill { name: name.to_owned(), problem })?;
        self.learned_skill(scope, name).await
    }

    /// Removes a learned skill with its files.
    pub async fn delete_learned_skill(&self, scope: &UserScope, name: &str) -> Result<()> {
        self.agent(&scope.tenant, &scope.agent_id, None).await?;
        match self.shared.store.delete_skill(scope, name).await? {
            true => Ok(()),
            false => Err(not_found(name)),
        }
    }
}

fn not_found(name: &str) -> Error {
    Error::NotFound { kind: "learned skill", id: name.to_owned() }
}
