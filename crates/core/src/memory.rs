//! What an agent keeps for one user across sessions: notes, and skills that it has learned.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, MemoryId, TenantId};
use crate::session::SessionHeader;

/// Whose notes and skills: those of one agent with one user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserScope {
    /// The tenant.
    pub tenant: TenantId,
    /// The agent.
    pub agent_id: AgentId,
    /// The user, as the application names them.
    pub user_id: String,
}

impl UserScope {
    /// The scope of a session; none if it has no user.
    pub fn of(header: &SessionHeader) -> Option<Self> {
        let user_id = header.lasting_user()?.to_owned();
        Some(UserScope { tenant: header.tenant.clone(), agent_id: header.agent_id.clone(), user_id })
    }
}

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryTarget {
    /// The work.
    #[default]
    Memory,
    /// The user.
    User,
}

impl MemoryTarget {
    /// All of them.
    pub const ALL: [MemoryTarget; 2] = [MemoryTarget::Memory, MemoryTarget::User];

    /// The target as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            MemoryTarget::Memory => "memory",
            MemoryTarget::User => "user",
        }
    }
}

/// Who wrote a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemorySource {
    /// The agent.
    Agent,
    /// An application.
    Api,
}

/// One note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryEntry {
    /// Names the note.
    pub id: MemoryId,
    /// What it is about.
    pub target: MemoryTarget,
    /// What it says.
    pub content: String,
    /// Who wrote it last.
    pub source: MemorySource,
    /// When it was first written.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
}

/// All notes of one scope.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memories {
    /// Counts the changes; 0 before the first.
    pub revision: u64,
    /// The notes, oldest first.
    pub entries: Vec<MemoryEntry>,
}

/// A learned skill as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillSummary {
    /// Unique in its scope.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// When it was learned.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A learned skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedSkill {
    /// What is listed of it.
    pub summary: SkillSummary,
    /// Counts the changes, from 1.
    pub revision: u64,
    /// The text of `SKILL.md`.
    pub content: String,
    /// The files that come with it, by path.
    pub files: Vec<SkillFile>,
}

/// A file of a skill, without what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Its path in the skill's directory.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
}
