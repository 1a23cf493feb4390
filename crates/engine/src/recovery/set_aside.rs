//! The work that is set aside, in memory: what must not start by itself, and what is told about it.
//!
//! Everything that starts work by itself asks here first. Nearly always there is no such work, and then asking costs one
//! load of a number.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use jiff::Timestamp;
use petasos_core::event::{Event, Payload};
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::recovery::{PROGRESS_TYPES, WorkKind};
use petasos_store::{WorkKey, WorkRecord, WorkState};
use tokio::sync::mpsc;

use super::message;
use crate::feed::lock;

/// A piece of work that is set aside, as people who look after the server see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAsideWork {
    /// What kind of work it is.
    pub kind: WorkKind,
    /// The session that it is about, if there is one.
    pub session_id: Option<SessionId>,
    /// The tool call, run, routine or delivery; none if it is the session's own turn.
    pub id: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// Whether it is not tried again.
    pub given_up: bool,
    /// What happened and what happens next.
    pub message: &'static str,
}

/// What the actor of a session has to do about work that is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Nothing.
    Free,
    /// The outcome of the calls under way is told to be unknown.
    TellUnknown,
    /// Nothing of its turn is started.
    Wait,
    /// The turn ends with an error.
    EndTurn,
}

/// What the store has to be told.
#[derive(Debug)]
pub(super) enum Change {
    Keep(WorkRecord),
    Forget(WorkKey),
}

pub(super) struct Entry {
    pub(super) record: WorkRecord,
    /// What at most one delivery of is under way at a time.
    pub(super) lane: Option<String>,
    /// The tool calls that are not made again.
    pub(super) calls: Vec<String>,
    /// How far a turn got whose calls are told to be unknown.
    reached: Option<Progress>,
}

impl Entry {
    pub(super) fn new(record: WorkRecord) -> Self {
        Entry { record, lane: None, calls: Vec::new(), reached: None }
    }
}

/// How far an append brings a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Step,
    ModelFinished,
    TurnEnded,
}

/// All work that is set aside.
pub(crate) struct SetAside {
    entries: Mutex<Vec<Entry>>,
    count: AtomicUsize,
    changes: mpsc::UnboundedSender<Change>,
    pub(super) to_store: Mutex<Option<mpsc::UnboundedReceiver<Change>>>,
}

impl Default for SetAside {
    fn default() -> Self {
        let (changes, to_store) = mpsc::unbounded_channel();
        SetAside {
            entries: Mutex::default(),
            count: AtomicUsize::new(0),
            changes,
            to_store: Mutex::new(Some(to_store)),
        }
    }
}

