//! What agents keep: notes and skills.

use std::num::NonZero;

use serde::Deserialize;

/// Notes that agents keep about users and their work.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Memory {
    /// Characters of the notes about the work, for one agent with one user.
    pub(crate) memory_chars: Option<NonZero<usize>>,
    /// Characters of the notes about the user.
    pub(crate) user_chars: Option<NonZero<usize>>,
}

/// Bounds of skills.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Skills {
    /// Skills that an agent may learn with one user.
    pub(crate) learned: Option<NonZero<usize>>,
    /// Characters of a SKILL.md.
    pub(crate) content_chars: Option<NonZero<usize>>,
    /// Files that come with a learned skill.
    pub(crate) files: Option<NonZero<usize>>,
    /// Bytes of one of them.
    pub(crate) file_bytes: Option<NonZero<usize>>,
    /// Characters of the index of skills in the system prompt.
    pub(crate) index_chars: Option<NonZero<usize>>,
}
