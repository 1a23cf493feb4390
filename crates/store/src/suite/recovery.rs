//! Checks of [`RecoveryStore`](crate::RecoveryStore).

use petasos_core::event::{ModelStarted, Payload, UserSteer};
use petasos_core::recovery::WorkKind;
use petasos_core::session::Status;

use super::deliveries::{append_with, attempted, event};
use super::make::{append, append_with_status, at, session, tenant};
use crate::{AfterAttempt, LastEnd, LastStart, StartNote, Store, WorkFound, WorkKey, WorkRecord, WorkState};

fn record(id: &str, state: WorkState) -> WorkRecord {
    let key = WorkKey { kind: WorkKind::Delivery, tenant: tenant("default"), id: id.to_owned() };
    let found = WorkFound { key, session_id: Some("one".parse().unwrap()), position: "0/2".to_owned() };
    WorkRecord { found, starts: 2, state, told_before: true, since: at(7) }
}

pub async fn the_end_of_a_start_is_what_it_said_last(store: &impl Store) {
    let end = || async { store.last_start().await.unwrap().end };
    assert_eq!(end().await, LastEnd::Clean, "nothing died before the first start");
    store.record_start(at(1), Vec::new()).await.unwrap();
    assert_eq!(end().await, LastEnd::DiedEarly);
    store.note_start(StartNote::Outlived).await.unwrap();
    assert_eq!(end().await, LastEnd::DiedLate);
    store.note_start(StartNote::StopsCleanly).await.unwrap();
    assert_eq!(end().await, LastEnd::Clean);
    store.record_start(at(2), Vec::new()).await.unwrap();
    assert_eq!(end().await, LastEnd::DiedEarly, "each start speaks for itself");
}

pub async fn records_of_work_are_read_as_they_were_given(store: &impl Store) {
    let (one, two) = (record("a", WorkState::Counted), record("b", WorkState::Waiting));
    store.record_start(at(1), vec![one.clone(), two.clone()]).await.unwrap();
    let work = || async { store.last_start().await.unwrap().work };
    assert_eq!(work().await, [one.clone(), two.clone()]);
    let tried = WorkRecord { state: WorkState::Trying, ..two.clone() };
    store.keep_work(tried.clone()).await.unwrap();
    assert_eq!(work().await, [one.clone(), tried]);
    store.forget_work(two.found.key).await.unwrap();
    assert_eq!(work().await, [one]);
    store.record_start(at(2), Vec::new()).await.unwrap();
    let nothing = LastStart { end: LastEnd::DiedEarly, work: Vec::new() };
    assert_eq!(store.last_start().await.unwrap(), nothing, "a start replaces what the last one left");
}

pub async fn a_turn_is_found_where_it_last_made_progress(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    store.create_session(session("idle", 0)).await.unwrap();
    store.append(append_with_status("one", 0, Status::Running)).await.unwrap();
    let found = || async { store.work_under_way(at(9000), 10).await.unwrap() };
    let place = |found: &[WorkFound]| (found.len(), found[0].key.kind, found[0].position.clone());
    assert_eq!(place(&found().await), (1, WorkKind::Wake, "1".to_owned()));
    let mut call =
        append("one", 1, vec![Payload::ModelStarted(ModelStarted { call: 1, takes_up: Vec::new() })]);
    call.view.status = Status::Running;
    store.append(call).await.unwrap();
    assert_eq!(place(&found().await), (1, WorkKind::ModelCall, "2".to_owned()));
    let mut steer = append("one", 2, vec![Payload::UserSteer(UserSteer { message: "quick".to_owned() })]);
    steer.view.status = Status::Running;
    store.append(steer).await.unwrap();
    let found = found().await;
    assert_eq!(place(&found), (1, WorkKind::ModelCall, "2".to_owned()), "what a user sends is no progress");
    assert_eq!(found[0].session_id, Some("one".parse().unwrap()));
}

pub async fn a_delivery_is_found_while_it_is_due_and_moves_on_with_its_attempts(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    append_with(store, "one", 0, vec![event("one0", "one", 0), event("one1", "one", 1)]).await;
    let found = |now: i64| async move { store.work_under_way(at(now), 10).await.unwrap() };
    let first = found(9000).await;
    assert_eq!((first.len(), first[0].key.id.as_str()), (1, "one0"));
    assert_eq!(found(9001).await, first);
    store.record_attempt(attempted("one0", AfterAttempt::Again(at(20_000)), 9002)).await.unwrap();
    assert_eq!(found(9003).await, []);
    let again = found(20_000).await;
    assert_eq!(again[0].key, first[0].key);
    assert_ne!(again[0].position, first[0].position);
}