impl SetAside {
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        lock(&self.entries)
    }

    /// Fills it, before anything starts.
    pub(super) fn fill(&self, entries: Vec<Entry>) {
        self.count.store(entries.len(), Ordering::Release);
        *self.entries() = entries;
    }

    /// Changes the entries, and tells the store what became of them.
    fn update(&self, change: impl FnOnce(&mut Vec<Entry>) -> Vec<Change>) {
        if self.is_empty() {
            return;
        }
        let mut entries = self.entries();
        for change in change(&mut entries) {
            // Nobody listens when everything stops.
            drop(self.changes.send(change));
        }
        self.count.store(entries.len(), Ordering::Release);
    }

    /// What the actor of a session has to do.
    pub(crate) fn hold_of(&self, tenant: &TenantId, session_id: &SessionId) -> Hold {
        if self.is_empty() {
            return Hold::Free;
        }
        let entries = self.entries();
        let mut holds = entries.iter().filter(|entry| is_turn_of(entry, tenant, session_id)).map(|entry| {
            match entry.record.state {
                WorkState::Told if entry.reached.is_none() => Hold::TellUnknown,
                // Whatever is tried, a call is not made again.
                WorkState::Trying if entry.record.found.key.kind == WorkKind::ToolCall => Hold::TellUnknown,
                WorkState::Waiting => Hold::Wait,
                WorkState::Ending => Hold::EndTurn,
                _ => Hold::Free,
            }
        });
        holds.find(|hold| *hold != Hold::Free).unwrap_or(Hold::Free)
    }

    /// Whether work must not start by itself: it waits for its turn to be tried, or is not tried again.
    pub(crate) fn holds(&self, kind: WorkKind, tenant: &TenantId, id: &str) -> bool {
        let state = self.state_of(kind, tenant, id);
        matches!(state, Some(WorkState::Waiting | WorkState::GivenUp))
    }

    /// Whether work is being tried by itself.
    pub(crate) fn tries(&self, kind: WorkKind, tenant: &TenantId, id: &str) -> bool {
        self.state_of(kind, tenant, id) == Some(WorkState::Trying)
    }

    fn state_of(&self, kind: WorkKind, tenant: &TenantId, id: &str) -> Option<WorkState> {
        if self.is_empty() {
            return None;
        }
        let is_it = |key: &WorkKey| key.kind == kind && key.id == id && key.tenant == *tenant;
        let entries = self.entries();
        entries.iter().find(|entry| is_it(&entry.record.found.key)).map(|entry| entry.record.state)
    }

    /// The lanes of deliveries that wait.
    pub(crate) fn held_lanes(&self) -> Vec<String> {
        if self.is_empty() {
            return Vec::new();
        }
        let entries = self.entries();
        let waiting = entries.iter().filter(|entry| entry.record.state == WorkState::Waiting);
        waiting.filter_map(|entry| entry.lane.clone()).collect()
    }

    /// Work was done, or is no longer there to be done.
    pub(crate) fn succeeded(&self, kind: WorkKind, tenant: &TenantId, id: &str) {
        self.update(|entries| {
            let is_it = |key: &WorkKey| key.kind == kind && key.id == id && key.tenant == *tenant;
            remove(entries, |entry| is_it(&entry.record.found.key))
        });
    }

    /// A session is gone, and its turns with it.
    pub(crate) fn session_gone(&self, tenant: &TenantId, session_id: &SessionId) {
        self.update(|entries| remove(entries, |entry| is_session(entry, tenant, session_id)));
    }

    /// Events were appended to a session.
    pub(crate) fn appended(&self, tenant: &TenantId, session_id: &SessionId, events: &[Event]) {
        if self.is_empty() {
            return;
        }
        for event in events {
            if let Payload::RunOpened(opened) = &event.payload {
                self.succeeded(WorkKind::Run, tenant, opened.run_id.as_str());
            }
        }
        let Some(progress) = events.iter().filter_map(progress_of).max() else { return };
        let reached = events.iter().any(|event| matches!(event.payload, Payload::ModelFinished(_)));
        self.update(|entries| {
            let mut changes = Vec::new();
            for entry in entries.iter_mut().filter(|entry| is_session(entry, tenant, session_id)) {
                changes.extend(entry.progressed(progress));
            }
            changes.extend(remove(entries, |entry| {
                is_session(entry, tenant, session_id)
                    && match entry.record.state {
                        WorkState::Waiting | WorkState::Trying => true,
                        WorkState::GivenUp => reached,
                        _ => false,
                    }
            }));
            changes
        });
    }

    /// The record of work that waits; none if it does not wait any more.
    pub(super) fn waiting(&self, key: &WorkKey) -> Option<WorkRecord> {
        let entries = self.entries();
        let records = entries.iter().map(|entry| &entry.record);
        records
            .filter(|record| record.state == WorkState::Waiting)
            .find(|record| record.found.key == *key)
            .cloned()
    }

    /// Lets work start that waits.
    pub(super) fn release(&self, key: &WorkKey) {
        let mut entries = self.entries();
        let mut records = entries.iter_mut().map(|entry| &mut entry.record);
        if let Some(record) = records.find(|record| record.found.key == *key) {
            record.state = WorkState::Trying;
        }
    }

    /// Lets go of calls that the model was told about, when that no longer is news.
    pub(super) fn drop_told(&self) {
        self.update(|entries| {
            entries.retain(|entry| {
                entry.record.state != WorkState::Told || entry.reached != Some(Progress::TurnEnded)
            });
            Vec::new()
        });
    }

    /// What is set aside. `settled` says whether the server has been up for a while.
    pub(crate) fn list(&self, settled: bool) -> Vec<SetAsideWork> {
        if self.is_empty() {
            return Vec::new();
        }
        let is_old = |entry: &&Entry| {
            let told = entry.record.state == WorkState::Told;
            told && settled && entry.reached >= Some(Progress::ModelFinished)
        };
        self.entries().iter().filter(|entry| !is_old(entry)).flat_map(shown).collect()
    }
}

impl Entry {
    fn progressed(&mut self, progress: Progress) -> Option<Change> {
        match self.record.state {
            WorkState::Told => {
                self.reached = self.reached.max(Some(progress));
                let key = self.record.found.key.clone();
                (progress == Progress::TurnEnded).then_some(Change::Forget(key))
            }
            WorkState::Ending if progress == Progress::TurnEnded => {
                self.record.state = WorkState::GivenUp;
                Some(Change::Keep(self.record.clone()))
            }
            _ => None,
        }
    }
}

fn shown(entry: &Entry) -> Vec<SetAsideWork> {
    let WorkRecord { found, state, since, .. } = &entry.record;
    let kind = found.key.kind;
    let work = |id: Option<String>| SetAsideWork {
        kind,
        session_id: found.session_id.clone(),
        id,
        since: *since,
        given_up: matches!(state, WorkState::GivenUp | WorkState::Ending),
        message: message::of(kind, *state),
    };
    match kind {
        WorkKind::ToolCall if !entry.calls.is_empty() => {
            entry.calls.iter().map(|call| work(Some(call.clone()))).collect()
        }
        WorkKind::Run | WorkKind::Schedule | WorkKind::Delivery => vec![work(Some(found.key.id.clone()))],
        _ => vec![work(None)],
    }
}

fn remove(entries: &mut Vec<Entry>, is_over: impl Fn(&Entry) -> bool) -> Vec<Change> {
    let over = entries.extract_if(.., |entry| is_over(entry));
    over.map(|entry| Change::Forget(entry.record.found.key)).collect()
}

/// Whether the work is a turn of this session, or a wait of it that is over.
fn is_session(entry: &Entry, tenant: &TenantId, session_id: &SessionId) -> bool {
    let key = &entry.record.found.key;
    let of_session = key.kind.is_turn() || key.kind == WorkKind::Expiry;
    of_session && key.id == session_id.as_str() && key.tenant == *tenant
}

fn is_turn_of(entry: &Entry, tenant: &TenantId, session_id: &SessionId) -> bool {
    entry.record.found.key.kind.is_turn() && is_session(entry, tenant, session_id)
}

fn progress_of(event: &Event) -> Option<Progress> {
    match &event.payload {
        Payload::StatusIdle(_) => Some(Progress::TurnEnded),
        Payload::ModelFinished(_) => Some(Progress::ModelFinished),
        payload => PROGRESS_TYPES.contains(&payload.type_name()).then_some(Progress::Step),
    }
}
