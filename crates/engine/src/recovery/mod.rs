//! Makes sure that work which kills the server does not kill it at every start.
//!
//! A server picks up by itself what the last process left: turns, runs, deliveries, schedules, removals, waits that are
//! over. If such work ends the process, the next process would pick it up again, and so on for ever.
//!
//! **What is counted.** Nothing is written while work goes on. What was under way when a process died follows from what
//! the store holds at the next start: running sessions with their newest event that shows progress, due deliveries with
//! the number of their attempts, notes of removals, and so on (`find`). A start that follows a process which died within a
//! minute records what it finds, in one commit, before anything is picked up. Work that is found at the same position
//! after three such processes in a row is set aside (`assess`). A clean stop, a process that lives longer than a
//! minute, and progress all count from the beginning. A process says itself that it lived that long, because clocks jump.
//!
//! **What is set aside.** The tool calls of a turn are closed with an unknown outcome, once in a turn. Everything else
//! waits (`set_aside`) until the server has been up for ten seconds and is then tried, one piece at a time, each after a
//! note of it was committed (`trial`). If the process dies during that, the work is given up (`give_up`): a delivery is
//! dead, a turn ends with an error, and if even that kills the process, the turn is ended without reading its log.
//!
//! The index of messages is fed by the store, which counts the deaths by itself (`store/src/sqlite/index_attempts.rs`).

mod assess;
mod find;
mod give_up;
mod message;
mod set_aside;
mod trial;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use petasos_core::event::{Payload, WorkSetAside};
use petasos_core::recovery::WorkKind;
use petasos_store::{LastEnd, StartNote, WorkFound, WorkKey, WorkRecord, WorkState};
use tokio::time::Instant;

pub(crate) use self::give_up::TURN_GIVEN_UP;
pub use self::set_aside::SetAsideWork;
pub(crate) use self::set_aside::{Hold, SetAside};
use crate::engine::{Engine, Shared, now};
use crate::error::Result;

/// How many logs are told at the same time what is set aside.
const AT_ONCE: usize = 64;

/// How long things take that crash loops are told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryTimes {
    /// A process that lives this long does not count as one that died soon after its start.
    pub proven: Duration,
    /// How long the server is up before work that was set aside is tried.
    pub settled: Duration,
}

impl Default for RecoveryTimes {
    fn default() -> Self {
        RecoveryTimes { proven: Duration::from_secs(60), settled: Duration::from_secs(10) }
    }
}

/// What crash loops are told by, while the server runs.
pub(crate) struct Recovery {
    pub(crate) set_aside: SetAside,
    times: RecoveryTimes,
    /// When this process began to pick up work.
    started: std::sync::OnceLock<Instant>,
}

impl Recovery {
    pub(crate) fn new(times: RecoveryTimes) -> Self {
        Recovery { set_aside: SetAside::default(), times, started: std::sync::OnceLock::new() }
    }
}

impl Engine {
    /// The work that is set aside because the server died over and over while it was under way.
    pub fn set_aside(&self) -> Vec<SetAsideWork> {
        let Recovery { set_aside, times, started } = &self.shared.recovery;
        let is_settled = started.get().is_some_and(|started| started.elapsed() >= times.settled);
        set_aside.list(is_settled)
    }

    /// Records this start, and sets aside what was under way at too many starts before it. Call it before any work is
    /// picked up.
    pub(crate) async fn begin_recovery(&self) -> Result<()> {
        let shared = &self.shared;
        let last = shared.store.last_start().await?;
        // After an ordinary start there is nothing to compare.
        let matters = last.end == LastEnd::DiedEarly || !last.work.is_empty();
        let found = if matters { find::work_under_way(shared).await? } else { Vec::new() };
        let at = now();
        let records = assess::assess(last, &found, at);
        let records = give_up::without_what_is_gone(shared, &found, records).await;
        shared.store.record_start(at, records.clone()).await?;
        let records = find::with_index(shared, records, at).await?;
        let _ = shared.recovery.started.set(Instant::now());
        shared.tasks.spawn(outlive(Arc::clone(shared)));
        let mut entries = Vec::new();
        for record in records.iter().filter(|record| record.state != WorkState::Counted) {
            report(record);
            entries.push(find::entry(shared, record.clone()).await);
        }
        if entries.is_empty() {
            return Ok(());
        }
        shared.recovery.set_aside.fill(entries);
        self.tell_sessions(&records, at).await;
        let is_found: HashSet<&WorkKey> = found.iter().map(|found| &found.key).collect();
        for record in &records {
            if record.state == WorkState::GivenUp && is_found.contains(&record.found.key) {
                give_up::give_up(self, record).await;
            }
        }
        let waiting = records.iter().filter(|record| record.state == WorkState::Waiting);
        let waiting: Vec<WorkFound> = waiting.map(|record| record.found.clone()).collect();
        shared.tasks.spawn(trial::keep(Arc::clone(shared), waiting));
        Ok(())
    }

    /// Says in the logs of sessions what has just been set aside.
    async fn tell_sessions(&self, records: &[WorkRecord], at: jiff::Timestamp) {
        let new = records.iter().filter(|record| record.state == WorkState::Waiting && record.since == at);
        // At the same time, so that they share commits. Two of one session would be in each other's way.
        let mut of_session: BTreeMap<&str, Vec<&WorkRecord>> = BTreeMap::new();
        for record in new {
            let session_id = record.found.session_id.as_ref();
            of_session.entry(session_id.map_or("", |id| id.as_str())).or_default().push(record);
        }
        stream::iter(of_session.into_values())
            .for_each_concurrent(AT_ONCE, |records| async move {
                for record in records {
                    self.tell_session(record).await;
                }
            })
            .await;
    }

    async fn tell_session(&self, record: &WorkRecord) {
        let WorkFound { key, session_id, .. } = &record.found;
        let Some(session_id) = session_id else { return };
        let id = (!key.kind.is_turn() && key.kind != WorkKind::Expiry).then(|| key.id.clone());
        let message = message::of(key.kind, record.state).to_owned();
        let payload = Payload::WorkSetAside(WorkSetAside { kind: key.kind, id, message });
        give_up::append_unread(&self.shared, &key.tenant, session_id, payload).await;
    }

    /// Notes that the server stops in good order.
    pub(crate) async fn end_recovery(&self) {
        if self.shared.recovery.started.get().is_none() {
            return;
        }
        if let Err(error) = self.shared.store.note_start(StartNote::StopsCleanly).await {
            tracing::warn!(%error, "the clean stop cannot be recorded; the next start takes it for a crash");
        }
    }
}

/// Notes that the process has lived for a good while.
async fn outlive(shared: Arc<Shared>) {
    tokio::select! {
        () = tokio::time::sleep(shared.recovery.times.proven) => {}
        () = shared.closing.cancelled() => return,
    }
    if let Err(error) = shared.store.note_start(StartNote::Outlived).await {
        tracing::warn!(%error, "it cannot be recorded that the server has been up for a while");
    }
}

fn report(record: &WorkRecord) {
    let WorkFound { key, session_id, .. } = &record.found;
    let session_id = session_id.as_ref().map(|id| id.as_str()).unwrap_or_default();
    let message = message::of(key.kind, record.state);
    tracing::warn!(kind = key.kind.as_str(), id = key.id, session_id, "work is set aside: {message}");
}
