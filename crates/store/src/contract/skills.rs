//! Skills that an agent has learned with a user.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::memory::{LearnedSkill, SkillSummary, UserScope};

use crate::error::Result;

/// A change of one skill, all of it or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillWrite {
    /// The skill.
    pub name: String,
    /// The revision that is changed; none for a skill that is new.
    pub expected_revision: Option<u64>,
    /// What it is for.
    pub description: String,
    /// The text of `SKILL.md`.
    pub content: String,
    /// Files to write, or to remove, by path. The others stay as they are.
    pub files: Vec<(String, Option<String>)>,
    /// When this happens.
    pub at: Timestamp,
}

/// The learned skills of every scope.
pub trait SkillStore: Send + Sync + 'static {
    /// All skills of a scope, by name.
    fn skills<'a>(&'a self, scope: &'a UserScope) -> BoxFuture<'a, Result<Vec<SkillSummary>>>;

    /// One skill, with the list of its files.
    fn skill<'a>(
        &'a self,
        scope: &'a UserScope,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<LearnedSkill>>>;

    /// What is in a file of a skill.
    fn skill_file<'a>(
        &'a self,
        scope: &'a UserScope,
        name: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>>;

    /// Keeps a new skill, or changes one. `AlreadyExists` if a new one is there already, `NotFound` if one to change is
    /// not, `Stale` if it is at another revision.
    fn write_skill<'a>(&'a self, scope: &'a UserScope, write: SkillWrite) -> BoxFuture<'a, Result<()>>;

    /// Removes a skill with its files. `false` if there was none.
    fn delete_skill<'a>(&'a self, scope: &'a UserScope, name: &'a str) -> BoxFuture<'a, Result<bool>>;
}
