//! One awake session: its only writer, and the driver of its turn.
//!
//! The actor holds the fold, never more truth than the log: it can be stopped anywhere, and the next one goes on
//! from what was appended. It ends by itself when no turn is running.

mod append;
mod commands;
mod hooks;

use std::sync::Arc;

use petasos_core::State;
use petasos_core::agent::AgentDefinition;
use petasos_core::budget::AtBudget;
use petasos_core::context::Context;
use petasos_core::event::UserInterrupt;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::limits::Limits;
use petasos_core::session::SessionHeader;
use petasos_core::step::{Input, Opening, ReadOnlyCalls, UserEvent};
use tokio::sync::mpsc;

use crate::actor::{Command, End, Report};
use crate::deliveries::SessionOutbox;
use crate::effects::UnderWay;
use crate::ended_calls::EndedCalls;
use crate::engine::{Shared, now};
use crate::error::{Error, Result};
use crate::feed::{Feed, lock};
use crate::load;
use crate::mcp::McpTools;
use crate::observers::ToldEnds;
use crate::recovery::{Hold, TURN_GIVEN_UP};
use crate::warm::{self, Fold};

/// The session while it is awake.
pub(crate) struct Actor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) header: Arc<SessionHeader>,
    pub(crate) agent: Arc<AgentDefinition>,
    /// Bounds of its turns, with how much its model can read.
    pub(crate) limits: Limits,
    pub(crate) mcp: McpTools,
    pub(crate) state: State,
    /// What the model reads; folded when it is first needed.
    pub(crate) context: Option<Context>,
    /// What `pre_llm_call` said in this turn; none if it has yet to be asked.
    pub(crate) injected: Option<String>,
    /// Ends of tool calls that hooks must have been told before the next model call.
    pub(crate) ended_calls: EndedCalls,
    /// Calls whose end hooks were told.
    pub(crate) told: ToldEnds,
    pub(crate) feed: Arc<Feed>,
    pub(crate) outbox: SessionOutbox,
    pub(crate) under_way: Vec<UnderWay>,
    pub(crate) started: u64,
    pub(crate) reports: mpsc::UnboundedSender<Report>,
    pub(crate) inbox: mpsc::UnboundedReceiver<Report>,
    /// Whether the turn was under way before this actor, so that readers may have seen text that is gone.
    pub(crate) resumed: bool,
}

impl Actor {
    /// Wakes a session; none if there is no such session of the tenant.
    pub(crate) async fn load(
        shared: &Arc<Shared>,
        tenant: &TenantId,
        session_id: &SessionId,
    ) -> Result<Option<Actor>> {
        let fold = match shared.warm.take(tenant, session_id) {
            None => load::fold(shared.store.as_ref(), tenant, session_id).await?,
            warm => warm,
        };
        let Some(Fold { header, agent, mut state, context }) = fold else { return Ok(None) };
        let opened_by = state.turn.as_ref().map(|turn| turn.opened_by);
        let under_way = state.turn.as_mut().filter(|turn| !turn.is_paused());
        let resumed = under_way.is_some();
        if let Some(turn) = under_way {
            // The time in which nobody drove it does not count against it.
            turn.running_since = now();
        }
        let feed = shared.feeds.get(session_id);
        feed.reaches(state.view.last_sequence);
        let (reports, inbox) = mpsc::unbounded_channel();
        Ok(Some(Actor {
            shared: Arc::clone(shared),
            header,
            limits: limits_of(shared, &agent, &state),
            agent,
            mcp: McpTools::default(),
            state,
            context,
            injected: shared.injected.take(session_id, opened_by),
            ended_calls: EndedCalls::default(),
            told: ToldEnds::default(),
            feed,
            outbox: SessionOutbox::default(),
            under_way: Vec::new(),
            started: 0,
            reports,
            inbox,
            resumed,
        }))
    }

    /// Drives the session until nothing is left to do, or something happens that it cannot live with.
    pub(crate) async fn live(mut self, mailbox: &mut mpsc::Receiver<Command>) -> Result<End> {
        let passwords = self.shared.secrets.passwords(&self.header.id);
        let hold = self.shared.recovery.set_aside.hold_of(&self.header.tenant, &self.header.id);
        let is_told = hold == Hold::TellUnknown;
        let read_only_calls = if is_told { ReadOnlyCalls::SetAside } else { ReadOnlyCalls::RunAgain };
        self.insist(Input::Recover { passwords, read_only_calls }).await?;
        if hold == Hold::EndTurn {
            self.insist(Input::GivenUp { message: TURN_GIVEN_UP.to_owned() }).await?;
        }
        if self.resumed && self.is_orphan().await {
            self.insist(interrupt("The session that gave this work no longer waits for it.")).await?;
        }
        loop {
            self.start_waiting_run().await?;
            self.reconcile().await?;
            self.resumed = false;
            if self.under_way.is_empty() {
                match self.retire(mailbox) {
                    None => return Ok(End::Retired),
                    Some(actor) => self = actor,
                }
            }
            tokio::select! {
                Some(report) = self.inbox.recv() => self.report(report).await?,
                command = mailbox.recv() => match command {
                    Some(Command::Delete { reply }) => return Ok(self.delete(reply).await),
                    Some(command) => self.command(command).await?,
                    None => return Ok(End::Stopped),
                },
            }
        }
    }

