//! One awake session: its only writer, and the driver of its turn.
//!
//! The actor holds the fold, never more truth than the log: it can be stopped anywhere, and the next one goes on
//! from what was appended. It ends by itself when no turn is running.

use std::sync::Arc;
use std::time::Duration;

use petasos_core::State;
use petasos_core::agent::AgentDefinition;
use petasos_core::context::Context;
use petasos_core::event::{Event, Payload, Scope, StopReason, Titled, Verdict};
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::session::SessionHeader;
use petasos_core::step::{self, Effect, Input, UserEvent};
use petasos_store::Append;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::agents::merge_by_key;
use crate::engine::{Shared, now, wake};
use crate::error::{Error, Result};
use crate::feed::{Feed, lock};
use crate::hooks::{Observation, TurnInfo};
use crate::load;
use crate::{model_call, tool_run};

/// What surfaces ask of a session.
pub(crate) enum Command {
    /// Nothing; the session is awake by now.
    Wake,
    /// Events from a person or application.
    Send { events: Vec<UserEvent>, reply: Reply<Vec<Event>> },
    /// A new title or metadata.
    Change { title: Option<Option<String>>, metadata: Option<Map<String, Value>>, reply: Reply<()> },
    /// The session is put away.
    Archive { reply: Reply<()> },
    /// The session is removed for good.
    Delete { reply: Reply<()> },
}

type Reply<T> = oneshot::Sender<Result<T>>;

/// What an effect came to.
pub(crate) struct Report {
    /// The effect, by the number under which it was started.
    pub(crate) effect: u64,
    /// What the step is told.
    pub(crate) input: Input,
    /// What `pre_llm_call` said, if it was asked: text for the user's message in every model call of the turn.
    pub(crate) injected: Option<String>,
}

/// How long an actor waits before it tries to write again.
const WRITE_RETRIES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(1000),
    Duration::from_millis(3000),
];

/// How long a session rests when it could not write at all.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Runs the actor of one session until it has nothing to do.
pub(crate) async fn run(
    shared: Arc<Shared>,
    tenant: TenantId,
    session_id: SessionId,
    mut mailbox: mpsc::Receiver<Command>,
) {
    let stopping = shared.stopping.clone();
    let life = async {
        match Actor::load(&shared, &tenant, &session_id).await {
            Ok(Some(actor)) => actor.live(&mut mailbox).await,
            Ok(None) => End::Gone,
            Err(error) => End::Failed(with_cause(&error)),
        }
    };
    let end = tokio::select! {
        end = life => end,
        () = stopping.cancelled() => End::Stopped,
    };
    match end {
        End::Retired => {}
        End::Stopped => close(&shared, &session_id, &mut mailbox, || Error::ShuttingDown),
        End::Gone => {
            close(&shared, &session_id, &mut mailbox, || not_found(&session_id));
            shared.feeds.get(&session_id).close();
        }
        End::Failed(cause) => {
            tracing::error!(%session_id, cause, "the session stops and is picked up again from its log");
            close(&shared, &session_id, &mut mailbox, || {
                let context = "the session could not be written".to_owned();
                Error::Store(petasos_store::Error::Failed { context, source: cause.clone().into() })
            });
            rest_and_wake(shared, tenant, session_id);
        }
    }
}

/// How the life of an actor ends.
enum End {
    /// Nothing is left to do. The session is already off the list.
    Retired,
    /// The session does not exist, or no longer.
    Gone,
    /// The server stops.
    Stopped,
    /// The store failed, or somebody else wrote; with the cause for the log.
    Failed(String),
}

