//! Notes that an agent keeps for a user.

use futures_util::future::BoxFuture;
use petasos_core::memory::{Memories, MemoryEntry, UserScope};

use crate::error::Result;

/// The notes of every scope. They are few, so they are read and written as one.
pub trait MemoryStore: Send + Sync + 'static {
    /// All notes of a scope, in the order in which they were given.
    fn memories<'a>(&'a self, scope: &'a UserScope) -> BoxFuture<'a, Result<Memories>>;

    /// Replaces all notes of a scope. `Stale` unless they are at the revision that is expected.
    fn replace_memories<'a>(
        &'a self,
        scope: &'a UserScope,
        expected_revision: u64,
        entries: Vec<MemoryEntry>,
    ) -> BoxFuture<'a, Result<()>>;
}
