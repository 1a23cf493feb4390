//! Checks of [`MemoryStore`](crate::MemoryStore).

use petasos_core::memory::{Memories, MemoryEntry, MemorySource, MemoryTarget};

use super::make::{at, scope, session_of};
use crate::{Error, Store};

fn entry(id: &str, content: &str) -> MemoryEntry {
    MemoryEntry {
        id: id.parse().unwrap(),
        target: MemoryTarget::User,
        content: content.into(),
        source: MemorySource::Agent,
        created_at: at(1),
        updated_at: at(2),
    }
}

pub async fn notes_are_read_as_they_were_given(store: &impl Store) {
    let anna = scope("default", "helper", "anna");
    assert_eq!(store.memories(&anna).await.unwrap(), Memories::default());
    let entries = vec![entry("mem_2", "drinks \"tea\"\n\u{0}ü"), entry("mem_1", "x")];
    store.replace_memories(&anna, 0, entries.clone()).await.unwrap();
    assert_eq!(store.memories(&anna).await.unwrap(), Memories { revision: 1, entries });
    store.replace_memories(&anna, 1, Vec::new()).await.unwrap();
    assert_eq!(store.memories(&anna).await.unwrap(), Memories { revision: 2, entries: Vec::new() });
}

pub async fn a_stale_writer_of_notes_is_refused(store: &impl Store) {
    let anna = scope("default", "helper", "anna");
    store.replace_memories(&anna, 0, vec![entry("mem_1", "first")]).await.unwrap();
    for expected in [0, 2] {
        let stale = store.replace_memories(&anna, expected, vec![entry("mem_2", "second")]).await;
        assert!(matches!(stale, Err(Error::Stale { actual: 1, .. })), "{stale:?}");
    }
    assert_eq!(store.memories(&anna).await.unwrap().entries, [entry("mem_1", "first")]);
}

pub async fn notes_belong_to_one_scope(store: &impl Store) {
    store.replace_memories(&scope("default", "helper", "anna"), 0, vec![entry("mem_1", "x")]).await.unwrap();
    for (tenant, agent, user) in
        [("default", "helper", "ben"), ("default", "writer", "anna"), ("other", "helper", "anna")]
    {
        let other = scope(tenant, agent, user);
        assert_eq!(store.memories(&other).await.unwrap(), Memories::default());
    }
}

pub async fn notes_outlive_the_sessions(store: &impl Store) {
    let anna = scope("default", "helper", "anna");
    store.create_session(session_of("one", "anna")).await.unwrap();
    store.replace_memories(&anna, 0, vec![entry("mem_1", "x")]).await.unwrap();
    assert!(store.delete_session(&anna.tenant, &"one".parse().unwrap()).await.unwrap());
    assert_eq!(store.memories(&anna).await.unwrap().entries.len(), 1);
}
