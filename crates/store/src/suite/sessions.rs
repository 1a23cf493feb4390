//! Checks of [`SessionStore`](crate::SessionStore), one session at a time.

use petasos_core::event::StopReason;
use petasos_core::session::Status;
use serde_json::json;

use super::make::{
    append, append_with_status, at, page, session, session_id, session_of, tagged, tenant, user_message,
    whole,
};
use crate::{Error, Expiring, SessionFilter, Store};

pub async fn a_new_session_is_found_as_it_was_given(store: &impl Store) {
    let mut given =
        tagged("full", 3, json!({ "a": 0.1, "b": ["x", null], "c": { "d": 18446744073709551615u64 } }));
    given.header.user_id = Some("user ü".into());
    given.view.title = Some("A \"title\"".into());
    given.view.stop_reason =
        Some(StopReason::RequiresAction { event_ids: vec!["toolu_1".into()], expires_at: None });
    given.view.usage.input_tokens = 12;
    given.view.model_calls = 3;
    given.view.archived_at = Some(at(9));
    for session in [session("plain", 1), given] {
        store.create_session(session.clone()).await.unwrap();
        let found = store.session(&session.header.tenant, &session.header.id).await.unwrap();
        assert_eq!(found, Some(session));
    }
    assert_eq!(store.session(&tenant("default"), &session_id("none")).await.unwrap(), None);
}

pub async fn a_session_exists_once(store: &impl Store) {
    let first = session("one", 1);
    store.create_session(first.clone()).await.unwrap();
    let mut second = session("one", 2);
    second.header.tenant = tenant("other");
    for again in [first.clone(), second] {
        let error = store.create_session(again).await.unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}");
    }
    assert_eq!(store.session(&first.header.tenant, &first.header.id).await.unwrap(), Some(first));
}

pub async fn a_deleted_session_takes_its_log_with_it(store: &impl Store) {
    let one = session("one", 1);
    store.create_session(one.clone()).await.unwrap();
    let mut first = append("one", 0, vec![user_message("hello")]);
    first.checkpoint = Some(vec![1, 2, 3]);
    store.append(first).await.unwrap();
    assert!(store.delete_session(&one.header.tenant, &one.header.id).await.unwrap());
    assert_eq!(store.session(&one.header.tenant, &one.header.id).await.unwrap(), None);
    assert!(store.events(&one.header.id, whole()).await.unwrap().events.is_empty());
    assert_eq!(store.checkpoint(&one.header.id).await.unwrap(), None);
    assert!(!store.delete_session(&one.header.tenant, &one.header.id).await.unwrap());
}

pub async fn a_deleted_session_frees_its_id(store: &impl Store) {
    let one = session("one", 1);
    store.create_session(one.clone()).await.unwrap();
    store.append(append("one", 0, vec![user_message("old"); 5])).await.unwrap();
    assert!(store.delete_session(&one.header.tenant, &one.header.id).await.unwrap());
    store.create_session(one.clone()).await.unwrap();
    assert_eq!(store.session(&one.header.tenant, &one.header.id).await.unwrap(), Some(one.clone()));
    let new = append("one", 0, vec![user_message("new")]);
    store.append(new.clone()).await.unwrap();
    assert_eq!(store.events(&one.header.id, whole()).await.unwrap().events, new.events);
}

pub async fn sessions_of_another_tenant_do_not_exist(store: &impl Store) {
    let ours = session_of("one", "user");
    store.create_session(ours.clone()).await.unwrap();
    let theirs = tenant("theirs");
    assert_eq!(store.session(&theirs, &ours.header.id).await.unwrap(), None);
    let listed = store.sessions(&theirs, SessionFilter::default(), page(10, None)).await.unwrap();
    assert!(listed.items.is_empty());
    assert!(!store.delete_session(&theirs, &ours.header.id).await.unwrap());
    assert_eq!(store.session(&ours.header.tenant, &ours.header.id).await.unwrap(), Some(ours));
}

pub async fn running_sessions_are_found_in_all_tenants(store: &impl Store) {
    let mut other = session("other", 2);
    other.header.tenant = tenant("other");
    for session in [session("one", 1), other, session("idle", 3)] {
        store.create_session(session).await.unwrap();
    }
    assert!(store.running_sessions().await.unwrap().is_empty());
    for id in ["one", "other"] {
        store.append(append_with_status(id, 0, Status::Running)).await.unwrap();
    }
    store.append(append_with_status("idle", 0, Status::Idle)).await.unwrap();
    let mut running = store.running_sessions().await.unwrap();
    running.sort();
    let expected = [(tenant("default"), session_id("one")), (tenant("other"), session_id("other"))];
    assert_eq!(running, expected);
    store.append(append_with_status("one", 1, Status::Idle)).await.unwrap();
    store.delete_session(&tenant("other"), &session_id("other")).await.unwrap();
    assert!(store.running_sessions().await.unwrap().is_empty());
}

pub async fn sessions_that_wait_for_a_time_are_found_in_the_order_of_their_times(store: &impl Store) {
    let waiting = |id: &str, sequence: u64, until: Option<i64>| {
        let mut append = append_with_status(id, sequence, Status::Idle);
        let (event_ids, expires_at) = (vec!["toolu_1".to_owned()], until.map(at));
        append.view.stop_reason = Some(StopReason::RequiresAction { event_ids, expires_at });
        append
    };
    for (number, id) in ["late", "soon", "never"].into_iter().enumerate() {
        store.create_session(session(id, number as i64)).await.unwrap();
    }
    for (id, until) in [("late", Some(200)), ("soon", Some(100)), ("never", None)] {
        store.append(waiting(id, 0, until)).await.unwrap();
    }
    let expiring = |id: &str, until: i64| Expiring {
        tenant: tenant("default"),
        session_id: session_id(id),
        at: at(until),
    };
    let found = store.expiring_sessions(10).await.unwrap();
    assert_eq!(found, [expiring("soon", 100), expiring("late", 200)]);
    assert_eq!(store.expiring_sessions(1).await.unwrap(), [expiring("soon", 100)]);
    store.append(append_with_status("soon", 1, Status::Running)).await.unwrap();
    assert_eq!(store.expiring_sessions(10).await.unwrap(), [expiring("late", 200)]);
}

pub async fn an_imported_session_comes_with_its_log_or_not_at_all(store: &impl Store) {
    let log = append("one", 0, vec![user_message("hello"), user_message("again")]);
    store.import_session(session("one", 0), log.clone()).await.unwrap();
    let found = store.session(&tenant("default"), &session_id("one")).await.unwrap().unwrap();
    assert_eq!((found.header, found.view), (session("one", 0).header, log.view.clone()));
    assert_eq!(store.events(&session_id("one"), whole()).await.unwrap().events, log.events);
    let again = store.import_session(session("one", 0), log).await;
    assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
    assert_eq!(store.events(&session_id("one"), whole()).await.unwrap().events.len(), 2);

    let late = store.import_session(session("two", 0), append("two", 1, vec![user_message("late")])).await;
    assert!(matches!(late, Err(Error::Stale { .. })), "{late:?}");
    assert_eq!(store.session(&tenant("default"), &session_id("two")).await.unwrap(), None);
}