/// An error and what caused it, on one line.
fn with_cause(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn not_found(session_id: &SessionId) -> Error {
    Error::NotFound { kind: "session", id: session_id.to_string() }
}

/// Takes the session off the list and answers what is still in its mailbox.
fn close(
    shared: &Shared,
    session_id: &SessionId,
    mailbox: &mut mpsc::Receiver<Command>,
    error: impl Fn() -> Error,
) {
    let mut awake = lock(&shared.awake);
    awake.remove(session_id);
    mailbox.close();
    while let Ok(command) = mailbox.try_recv() {
        // Nobody waits any more if the reply cannot be sent.
        match command {
            Command::Wake => {}
            Command::Send { reply, .. } => drop(reply.send(Err(error()))),
            Command::Change { reply, .. } | Command::Archive { reply } | Command::Delete { reply } => {
                drop(reply.send(Err(error())));
            }
        }
    }
}

/// Wakes a session whose turn could not go on, after a while.
fn rest_and_wake(shared: Arc<Shared>, tenant: TenantId, session_id: SessionId) {
    let tracker = shared.actors.clone();
    tracker.spawn(async move {
        tokio::select! {
            () = tokio::time::sleep(REST_AFTER_FAILURE) => wake(&shared, &tenant, &session_id),
            () = shared.closing.cancelled() => {}
        }
    });
}

/// The session while it is awake.
struct Actor {
    shared: Arc<Shared>,
    header: Arc<SessionHeader>,
    agent: Arc<AgentDefinition>,
    state: State,
    /// What the model reads; folded when it is first needed.
    context: Option<Context>,
    /// What `pre_llm_call` said in this turn; none if it has yet to be asked.
    injected: Option<String>,
    feed: Arc<Feed>,
    under_way: Vec<UnderWay>,
    started: u64,
    reports: mpsc::UnboundedSender<Report>,
    inbox: mpsc::UnboundedReceiver<Report>,
    /// Whether the turn was under way before this actor, so that readers may have seen text that is gone.
    resumed: bool,
}

/// An effect that is being carried out. Dropping it stops it.
struct UnderWay {
    number: u64,
    effect: Effect,
    task: AbortHandle,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Actor {
    async fn load(shared: &Arc<Shared>, tenant: &TenantId, session_id: &SessionId) -> Result<Option<Actor>> {
        let Some(record) = shared.store.session(tenant, session_id).await? else { return Ok(None) };
        let state = load::state(shared.store.as_ref(), &record).await?;
        let header = Arc::new(record.header);
        let version = Some(header.agent_version);
        let Some(agent) = shared.store.agent(tenant, &header.agent_id, version).await? else {
            return Err(Error::NotFound { kind: "agent", id: header.agent_id.to_string() });
        };
        let feed = shared.feeds.get(session_id);
        feed.reaches(state.view.last_sequence);
        let (reports, inbox) = mpsc::unbounded_channel();
        let resumed = state.turn.as_ref().is_some_and(|turn| !turn.is_paused());
        Ok(Some(Actor {
            shared: Arc::clone(shared),
            header,
            agent: Arc::new(agent.definition),
            state,
            context: None,
            injected: None,
            feed,
            under_way: Vec::new(),
            started: 0,
            reports,
            inbox,
            resumed,
        }))
    }

    async fn live(mut self, mailbox: &mut mpsc::Receiver<Command>) -> End {
        if let Err(error) = self.insist(Input::Recover).await {
            return End::Failed(with_cause(&error));
        }
        loop {
            if let Err(error) = self.reconcile().await {
                return End::Failed(with_cause(&error));
            }
            self.resumed = false;
            if self.under_way.is_empty() && self.retire(mailbox) {
                self.feed.forget();
                return End::Retired;
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
                return End::Failed(with_cause(&error));
            }
        }
    }

    /// Takes the session off the list if nobody has asked for anything in the meantime.
    fn retire(&self, mailbox: &mpsc::Receiver<Command>) -> bool {
        let mut awake = lock(&self.shared.awake);
        let idle = mailbox.is_empty();
        if idle {
            awake.remove(&self.header.id);
        }
        idle
    }

    /// Carries out a command. An error here is one that the session cannot live with.
    async fn command(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Wake | Command::Delete { .. } => Ok(()),
            Command::Send { events, reply } => {
                let sent = events.len();
                let input = Input::User { events, said_so_far: self.feed.said_so_far() };
                let result = self.feed_input(input).await;
                let accepted = result.map(|events| {
                    let from_user = events.into_iter().filter(|event| event.payload.is_from_user());
                    from_user.take(sent).collect()
                });
                answer(reply, accepted)
            }
            Command::Change { title, metadata, reply } => {
                let result = self.change(title, metadata).await;
                answer(reply, result)
            }
            Command::Archive { reply } => {
                let result = self.feed_input(Input::Archive).await.map(|_| ());
                if result.is_ok() {
                    self.observe(Observation::SessionFinalize);
                }
                answer(reply, result)
            }
        }
    }

    async fn change(
        &mut self,
        title: Option<Option<String>>,
        metadata: Option<Map<String, Value>>,
    ) -> Result<()> {
        if let Some(title) = title {
            let source = petasos_core::event::TitleSource::User;
            self.feed_input(Input::Title(Titled { title, source })).await?;
        }
        if let Some(patch) = metadata {
            let mut merged = self.state.view.metadata.clone();
            merge_by_key(&mut merged, &patch);
            if let Some(problem) = petasos_core::agent::metadata_problem(&merged) {
                return Err(Error::Invalid { field: "metadata".to_owned(), problem });
            }
            if merged != self.state.view.metadata {
                self.feed_input(Input::Metadata(merged)).await?;
            }
        }
        Ok(())
    }

    async fn delete(mut self, reply: Reply<()>) -> End {
        if self.state.turn.is_some() {
            let interrupt =
                petasos_core::event::UserInterrupt { message: Some("The session is deleted.".to_owned()) };
            let events = vec![UserEvent::Interrupt(interrupt)];
            // The log is about to go; what matters is that nothing goes on running.
            drop(self.feed_input(Input::User { events, said_so_far: String::new() }).await);
        }
        self.under_way.clear();
        self.observe(Observation::SessionFinalize);
        let deleted = self.shared.store.delete_session(&self.header.tenant, &self.header.id).await;
        match deleted {
            Ok(_) => {
                drop(reply.send(Ok(())));
                End::Gone
            }
            Err(error) => {
                let cause = with_cause(&error);
                drop(reply.send(Err(error.into())));
                End::Failed(cause)
            }
        }
    }

    async fn report(&mut self, report: Report) -> Result<()> {
        let Some(index) = self.under_way.iter().position(|under_way| under_way.number == report.effect)
        else {
            // It was stopped, and ended before it noticed.
            return Ok(());
        };
        self.under_way.swap_remove(index);
        if report.injected.is_some() {
            self.injected = report.injected;
        }
        self.insist(report.input).await
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
    async fn feed_input(&mut self, input: Input) -> Result<Vec<Event>> {
        let events = step::step(&self.state, input, &self.shared.limits, now())?;
        if !events.is_empty() {
            self.append(&events).await?;
            self.observe_events(&events);
        }
        Ok(events)
    }

    async fn append(&mut self, events: &[Event]) -> Result<()> {
        let mut state = self.state.clone();
        events.iter().for_each(|event| state.apply(event));
        // A fold is worth keeping where the session may sleep.
        let may_sleep = state.turn.as_ref().is_none_or(|turn| turn.is_paused());
        let checkpoint = if may_sleep { serde_json::to_vec(&state).ok() } else { None };
        let append = Append {
            session_id: self.header.id.clone(),
            expected_sequence: self.state.view.last_sequence,
            events: events.to_vec(),
            view: state.view.clone(),
            checkpoint,
        };
        self.shared.store.append(append).await?;
        self.state = state;
        if let Some(context) = &mut self.context {
            events.iter().for_each(|event| context.apply(event));
        }
        self.feed.publish(events);
        Ok(())
    }

    /// Starts what the state wants and is not under way, and stops what it no longer wants.
    async fn reconcile(&mut self) -> Result<()> {
        let wanted = step::effects(&self.state, &self.shared.limits);
        self.under_way.retain(|under_way| wanted.contains(&under_way.effect));
        for effect in wanted {
            if self.under_way.iter().any(|under_way| under_way.effect == effect) {
                continue;
            }
            self.started += 1;
            let number = self.started;
            let task = self.start(number, &effect).await?;
            self.under_way.push(UnderWay { number, effect, task });
        }
        Ok(())
    }

    async fn start(&mut self, number: u64, effect: &Effect) -> Result<AbortHandle> {
        let task = match effect {
            Effect::CallModel { call, .. } => {
                if *call == 1 {
                    self.injected = None;
                }
                let context = match self.context.take() {
                    Some(context) => context,
                    None => load::context(self.shared.store.as_ref(), &self.header.id).await?,
                };
                let (messages, turn_message) = (context.messages(), context.turn_message());
                self.context = Some(context);
                let live_call = self.feed.begin_call(self.resumed);
                tokio::spawn(model_call::run(model_call::ModelCall {
                    shared: Arc::clone(&self.shared),
                    header: Arc::clone(&self.header),
                    agent: Arc::clone(&self.agent),
                    turn: self.turn_info(),
                    feed: Arc::clone(&self.feed),
                    live_call,
                    messages,
                    turn_message,
                    call: *call,
                    first_of_session: self.state.view.model_calls == 0 && *call == 1,
                    injected: self.injected.clone(),
                    effect: number,
                    reports: self.reports.clone(),
                }))
            }
            Effect::RunTool(call) => tokio::spawn(tool_run::run(tool_run::ToolRun {
                shared: Arc::clone(&self.shared),
                header: Arc::clone(&self.header),
                turn: self.turn_info(),
                call: call.clone(),
                effect: number,
                reports: self.reports.clone(),
            })),
            Effect::Deadline(at) => {
                let reports = self.reports.clone();
                let wait = Duration::try_from(at.duration_since(now())).unwrap_or_default();
                tokio::spawn(async move {
                    tokio::time::sleep(wait).await;
                    // The actor may be gone, and then nobody needs the news.
                    drop(reports.send(Report {
                        effect: number,
                        input: Input::DeadlinePassed,
                        injected: None,
                    }));
                })
            }
        };
        Ok(task.abort_handle())
    }

    fn turn_info(&self) -> TurnInfo {
        TurnInfo {
            session_id: self.header.id.clone(),
            agent_id: self.header.agent_id.clone(),
            user_id: self.header.user_id.clone(),
            turn_id: self.state.turn_id().map(|id| id.to_string()).unwrap_or_default(),
            platform: self.header.platform.clone(),
            model: self.agent.model.clone(),
        }
    }

    /// Tells hooks about what the log now says. They run beside the turn.
    fn observe_events(&self, events: &[Event]) {
        for event in events {
            let observation = match &event.payload {
                Payload::ToolUse(call) | Payload::McpToolUse(call) if call.requires_action => {
                    let (tool_use_id, tool) = (call.id.to_string(), call.tool.clone());
                    Observation::PreApprovalRequest { tool_use_id, tool }
                }
                Payload::UserToolConfirmation(confirmation) => {
                    let choice = match (confirmation.result, confirmation.scope) {
                        (Verdict::Deny, _) => "deny",
                        (Verdict::Allow, Scope::Once) => "once",
                        (Verdict::Allow, Scope::Session) => "session",
                        (Verdict::Allow, Scope::Always) => "always",
                    };
                    Observation::PostApprovalResponse {
                        tool_use_id: confirmation.tool_use_id.to_string(),
                        choice,
                    }
                }
                Payload::StatusIdle(idle) => match &idle.stop_reason {
                    StopReason::RequiresAction { .. } => continue,
                    StopReason::EndTurn { interrupted, .. } => {
                        if !*interrupted {
                            self.observe(Observation::PostLlmCall { text: last_text(events) });
                        }
                        Observation::SessionEnd { completed: !*interrupted, interrupted: *interrupted }
                    }
                    StopReason::Error { .. } => {
                        Observation::SessionEnd { completed: false, interrupted: false }
                    }
                },
                _ => continue,
            };
            self.observe(observation);
        }
    }

    fn observe(&self, observation: Observation) {
        let (hooks, turn) = (Arc::clone(&self.shared.hooks), self.turn_info());
        self.shared.actors.spawn(async move { hooks.observe(&turn, observation).await });
    }
}

fn last_text(events: &[Event]) -> String {
    let texts = events.iter().rev().find_map(|event| match &event.payload {
        Payload::AgentMessage(message) => Some(message.text.clone()),
        _ => None,
    });
    texts.unwrap_or_default()
}

/// Answers a command. Most errors are the caller's; a log that somebody else wrote to ends this actor.
fn answer<T>(reply: Reply<T>, result: Result<T>) -> Result<()> {
    let stale = matches!(&result, Err(Error::Store(petasos_store::Error::Stale { .. })));
    // The caller may have gone away; what it asked for is done all the same.
    drop(reply.send(result));
    if stale { Err(Error::Store(petasos_store::Error::Closed)) } else { Ok(()) }
}
