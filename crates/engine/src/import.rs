//! Sessions taken in from a file, with their whole log.
//!
//! What comes in was made elsewhere, by whoever. It is kept only if it folds to a session that could exist, and
//! nothing starts to run because of it: a turn that was running in the file is interrupted.

use jiff::Timestamp;
use petasos_core::State;
use petasos_core::event::{Event, StopReason, UserInterrupt};
use petasos_core::export::ExportHeader;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::limits::Limits;
use petasos_core::metadata::metadata_problem;
use petasos_core::session::{SessionRecord, SessionView, Status};
use petasos_core::step::{self, Input, Opening, ReadOnlyCalls, UserEvent};
use petasos_store::{Append, Outbox};
use uuid::Uuid;

use crate::engine::{Engine, now};
use crate::error::{Error, Result};

/// The id that an imported session gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportAs {
    /// Its own.
    Itself,
    /// A new one.
    Another,
}

/// What came of an import.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The session as it is listed.
    pub session: SessionRecord,
    /// Whether a turn was running in the file and was interrupted.
    pub interrupted: bool,
}

impl Engine {
    /// Keeps a session with this log, all or nothing.
    pub async fn import_session(
        &self,
        tenant: &TenantId,
        header: ExportHeader,
        mut events: Vec<Event>,
        import_as: ImportAs,
    ) -> Result<Imported> {
        check(&header, &events)?;
        let mut session = header.session.clone();
        session.tenant = tenant.clone();
        if import_as == ImportAs::Another {
            session.id = SessionId::from_uuid(Uuid::now_v7());
            events.iter_mut().for_each(|event| event.session_id = session.id.clone());
        }
        let view = SessionView::new(session.created_at, header.title.clone(), header.metadata.clone());
        let mut state = State::new(session.id.clone(), view.clone());
        events.iter().for_each(|event| state.apply(event));
        let interrupted = state.turn.as_ref().is_some_and(|turn| !turn.is_paused());
        events.extend(settle(&mut state, &self.shared.limits)?);
        self.shared.deliveries.check_metadata(&state.view.metadata)?;
        session.agent_version = self.agent_of(tenant, &header, &session.id).await?;
        let append = Append {
            session_id: session.id.clone(),
            expected_sequence: 0,
            events,
            view: state.view.clone(),
            checkpoint: serde_json::to_vec(&state).ok(),
            outbox: Outbox::default(),
        };
        let new = SessionRecord { header: session.clone(), view };
        self.shared.store.import_session(new, append).await.map_err(|error| match error {
            petasos_store::Error::AlreadyExists { .. } => {
                Error::AlreadyExists { kind: "session", id: session.id.to_string() }
            }
            error => error.into(),
        })?;
        Ok(Imported { session: SessionRecord { header: session, view: state.view }, interrupted })
    }

    /// The version of the agent that an imported session stays with. An agent that is not there at all is made from
    /// the file, as its version 1.
    async fn agent_of(&self, tenant: &TenantId, header: &ExportHeader, new: &SessionId) -> Result<u32> {
        let (id, version) = (&header.session.agent_id, header.session.agent_version);
        let store = &self.shared.store;
        if store.agent(tenant, id, Some(version)).await?.is_some() {
            return Ok(version);
        }
        if let Some(newest) = store.agent(tenant, id, None).await? {
            let problem =
                format!("agent {id} is at version {} here and has no version {version}", newest.version);
            return Err(invalid("session.agent_version", problem));
        }
        // An import that will be refused must not leave an agent behind.
        if store.session(tenant, new).await?.is_some() {
            return Err(Error::AlreadyExists { kind: "session", id: new.to_string() });
        }
        let made = self.keep_agent(tenant, Some(id.clone()), header.agent.definition.clone()).await?;
        Ok(made.version)
    }
}

fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Error {
    Error::Invalid { field: field.into(), problem: problem.into() }
}

/// Checks what has to be true of every file, whatever its events say.
fn check(header: &ExportHeader, events: &[Event]) -> Result<()> {
    let id = &header.session.id;
    if !id.as_str().starts_with(SessionId::PREFIX) {
        return Err(invalid("session.id", format!("must start with {}", SessionId::PREFIX)));
    }
    if header.agent.id != header.session.agent_id {
        return Err(invalid("agent.id", "is not that of the session's agent"));
    }
    if let Some(problem) = metadata_problem(&header.metadata) {
        return Err(invalid("metadata", problem));
    }
    if !is_storable(header.session.created_at) {
        return Err(invalid("session.created_at", "is too far away"));
    }
    for (event, expected) in events.iter().zip(1..) {
        // The header is line 1.
        let line = |problem: String| Err(invalid(format!("line {}", expected + 1), problem));
        if event.sequence != expected {
            return line(format!("has sequence {}; it must be {expected}", event.sequence));
        }
        if event.session_id != *id {
            return line(format!("belongs to session {}, not to {id}", event.session_id));
        }
        if !is_storable(event.created_at) || event.processed_at.is_some_and(|at| !is_storable(at)) {
            return line("has a time that is too far away".to_owned());
        }
        if event.payload.takes_up().iter().any(|taken| *taken >= event.sequence) {
            return line("takes up an event that comes later".to_owned());
        }
    }
    let count = events.len() as u64;
    if count != header.last_sequence {
        let problem = format!("is {}, and {count} events follow; the file was cut", header.last_sequence);
        return Err(invalid("last_sequence", problem));
    }
    Ok(())
}

/// Whether stores can keep a time: they count nanoseconds since 1970.
fn is_storable(time: Timestamp) -> bool {
    i64::try_from(time.as_nanosecond()).is_ok()
}

/// Brings a folded log to a state in which nothing is under way, and returns the events that do so. A pause stays.
fn settle(state: &mut State, limits: &Limits) -> Result<Vec<Event>> {
    let impossible = || invalid("events", "leave the session in a state that no session can be in");
    let mut closing = Vec::new();
    if state.turn.as_ref().is_some_and(|turn| !turn.is_paused()) {
        let message = "The session was exported while this turn was running.".to_owned();
        let events = vec![UserEvent::Interrupt(UserInterrupt { message: Some(message) })];
        let input = Input::User { events, said_so_far: String::new(), opening: Opening::default() };
        closing = step::step(state, input, limits, now()).map_err(|_| impossible())?;
        closing.iter().for_each(|event| state.apply(event));
    }
    // As at the first start after a crash: what was only in the memory of another process is gone.
    let recover = Input::Recover { passwords: Vec::new(), read_only_calls: ReadOnlyCalls::RunAgain };
    let recovered = step::step(state, recover, limits, now()).map_err(|_| impossible())?;
    recovered.iter().for_each(|event| state.apply(event));
    closing.extend(recovered);
    let waits = matches!(state.view.stop_reason, Some(StopReason::RequiresAction { .. }));
    let is_settled = match &state.turn {
        Some(turn) => turn.is_paused() && turn.pending().next().is_some() && waits,
        None => !waits,
    };
    if is_settled && state.view.status == Status::Idle { Ok(closing) } else { Err(impossible()) }
}
