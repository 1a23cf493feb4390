//! Checks of [`KeyStore`](crate::KeyStore).

use petasos_core::key::{KeyRecord, KeyScope};

use super::make::{at, tenant};
use crate::{Error, Store};

fn key(id: &str, tenant_name: &str, created: i64) -> KeyRecord {
    KeyRecord {
        id: id.parse().unwrap(),
        tenant: tenant(tenant_name),
        name: format!("The key {id}"),
        scopes: vec![KeyScope::SessionsRead, KeyScope::AgentsWrite],
        hash: format!("hash of {id}"),
        created_at: at(created),
        revoked_at: None,
    }
}

pub async fn a_key_is_found_by_its_hash(store: &impl Store) {
    let given = key("one", "default", 1);
    store.create_key(given.clone()).await.unwrap();
    assert_eq!(store.key_by_hash(&given.hash).await.unwrap(), Some(given));
    assert_eq!(store.key_by_hash("other").await.unwrap(), None);
}

pub async fn a_key_exists_once(store: &impl Store) {
    let first = key("one", "default", 1);
    store.create_key(first.clone()).await.unwrap();
    let mut same_hash = key("two", "default", 2);
    same_hash.hash = first.hash.clone();
    let mut same_id = key("one", "other", 2);
    same_id.hash = "another".into();
    for again in [same_hash, same_id] {
        let error = store.create_key(again).await.unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}");
        assert!(!error.to_string().contains(&first.hash), "a hash is not for error messages");
    }
    assert_eq!(store.keys(None).await.unwrap(), [first]);
}

pub async fn keys_are_listed_newest_first(store: &impl Store) {
    let (old, new, other) = (key("z", "default", 1), key("a", "default", 3), key("m", "other", 2));
    for key in [&old, &new, &other] {
        store.create_key(key.clone()).await.unwrap();
    }
    assert_eq!(store.keys(None).await.unwrap(), [new.clone(), other.clone(), old.clone()]);
    assert_eq!(store.keys(Some(&tenant("default"))).await.unwrap(), [new, old]);
    assert_eq!(store.keys(Some(&tenant("other"))).await.unwrap(), [other]);
    assert!(store.keys(Some(&tenant("none"))).await.unwrap().is_empty());
}

pub async fn a_revoked_key_stays_revoked(store: &impl Store) {
    let mut given = key("one", "default", 1);
    store.create_key(given.clone()).await.unwrap();
    store.revoke_key(&given.id, at(5)).await.unwrap();
    store.revoke_key(&given.id, at(6)).await.unwrap();
    given.revoked_at = Some(at(5));
    assert_eq!(store.key_by_hash(&given.hash).await.unwrap(), Some(given.clone()));
    assert_eq!(store.keys(None).await.unwrap(), [given]);
    let error = store.revoke_key(&"none".parse().unwrap(), at(7)).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
}
