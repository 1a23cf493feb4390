//! Notes that an agent keeps for a user: written by the `memory` tool or an application, read by sessions that start
//! later.

mod notes;
pub(crate) mod scan;
mod tool;

use petasos_core::ids::MemoryId;
use petasos_core::memory::{MemoryEntry, MemorySource, MemoryTarget, UserScope};
use petasos_store::Store;

use self::notes::{Change, Writer};
pub(crate) use self::notes::{of, used};
pub(crate) use self::tool::{MemoryTool, readable};
use crate::engine::{Engine, now};
use crate::error::{Error, Result};

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySettings {
    /// Characters of all notes about the work.
    pub memory_chars: usize,
    /// Characters of all notes about the user.
    pub user_chars: usize,
}

impl Default for MemorySettings {
    fn default() -> Self {
        MemorySettings { memory_chars: 2200, user_chars: 1375 }
    }
}

impl MemorySettings {
    /// The most characters of a target's notes.
    pub(crate) fn most(&self, target: MemoryTarget) -> usize {
        match target {
            MemoryTarget::Memory => self.memory_chars,
            MemoryTarget::User => self.user_chars,
        }
    }
}

/// What came of a change.
pub(crate) struct Edited {
    /// The notes as they are now.
    pub(crate) entries: Vec<MemoryEntry>,
    /// Why nothing was changed, if it was refused.
    pub(crate) outcome: std::result::Result<(), String>,
}

/// Changes the notes of a scope. They are durable when this returns.
pub(crate) async fn edit(
    store: &dyn Store,
    scope: &UserScope,
    change: impl Fn(&[MemoryEntry]) -> std::result::Result<Vec<MemoryEntry>, String>,
) -> petasos_store::Result<Edited> {
    loop {
        let current = store.memories(scope).await?;
        let entries = match change(&current.entries) {
            Ok(entries) => entries,
            Err(why) => return Ok(Edited { entries: current.entries, outcome: Err(why) }),
        };
        match store.replace_memories(scope, current.revision, entries.clone()).await {
            Ok(()) => return Ok(Edited { entries, outcome: Ok(()) }),
            // Another session of the same user wrote in between; the change applies to what it left.
            Err(petasos_store::Error::Stale { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}

impl Engine {
    /// The notes of a scope, oldest first.
    pub async fn memories(&self, scope: &UserScope) -> Result<Vec<MemoryEntry>> {
        self.agent(&scope.tenant, &scope.agent_id, None).await?;
        Ok(self.shared.store.memories(scope).await?.entries)
    }

    /// Writes a note for an application.
    pub async fn add_memory(
        &self,
        scope: &UserScope,
        target: MemoryTarget,
        content: &str,
    ) -> Result<MemoryEntry> {
        let settings = self.shared.memory;
        let changes = [Change::Add { content: content.to_owned() }];
        let edited = self
            .edit_memories(scope, |entries| {
                notes::apply(entries, target, &changes, by_application(), &settings)
            })
            .await?;
        // What was added is the last one.
        edited.into_iter().next_back().ok_or_else(|| not_found(""))
    }

    /// Writes a note anew for an application.
    pub async fn change_memory(
        &self,
        scope: &UserScope,
        id: &MemoryId,
        content: &str,
    ) -> Result<MemoryEntry> {
        self.memory(scope, id).await?;
        let settings = self.shared.memory;
        let edited = self
            .edit_memories(scope, |entries| {
                let mut entries = entries.to_vec();
                let index = place(&entries, id)?;
                notes::replace(&mut entries, index, content, by_application())?;
                MemoryTarget::ALL
                    .into_iter()
                    .try_for_each(|target| notes::refuse_over_limit(&entries, target, &settings))?;
                Ok(entries)
            })
            .await?;
        edited.into_iter().find(|entry| entry.id == *id).ok_or_else(|| not_found(id.as_str()))
    }

    /// One note of a scope.
    pub async fn memory(&self, scope: &UserScope, id: &MemoryId) -> Result<MemoryEntry> {
        let found = self.memories(scope).await?.into_iter().find(|entry| entry.id == *id);
        found.ok_or_else(|| not_found(id.as_str()))
    }

    /// Removes a note.
    pub async fn delete_memory(&self, scope: &UserScope, id: &MemoryId) -> Result<()> {
        self.memory(scope, id).await?;
        let edited = self.edit_memories(scope, |entries| {
            let mut entries = entries.to_vec();
            entries.retain(|entry| entry.id != *id);
            Ok(entries)
        });
        edited.await.map(drop)
    }

    /// Removes all notes of a scope.
    pub async fn delete_memories(&self, scope: &UserScope) -> Result<()> {
        self.edit_memories(scope, |_| Ok(Vec::new())).await.map(drop)
    }

    async fn edit_memories(
        &self,
        scope: &UserScope,
        change: impl Fn(&[MemoryEntry]) -> std::result::Result<Vec<MemoryEntry>, String>,
    ) -> Result<Vec<MemoryEntry>> {
        self.agent(&scope.tenant, &scope.agent_id, None).await?;
        let store = self.shared.store.as_ref();
        let Edited { entries, outcome } = edit(store, scope, change).await?;
        outcome.map_err(|problem| Error::Invalid { field: "content".to_owned(), problem })?;
        Ok(entries)
    }
}

fn by_application() -> Writer {
    Writer { source: MemorySource::Api, at: now() }
}

fn place(entries: &[MemoryEntry], id: &MemoryId) -> std::result::Result<usize, String> {
    entries.iter().position(|entry| entry.id == *id).ok_or_else(|| format!("There is no memory {id}."))
}

fn not_found(id: &str) -> Error {
    Error::NotFound { kind: "memory", id: id.to_owned() }
}
