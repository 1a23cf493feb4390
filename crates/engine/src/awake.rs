//! One awake session: its only writer, and the driver of its turn.
//!
//! The actor holds the fold, never more truth than the log: it can be stopped anywhere, and the next one goes on
//! from what was appended. It ends by itself when no turn is running.

use std::sync::Arc;
use std::time::Duration;

use petasos_core::State;
use petasos_core::agent::{AgentDefinition, metadata_problem};
use petasos_core::budget::AtBudget;
use petasos_core::context::Context;
use petasos_core::event::{Event, Payload, TitleSource, Titled, UserInterrupt};
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::limits::Limits;
use petasos_core::session::SessionHeader;
use petasos_core::state::{ActionKind, Call};
use petasos_core::step::{self, Change, Input, Opening, UserEvent};
use petasos_hooks::{HookEvent, Observation, TurnInfo};
use petasos_store::Append;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::actor::{Command, End, Reply, Report};
use crate::agents::merge_by_key;
use crate::deliveries::SessionOutbox;
use crate::effects::UnderWay;
use crate::engine::{Engine, Shared, now};
use crate::error::{Error, Result};
use crate::feed::{Feed, lock};
use crate::mcp::McpTools;
use crate::observed::{Observed, observed};
use crate::sessions::{SessionChange, Submission};
use crate::turn_info::turn_info;
use crate::warm::Fold;
use crate::{load, observers, opening};

