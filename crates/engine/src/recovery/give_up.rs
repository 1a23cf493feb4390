//! Gives work up for good, without doing any of it.

use std::collections::HashSet;
use std::sync::Arc;

use petasos_core::delivery::Attempt;
use petasos_core::event::{Event, Payload, StatusIdle, StopReason};
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::recovery::WorkKind;
use petasos_core::run::{RunError, RunErrorCode, RunRecord, RunStatus};
use petasos_core::session::Status;
use petasos_core::step::CRASH_LOOP;
use petasos_store::{AfterAttempt, Append, Attempted, Outbox, WorkFound, WorkKey, WorkRecord, WorkState};

use super::message::GIVEN_UP;
use crate::engine::{Engine, Shared, now};
use crate::error::Result;

/// What the log says of a turn that is given up.
pub(crate) const TURN_GIVEN_UP: &str = "The server died several times in a row during this turn, the last time while \
    the turn was tried by itself. The turn is given up; send a message to go on.";

/// The records without those of sessions and deliveries that were given up and are gone by now.
pub(super) async fn without_what_is_gone(
    shared: &Arc<Shared>,
    found: &[WorkFound],
    records: Vec<WorkRecord>,
) -> Vec<WorkRecord> {
    let found: HashSet<&WorkKey> = found.iter().map(|found| &found.key).collect();
    let mut kept = Vec::with_capacity(records.len());
    for record in records {
        let key = &record.found.key;
        let is_over = record.state == WorkState::GivenUp && !found.contains(key);
        if !is_over || is_there(shared, key).await {
            kept.push(record);
        }
    }
    kept
}

async fn is_there(shared: &Shared, key: &WorkKey) -> bool {
    match key.kind {
        WorkKind::Delivery => match key.id.parse() {
            Ok(id) => !matches!(shared.store.delivery(&key.tenant, &id).await, Ok(None)),
            Err(_) => false,
        },
        _ => match key.id.parse() {
            Ok(id) => !matches!(shared.store.session(&key.tenant, &id).await, Ok(None)),
            Err(_) => false,
        },
    }
}

/// Gives a piece of work up. What only has to be left alone needs nothing else.
pub(super) async fn give_up(engine: &Engine, record: &WorkRecord) {
    let WorkFound { key, session_id, .. } = &record.found;
    let given_up = match (key.kind, session_id) {
        (WorkKind::Delivery, _) => give_up_delivery(&engine.shared, key).await,
        (WorkKind::Run, _) => give_up_run(engine, key).await,
        (kind, Some(session_id)) if kind.is_turn() => end_unread(engine, &key.tenant, session_id).await,
        _ => Ok(()),
    };
    if let Err(error) = given_up {
        tracing::error!(kind = key.kind.as_str(), id = key.id, %error, "work that kills the server cannot be given up");
    }
}

async fn give_up_delivery(shared: &Shared, key: &WorkKey) -> Result<()> {
    let Ok(id) = key.id.parse() else { return Ok(()) };
    let Some(delivery) = shared.store.delivery(&key.tenant, &id).await? else { return Ok(()) };
    let at = now();
    let attempt = Attempt { at, status_code: None, error: Some(GIVEN_UP.to_owned()), duration_ms: 0 };
    let (url, then) = (delivery.url, AfterAttempt::Dead);
    Ok(shared.store.record_attempt(Attempted { id, url, attempt, then, now: at }).await?)
}

async fn give_up_run(engine: &Engine, key: &WorkKey) -> Result<()> {
    let Ok(id) = key.id.parse() else { return Ok(()) };
    match engine.shared.store.run(&key.tenant, &id).await? {
        Some(run) if run.status == RunStatus::Accepted => engine.end_run(run, error()).await.map(drop),
        _ => Ok(()),
    }
}

fn error() -> RunError {
    RunError::new(RunErrorCode::SessionError, GIVEN_UP)
}

/// Ends a turn without reading its log, because that may be what the server dies of. Calls that are open stay so; the
/// model is told about them when it reads the log.
async fn end_unread(engine: &Engine, tenant: &TenantId, session_id: &SessionId) -> Result<()> {
    let stop_reason = StopReason::Error { code: CRASH_LOOP.to_owned(), message: TURN_GIVEN_UP.to_owned() };
    let payload = Payload::StatusIdle(StatusIdle { stop_reason, takes_up: Vec::new() });
    append_unread(&engine.shared, tenant, session_id, payload).await;
    let runs = engine.shared.store.unsettled_runs().await?;
    let is_its_run = |run: &RunRecord| run.session_id == *session_id && run.status == RunStatus::Running;
    for run in runs.into_iter().filter(is_its_run) {
        engine.settle_outside(run, error()).await?;
    }
    Ok(())
}

/// Appends an event without reading the log. Only while the session has no actor.
pub(super) async fn append_unread(
    shared: &Shared,
    tenant: &TenantId,
    session_id: &SessionId,
    payload: Payload,
) {
    let appended = async {
        let Some(session) = shared.store.session(tenant, session_id).await? else { return Ok(()) };
        let (at, mut view) = (now(), session.view);
        let expected_sequence = view.last_sequence;
        view.last_sequence += 1;
        view.updated_at = at;
        if let Payload::StatusIdle(idle) = &payload {
            view.status = Status::Idle;
            view.stop_reason = Some(idle.stop_reason.clone());
        }
        let event = Event {
            session_id: session_id.clone(),
            sequence: view.last_sequence,
            created_at: at,
            processed_at: Some(at),
            payload,
        };
        let append = Append {
            session_id: session_id.clone(),
            expected_sequence,
            events: vec![event],
            view,
            checkpoint: None,
            outbox: Outbox::default(),
        };
        shared.store.append(append).await
    };
    if let Err(error) = appended.await {
        tracing::warn!(%session_id, %error, "the log of a session cannot say that its work is set aside");
    }
}