    /// Takes the session off the list, unless somebody has asked for something in the meantime.
    fn retire(self, mailbox: &mpsc::Receiver<Command>) -> Option<Self> {
        let shared = Arc::clone(&self.shared);
        // Before the lock that all sessions share.
        let weight = warm::weight(&self.agent, &self.state, self.context.as_ref());
        let mut awake = lock(&shared.awake);
        if !mailbox.is_empty() {
            return Some(self);
        }
        if let (Some(turn), Some(text)) = (&self.state.turn, self.injected) {
            shared.injected.keep(&self.header.id, turn.opened_by, text);
        }
        self.feed.forget();
        awake.remove(&(self.header.tenant.clone(), self.header.id.clone()));
        let Actor { header, agent, state, context, .. } = self;
        // Still under the lock: the next actor must find this fold or none.
        shared.warm.keep(Fold { header, agent, state, context }, weight);
        None
    }

    /// Whether this is a subagent that nobody waits for any more.
    async fn is_orphan(&self) -> bool {
        let Some(thread) = self.state.settings.as_ref().and_then(|settings| settings.thread.as_ref()) else {
            return false;
        };
        let parent = load::session(self.shared.store.as_ref(), &self.header.tenant, &thread.parent).await;
        // If that cannot be read, its work may still be of use.
        parent
            .is_ok_and(|parent| parent.is_none_or(|parent| !parent.state.waits_for(self.header.id.as_str())))
    }

    /// Takes what an effect came to, or what it has to say while it goes on.
    async fn report(&mut self, report: Report) -> Result<()> {
        let (effect, input, injected) = match report {
            Report::Ended { effect, input, injected } => (effect, input, injected),
            Report::TextBegan { call } => return self.announce_text(call).await,
            Report::Note { input, written } => {
                self.insist(input).await?;
                // Whoever wrote it may have been stopped in the meantime.
                let _ = written.send(());
                return Ok(());
            }
        };
        let Some(index) = self.under_way.iter().position(|under_way| under_way.number == effect) else {
            // It was stopped, and ended before it noticed.
            return Ok(());
        };
        self.under_way.swap_remove(index);
        if injected.is_some() {
            self.injected = injected;
        }
        self.insist(input).await
    }
}

impl Actor {
    /// Appends that the text of a reply is on its way. Readers are shown the text itself in the meantime; an announcement
    /// that cannot be written now is left to the end of the call.
    async fn announce_text(&mut self, call: u32) -> Result<()> {
        if !self.inbox.is_empty() {
            // The reply is complete by now, and announced with what comes of it.
            return Ok(());
        }
        match self.feed_input(Input::TextBegan { call }).await {
            Err(Error::Store(error)) if !matches!(error, petasos_store::Error::Stale { .. }) => {
                tracing::debug!(session_id = %self.header.id, %error, "the start of a reply was not written");
                Ok(())
            }
            other => other.map(drop),
        }
    }
}

/// The bounds of a session's turns, with how much its model can read. A subagent may make fewer model calls than the
/// session that it works for.
pub(super) fn limits_of(shared: &Shared, agent: &AgentDefinition, state: &State) -> Limits {
    let is_thread = state.settings.as_ref().is_some_and(|settings| settings.thread.is_some());
    let limits = &shared.limits;
    Limits {
        turn_model_calls: if is_thread { limits.thread_model_calls } else { limits.turn_model_calls },
        // Nobody could be asked for a subagent.
        at_budget: if is_thread { AtBudget::Stop } else { limits.at_budget },
        context_tokens: Some(shared.models.catalog().compact_at(state.model(agent))),
        ..*limits
    }
}

/// What ends the turn under way, and says why.
fn interrupt(message: &str) -> Input {
    let interrupt = UserInterrupt { message: Some(message.to_owned()) };
    let events = vec![UserEvent::Interrupt(interrupt)];
    Input::User { events, said_so_far: String::new(), opening: Opening::default() }
}