/// How long an actor waits before it tries to write again.
const WRITE_RETRIES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(1000),
    Duration::from_millis(3000),
];

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
    pub(crate) ended_calls: Vec<Observation>,
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
            ended_calls: Vec::new(),
            feed,
            outbox: SessionOutbox::default(),
            under_way: Vec::new(),
            started: 0,
            reports,
            inbox,
            resumed,
        }))
    }

    pub(crate) async fn live(mut self, mailbox: &mut mpsc::Receiver<Command>) -> End {
        let passwords = self.shared.secrets.passwords(&self.header.id);
        if let Err(error) = self.insist(Input::Recover { passwords }).await {
            return End::failed(&error);
        }
        if self.resumed && self.is_orphan().await {
            let message = Some("The session that gave this work no longer waits for it.".to_owned());
            let events = vec![UserEvent::Interrupt(UserInterrupt { message })];
            let interrupt = Input::User { events, said_so_far: String::new(), opening: Opening::default() };
            if let Err(error) = self.insist(interrupt).await {
                return End::failed(&error);
            }
        }
        loop {
            if let Err(error) = self.start_waiting_run().await {
                return End::failed(&error);
            }
            if let Err(error) = self.reconcile().await {
                return End::failed(&error);
            }
            self.resumed = false;
            if self.under_way.is_empty() {
                match self.retire(mailbox) {
                    None => return End::Retired,
                    Some(actor) => self = actor,
                }
            }
            let outcome = tokio::select! {
                Some(report) = self.inbox.recv() => self.report(report).await,
                command = mailbox.recv() => match command {
                    Some(Command::Delete { reply }) => return self.delete(reply).await,
                    Some(command) => self.command(command).await,
                    None => return End::Stopped,
                },
            };
            if let Err(error) = outcome {
                return End::failed(&error);
            }
        }
    }

    /// Takes the session off the list, unless somebody has asked for something in the meantime.
    fn retire(self, mailbox: &mpsc::Receiver<Command>) -> Option<Self> {
        let shared = Arc::clone(&self.shared);
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
        shared.warm.keep(Fold { header, agent, state, context });
        None
    }

    /// Carries out a command. An error here is one that the session cannot live with.
    async fn command(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Wake | Command::Delete { .. } => Ok(()),
            Command::Send { submission, reply } => {
                let result = self.submit(submission).await;
                answer(reply, result)
            }
            Command::Change { change, reply } => {
                let result = self.change(change).await;
                answer(reply, result)
            }
            Command::Expire { reply } => {
                let result = self.feed_input(Input::ActionsExpired).await.map(|_| ());
                answer(reply, result)
            }
            Command::EndRun { run_id, error, reply } => {
                let result = self.end_run(run_id, error).await;
                answer(reply, result)
            }
            Command::Archive { reply } => {
                let result = self.feed_input(Input::Archive).await.map(|_| ());
                answer(reply, result)
            }
        }
    }

    /// Takes what was sent, all or nothing, and returns what became of it in the log.
    async fn submit(&mut self, submission: Submission) -> Result<Vec<Event>> {
        let Submission { events, mut secrets, answers, expected_sequence } = submission;
        let actual = self.state.view.last_sequence;
        if expected_sequence.is_some_and(|expected| expected != actual) {
            return Err(Error::MovedOn { id: self.header.id.to_string() });
        }
        let opening = opening::of(&self.shared, &self.header, &self.agent, &self.state, &events).await?;
        let sent = events.len();
        let mut passwords = Vec::new();
        for (request_id, value) in answers {
            match self.state.pending().find(|action| action.id == request_id) {
                Some(action) if action.kind == ActionKind::Secret => {
                    secrets.extend(secret_name(action.call).map(|name| (name, value)));
                }
                _ => passwords.push((request_id, value)),
            }
        }
        let interrupts = events.iter().any(|event| matches!(event, UserEvent::Interrupt(_)));
        let said_so_far = if interrupts { self.feed.hold() } else { String::new() };
        let result = self.feed_input(Input::User { events, said_so_far, opening }).await;
        if interrupts {
            self.feed.release();
        }
        let events = result?;
        // What needs them starts after this.
        self.shared.secrets.keep(&self.header.id, secrets);
        for (request_id, password) in passwords {
            self.shared.secrets.keep_password(&self.header.id, request_id, password);
        }
        let mut taken: Vec<Event> = events.into_iter().filter(|event| event.payload.is_sent()).collect();
        // A message that ends the turn under way comes after the interrupt that it is.
        Ok(taken.split_off(taken.len().saturating_sub(sent)))
    }

    async fn change(&mut self, change: SessionChange) -> Result<()> {
        let SessionChange { title, metadata, conversation } = change;
        let metadata = match metadata {
            Some(patch) => {
                self.shared.deliveries.check_metadata(&patch)?;
                let mut merged = self.state.view.metadata.clone();
                merge_by_key(&mut merged, &patch);
                if let Some(problem) = metadata_problem(&merged) {
                    return Err(Error::Invalid { field: "metadata".to_owned(), problem });
                }
                Some(merged).filter(|merged| *merged != self.state.view.metadata)
            }
            None => None,
        };
        let title = title.map(|title| Titled { title, source: TitleSource::User });
        self.feed_input(Input::Change(Change { title, metadata, conversation })).await.map(drop)
    }

    async fn delete(mut self, reply: Reply<()>) -> End {
        self.end_run_with_session().await;
        if self.state.turn.is_some() {
            let interrupt = UserInterrupt { message: Some("The session is deleted.".to_owned()) };
            let events = vec![UserEvent::Interrupt(interrupt)];
            // The log is about to go; what matters is that nothing goes on running.
            drop(
                self.feed_input(Input::User {
                    events,
                    said_so_far: String::new(),
                    opening: Opening::default(),
                })
                .await,
            );
        }
        self.under_way.clear();
        self.delete_threads().await;
        let deleted = self.shared.store.delete_session(&self.header.tenant, &self.header.id).await;
        match deleted {
            Ok(_) => {
                observers::tell(&self.shared, self.this_turn(), Observation::SessionFinalize);
                drop(reply.send(Ok(())));
                End::Gone
            }
            Err(error) => {
                let error = error.into();
                let end = End::failed(&error);
                drop(reply.send(Err(error)));
                end
            }
        }
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

    /// Removes the logs of this session's subagents. One that cannot be removed is an orphan, and does no harm.
    async fn delete_threads(&self) {
        let engine = Engine { shared: Arc::clone(&self.shared) };
        for thread in engine.threads(&self.header.tenant, &self.header.id).await.unwrap_or_default() {
            let deleted = Box::pin(engine.delete_session(&self.header.tenant, &thread.id.session_id())).await;
            if let Err(error) = deleted {
                tracing::warn!(thread_id = %thread.id, %error, "a subagent's log could not be removed");
            }
        }
    }

    async fn report(&mut self, report: Report) -> Result<()> {
        let (effect, input, injected) = match report {
            Report::Ended { effect, input, injected } => (effect, input, injected),
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

    /// Feeds an input that nobody can send again, and so tries hard to write what comes of it.
    async fn insist(&mut self, input: Input) -> Result<()> {
        for pause in WRITE_RETRIES {
            match self.feed_input(input.clone()).await {
                Err(Error::Store(error)) if !matches!(error, petasos_store::Error::Stale { .. }) => {
                    tracing::warn!(session_id = %self.header.id, %error, "the log could not be written; trying again");
                    tokio::time::sleep(pause).await;
                }
                other => return other.map(|_| ()),
            }
        }
        self.feed_input(input).await.map(|_| ())
    }

    /// Steps, appends, and shows what was appended.
    pub(crate) async fn feed_input(&mut self, input: Input) -> Result<Vec<Event>> {
        let events = step::step(&self.state, input, &self.limits, now())?;
        if !events.is_empty() {
            let observed = observed(&self.state, &events);
            self.append(&events).await?;
            self.observe_events(observed);
        }
        Ok(events)
    }

    async fn append(&mut self, events: &[Event]) -> Result<()> {
        let mut state = self.state.clone();
        events.iter().for_each(|event| state.apply(event));
        // A fold is worth keeping where the session may sleep.
        let may_sleep = state.turn.as_ref().is_none_or(|turn| turn.is_paused());
        let checkpoint = if may_sleep { serde_json::to_vec(&state).ok() } else { None };
        let callbacks = self.callbacks(events).await?;
        let store = self.shared.store.as_ref();
        let (session, states) = ((&*self.header, &*self.agent), (&self.state, &state));
        let mut outbox = self.outbox.fill(&self.shared.deliveries, store, session, states, events).await?;
        outbox.new.extend(callbacks);
        let delivers = outbox != Default::default();
        let append = Append {
            session_id: self.header.id.clone(),
            expected_sequence: self.state.view.last_sequence,
            events: events.to_vec(),
            view: state.view.clone(),
            checkpoint,
            outbox,
        };
        let (number, before) = (self.next_number(), self.context.take());
        let store = self.shared.store.as_ref();
        // In this order: what waits for the disk may keep this thread.
        let ((context, call), appended) =
            tokio::join!(self.prepare(number, before, events, &state), store.append(append));
        if let Err(error) = appended {
            call.iter().for_each(|call| self.call_off(call));
            self.outbox.reset();
            return Err(error.into());
        }
        if delivers {
            self.shared.deliveries.wake();
        }
        self.state = state;
        self.context = context;
        self.feed.publish(events);
        self.shared.metrics.count(events);
        if self.state.view.expires_at().is_some() {
            self.shared.expiry.changed();
        }
        if events.iter().any(|event| matches!(event.payload, Payload::RunSettled(_))) {
            self.shared.runs.changed.notify_one();
        }
        if let Some(call) = call {
            self.begin(call);
        }
        Ok(())
    }

    fn turn_info(&self, turn_id: String) -> TurnInfo {
        turn_info(&self.shared, &self.header, &self.agent.model, self.root(), turn_id)
    }

    /// The turn under way.
    pub(crate) fn this_turn(&self) -> TurnInfo {
        self.turn_of(&self.state)
    }

    /// The turn that is under way in a state.
    pub(crate) fn turn_of(&self, state: &State) -> TurnInfo {
        self.turn_info(state.turn_id().map(|id| id.to_string()).unwrap_or_default())
    }

    /// Tells hooks about what the log now says. They run beside the turn, but for the ends of tool calls: the next
    /// model call waits until those were told.
    fn observe_events(&mut self, observed: Vec<Observed>) {
        for Observed { turn_id, mut observation } in observed {
            self.add_conversation(&mut observation);
            let goes_on = self.state.turn_id().is_some_and(|id| id.to_string() == turn_id);
            let turn = self.turn_info(turn_id);
            if goes_on && matches!(observation, Observation::PostToolCall { .. }) {
                self.ended_calls.push(observation);
            } else {
                observers::tell(&self.shared, turn, observation);
            }
        }
    }

    /// Puts in what was said, if somebody wants to know.
    fn add_conversation(&self, observation: &mut Observation) {
        if let Observation::PostLlmCall { user_message, history, .. } = observation
            && self.shared.hooks.wants(HookEvent::PostLlmCall)
            && let Some(context) = &self.context
        {
            context.task().clone_into(user_message);
            *history = context.messages();
        }
    }
}

/// The bounds of a session's turns, with how much its model can read. A subagent may make fewer model calls than the
/// session that it works for.
fn limits_of(shared: &Shared, agent: &AgentDefinition, state: &State) -> Limits {
    let is_thread = state.settings.as_ref().is_some_and(|settings| settings.thread.is_some());
    let limits = &shared.limits;
    Limits {
        turn_model_calls: if is_thread { limits.thread_model_calls } else { limits.turn_model_calls },
        // Nobody could be asked for a subagent.
        at_budget: if is_thread { AtBudget::Stop } else { limits.at_budget },
        context_tokens: Some(shared.models.catalog().compact_at(&agent.model)),
        ..*limits
    }
}

/// The variable that a secret was asked for.
fn secret_name(call: &Call) -> Option<String> {
    call.input.get("name").and_then(Value::as_str).map(str::to_owned)
}

/// Answers a command. Most errors are the caller's; a log that somebody else wrote to ends this actor.
fn answer<T>(reply: Reply<T>, result: Result<T>) -> Result<()> {
    let stale = match &result {
        Err(Error::Store(petasos_store::Error::Stale { what, expected, actual })) => {
            let (what, expected, actual) = (what.clone(), *expected, *actual);
            Err(Error::Store(petasos_store::Error::Stale { what, expected, actual }))
        }
        _ => Ok(()),
    };
    // The caller may have gone away; what it asked for is done all the same.
    drop(reply.send(result));
    stale
}
