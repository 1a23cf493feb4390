//! Checks of [`RunStore`](crate::RunStore).

use petasos_core::delivery::{Attempt, NewDelivery, Subject};
use petasos_core::event::{Payload, RunOpened, RunSettled};
use petasos_core::run::{
    RunError, RunErrorCode, RunGiven, RunJob, RunOutcome, RunRecord, RunSession, RunStatus,
};
use serde_json::{Map, json};

use super::make::{append, at, page, session, tenant};
use crate::{AfterAttempt, Attempted, DeliveryFilter, Error, NewRun, RunAdded, RunEnd, Store};

fn object(value: serde_json::Value) -> Map<String, serde_json::Value> {
    serde_json::from_value(value).unwrap()
}

/// An accepted run of the routine `kyc` in the session of the same number.
fn run(number: i64) -> RunRecord {
    let job = RunJob {
        title: None,
        description: Some("Decide.".into()),
        output_schema: json!({ "type": "object" }),
        timeout_seconds: 60.into(),
        max_model_calls: 5,
        on_tool_error: Default::default(),
    };
    RunRecord {
        id: format!("run_{number}").parse().unwrap(),
        tenant: tenant("default"),
        routine_id: "kyc".parse().unwrap(),
        session_id: format!("session_{number}").parse().unwrap(),
        idempotency_key: format!("key {number}"),
        given: RunGiven {
            fingerprint: "f".into(),
            input: object(json!({ "n": 0.1, "t": "\u{0}ü" })),
            metadata: object(json!({ "ticket": "OPS-441" })),
            job,
            trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".into(),
            callback_url: None,
            session: RunSession::Ephemeral,
        },
        status: RunStatus::Accepted,
        outcome: None,
        created_at: at(number),
        deadline: at(1000 + number),
        started_at: None,
        completed_at: None,
    }
}

async fn add(store: &impl Store, run: &RunRecord) -> RunAdded {
    let session = Some(session(run.session_id.as_str(), 0));
    store.add_run(NewRun { run: run.clone(), session, customer: None, callback: None }).await.unwrap()
}

fn opened(run: &RunRecord) -> Payload {
    let (run_id, routine_id, job) = (run.id.clone(), run.routine_id.clone(), run.given.job.clone());
    Payload::RunOpened(RunOpened { run_id, routine_id, job })
}

fn callback(run: &RunRecord) -> NewDelivery {
    NewDelivery {
        id: "dlv_1".parse().unwrap(),
        tenant: run.tenant.clone(),
        subject: Subject::Callback { run_id: run.id.clone(), session_id: run.session_id.clone() },
        url: "https://example.com/".into(),
        webhook_id: run.id.to_string(),
        body: b"{}".to_vec(),
        created_at: at(7),
        replay_of: None,
    }
}

fn succeeded() -> RunOutcome {
    RunOutcome::Succeeded { output: object(json!({ "decision": "approved" })) }
}

fn timed_out() -> RunOutcome {
    RunOutcome::Failed { error: RunError::new(RunErrorCode::Timeout, "too long").with("n", 1) }
}

pub async fn a_run_comes_with_its_session_and_once_for_a_key(store: &impl Store) {
    let (first, default) = (run(1), tenant("default"));
    assert_eq!(add(store, &first).await, RunAdded::Added);
    assert_eq!(store.run(&default, &first.id).await.unwrap(), Some(first.clone()));
    assert!(store.session(&default, &first.session_id).await.unwrap().is_some());
    let again = RunRecord { idempotency_key: first.idempotency_key.clone(), ..run(2) };
    assert_eq!(add(store, &again).await, RunAdded::Known(Box::new(first.clone())));
    assert!(store.session(&default, &again.session_id).await.unwrap().is_none());
    let found = store.run_by_key(&default, &first.routine_id, &first.idempotency_key).await.unwrap();
    assert_eq!(found, Some(first.clone()));
    // Another routine, and another tenant, have keys of their own.
    let elsewhere = RunRecord { routine_id: "other".parse().unwrap(), ..again.clone() };
    assert_eq!(add(store, &elsewhere).await, RunAdded::Added);
    assert_eq!(store.run(&tenant("other"), &first.id).await.unwrap(), None);
}

pub async fn a_run_moves_on_with_its_log(store: &impl Store) {
    let (run, default) = (run(1), tenant("default"));
    add(store, &run).await;
    let id = run.session_id.as_str();
    store.append(append(id, 0, vec![opened(&run)])).await.unwrap();
    let running = store.run(&default, &run.id).await.unwrap().unwrap();
    assert_eq!((running.status, running.started_at), (RunStatus::Running, Some(at(1000))));
    let settled = RunSettled { run_id: run.id.clone(), outcome: succeeded() };
    store.append(append(id, 1, vec![Payload::RunSettled(settled.clone())])).await.unwrap();
    let done = store.run(&default, &run.id).await.unwrap().unwrap();
    assert_eq!((done.status, done.completed_at), (RunStatus::Succeeded, Some(at(2000))));
    assert_eq!(done.outcome, Some(succeeded()));
    // It is settled once.
    let late = RunSettled { outcome: timed_out(), ..settled };
    store.append(append(id, 2, vec![Payload::RunSettled(late)])).await.unwrap();
    assert_eq!(store.run(&default, &run.id).await.unwrap(), Some(done));
}

pub async fn a_run_that_does_not_wait_cannot_start(store: &impl Store) {
    let (run, default) = (run(1), tenant("default"));
    add(store, &run).await;
    let end = RunEnd {
        id: run.id.clone(),
        from: RunStatus::Accepted,
        outcome: timed_out(),
        at: at(7),
        callback: None,
    };
    assert!(store.end_run(end.clone()).await.unwrap());
    assert!(!store.end_run(end).await.unwrap());
    let ended = store.run(&default, &run.id).await.unwrap().unwrap();
    assert_eq!((ended.status, ended.outcome), (RunStatus::Failed, Some(timed_out())));
    assert_eq!((ended.started_at, ended.completed_at), (Some(at(7)), Some(at(7))));
    let refused = store.append(append(run.session_id.as_str(), 0, vec![opened(&run)])).await;
    assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
    let session = store.session(&default, &run.session_id).await.unwrap().unwrap();
    assert_eq!(session.view.last_sequence, 0);
}

pub async fn runs_are_found_by_what_they_wait_for(store: &impl Store) {
    for number in [2, 1, 3] {
        add(store, &run(number)).await;
    }
    let mut second = run(4);
    second.session_id = run(1).session_id;
    second.given.session = RunSession::Given;
    store
        .add_run(NewRun { run: second.clone(), session: None, customer: None, callback: None })
        .await
        .unwrap();
    assert_eq!(store.waiting_runs(&run(1).session_id).await.unwrap(), [run(1), second.clone()]);
    store.append(append("session_1", 0, vec![opened(&run(1))])).await.unwrap();
    assert_eq!(store.waiting_runs(&run(1).session_id).await.unwrap(), [second.clone()]);
    assert_eq!(store.unsettled_runs().await.unwrap().len(), 4);
    let overdue = store.overdue_runs(at(1002), 10).await.unwrap();
    let ids: Vec<&str> = overdue.runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!((ids, overdue.next_at), (vec!["run_1", "run_2"], Some(at(1003))));
    let overdue = store.overdue_runs(at(5000), 1).await.unwrap();
    assert_eq!((overdue.runs.len(), overdue.next_at), (1, Some(at(1002))));
}

pub async fn sessions_that_were_made_for_a_run_are_left_over(store: &impl Store) {
    for number in [1, 2] {
        add(store, &run(number)).await;
    }
    assert_eq!(store.leftover_sessions(10).await.unwrap(), []);
    let end = |number| RunEnd {
        id: run(number).id,
        from: RunStatus::Accepted,
        outcome: timed_out(),
        at: at(7),
        callback: None,
    };
    assert!(store.end_run(end(1)).await.unwrap());
    let left = store.leftover_sessions(10).await.unwrap();
    assert_eq!(left.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["run_1"]);
    // The other one goes when its callback is settled.
    let callback = callback(&run(2));
    assert!(store.end_run(RunEnd { callback: Some(callback.clone()), ..end(2) }).await.unwrap());
    assert_eq!(store.leftover_sessions(10).await.unwrap().len(), 1);
    let filter = DeliveryFilter { run_id: Some(run(2).id), ..DeliveryFilter::default() };
    let deliveries = store.deliveries(&tenant("default"), filter, page(10, None)).await.unwrap();
    assert_eq!(deliveries.items[0].id, callback.id);
    let attempt = Attempt { at: at(8), status_code: Some(410), error: Some("gone".into()), duration_ms: 1 };
    let (id, url, then, now) = (callback.id, callback.url, AfterAttempt::Dead, at(9));
    store.record_attempt(Attempted { id, url, attempt, then, now }).await.unwrap();
    assert_eq!(store.leftover_sessions(10).await.unwrap().len(), 2);
    store.session_is_gone(&run(2).id).await.unwrap();
    store.session_is_gone(&run(1).id).await.unwrap();
    assert_eq!(store.leftover_sessions(10).await.unwrap(), []);
}

pub async fn runs_are_listed_newest_first_in_pages(store: &impl Store) {
    let (default, routine) = (tenant("default"), run(1).routine_id);
    for number in 1..=5 {
        add(store, &run(number)).await;
    }
    let first = store.runs(&default, &routine, page(2, None)).await.unwrap();
    add(store, &run(6)).await;
    let second = store.runs(&default, &routine, page(9, first.next.clone())).await.unwrap();
    let ids = |runs: &[RunRecord]| runs.iter().map(|run| run.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(&first.items), ["run_5", "run_4"]);
    assert_eq!(ids(&second.items), ["run_3", "run_2", "run_1"]);
    assert_eq!(second.next, None);
    assert!(store.runs(&tenant("other"), &routine, page(9, None)).await.unwrap().items.is_empty());
}
