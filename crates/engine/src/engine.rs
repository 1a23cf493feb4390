//! The door to all sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::limits::Limits;
use petasos_hooks::Hooks;
use petasos_hooks::python::PythonHosts;
use petasos_models::Models;
use petasos_store::Store;
use petasos_tools::Toolbox;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::actor::{self, Command};
use crate::deliveries::{self, Deliveries, DeliveryOptions};
use crate::error::{Error, Result};
use crate::expiry::{self, Expiry};
use crate::feed::{Feeds, lock};
use crate::injected::Injected;
use crate::memory::{MemorySettings, MemoryTool};
use crate::metrics::Metrics;
use crate::observers::Observers;
use crate::own_workspace;
use crate::recovery::{Hold, Recovery, RecoveryTimes};
use crate::rest::Resting;
use crate::routines::{CallbackBody, Runs};
use crate::secrets::Secrets;
use crate::session_search::SessionSearch;
use crate::skills::{SkillOptions, Skills};
use crate::warm::Warm;

/// How long the first model call of a session usually waits for what its observers are told before it.
pub const HOOK_HEAD_START: Duration = Duration::from_millis(200);

/// How many requests may wait for one session.
const MAX_WAITING: usize = 256;

/// What an engine needs.
pub struct Options {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// The models that agents can name.
    pub models: Models,
    /// The tools that agents can use.
    pub tools: Toolbox,
    /// User code at the points of a turn.
    pub hooks: Arc<dyn Hooks>,
    /// Plugins whose slash commands people can use.
    pub commands: Option<PythonHosts>,
    /// Bounds of turns and sessions.
    pub limits: Limits,
    /// The most characters of a tool's result that go into the log.
    pub max_tool_output_chars: usize,
    /// The most time that one tool call may take.
    pub tool_time: Duration,
    /// How long the first model call of a session waits for what its observers are told before it.
    pub hook_head_start: Duration,
    /// How much agents may note about users and their work.
    pub memory: MemorySettings,
    /// Where skills come from.
    pub skills: SkillOptions,
    /// How webhooks and callbacks go out.
    pub deliveries: DeliveryOptions,
    /// What happens to a call that a person would have to allow, where nobody is.
    pub unattended: Unattended,
    /// What a run that is settled looks like where it reports.
    pub callback_body: CallbackBody,
    /// How long things take that crash loops are told by.
    pub recovery_times: RecoveryTimes,
}

/// What happens to a call that a person would have to allow, in a run or a subagent that nobody attends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unattended {
    /// It is refused, and the model is told so.
    #[default]
    Deny,
    /// It runs. What is refused whoever asks is still refused.
    Allow,
}

/// How long is waited for what is under way when everything stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// For turns to end.
    pub turns: Duration,
    /// For hooks that run beside turns, each of which has a limit of its own.
    pub hooks: Duration,
}

impl Grace {
    /// Everything stops where it is.
    pub const NONE: Grace = Grace { turns: Duration::ZERO, hooks: Duration::ZERO };
}

/// The door to all sessions. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

/// What the engine and all actors share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) models: Models,
    pub(crate) tools: Toolbox,
    pub(crate) hooks: Arc<dyn Hooks>,
    pub(crate) commands: Option<PythonHosts>,
    pub(crate) limits: Limits,
    pub(crate) max_tool_output_chars: usize,
    pub(crate) tool_time: Duration,
    pub(crate) hook_head_start: Duration,
    pub(crate) memory: MemorySettings,
    pub(crate) skills: Arc<Skills>,
    pub(crate) unattended: Unattended,
    pub(crate) callback_body: CallbackBody,
    pub(crate) runs: Runs,
    pub(crate) feeds: Feeds,
    pub(crate) metrics: Metrics,
    pub(crate) deliveries: Deliveries,
    /// Sessions that have an actor. Commands are queued under this lock and an actor retires under it, so none
    /// is queued for an actor that is gone.
    /// The tenant belongs to the name: a session of somebody else is none, and must not be reached or blocked.
    pub(crate) awake: Mutex<HashMap<(TenantId, SessionId), mpsc::Sender<Command>>>,
    /// Everything that runs: actors and what they have under way. Observers have tasks of their own.
    pub(crate) tasks: TaskTracker,
    pub(crate) observers: Observers,
    pub(crate) resting: Resting,
    pub(crate) recovery: Recovery,
    pub(crate) warm: Warm,
    pub(crate) injected: Injected,
    pub(crate) expiry: Expiry,
    pub(crate) secrets: Secrets,
    /// No new turns and no new requests.
    pub(crate) closing: CancellationToken,
    /// Everything stops where it is.
    pub(crate) stopping: CancellationToken,
}

impl Engine {
    /// Makes an engine. Call [`Engine::recover`] before serving.
    pub fn new(options: Options) -> Self {
        let mut tools = options.tools;
        let pool = tools.workspaces().map(|workspaces| workspaces.pool().clone()).unwrap_or_default();
        let skills = Arc::new(Skills::new(Arc::clone(&options.store), options.skills, pool));
        // These work on what the store keeps for users, so they are made here.
        tools.add(MemoryTool { store: Arc::clone(&options.store), settings: options.memory });
        tools.add(SessionSearch(Arc::clone(&options.store)));
        skills.add_tools(&mut tools);
        let shared = Shared {
            store: options.store,
            metrics: Metrics::new(options.models.provider_names()),
            models: options.models,
            tools,
            hooks: options.hooks,
            commands: options.commands,
            limits: options.limits,
            max_tool_output_chars: options.max_tool_output_chars,
            tool_time: options.tool_time,
            hook_head_start: options.hook_head_start,
            memory: options.memory,
            skills,
            unattended: options.unattended,
            callback_body: options.callback_body,
            runs: Runs::default(),
            feeds: Feeds::default(),
            deliveries: Deliveries::new(options.deliveries),
            awake: Mutex::new(HashMap::new()),
            tasks: TaskTracker::new(),
            observers: Observers::default(),
            resting: Resting::default(),
            recovery: Recovery::new(options.recovery_times),
            warm: Warm::default(),
            injected: Injected::default(),
            expiry: Expiry::default(),
            secrets: Secrets::default(),
            closing: CancellationToken::new(),
            stopping: CancellationToken::new(),
        };
        Engine { shared: Arc::new(shared) }
    }

    /// Wakes every session whose turn was under way when the last process ended, begins to watch the times of those that
    /// wait for somebody and to send what is to be delivered, and gets runs and schedules going. Returns how many were
    /// woken. Call it once.
    pub async fn recover(&self) -> Result<usize> {
        self.begin_recovery().await?;
        self.shared.tasks.spawn(deliveries::run(Arc::clone(&self.shared)));
        let running = self.shared.store.running_sessions().await?;
        for (tenant, session_id) in &running {
            if self.shared.recovery.set_aside.hold_of(tenant, session_id) != Hold::Wait {
                wake(&self.shared, tenant, session_id);
            }
        }
        self.shared.tasks.spawn(expiry::watch(Arc::clone(&self.shared)));
        self.shared.tasks.spawn(own_workspace::remove_noted(Arc::clone(&self.shared)));
        self.recover_runs().await?;
        Ok(running.len())
    }

    /// Lets turns and hooks end, then stops everything where it is. What is cut off of turns goes on at the next
    /// start.
    pub async fn shutdown(&self, grace: Grace) {
        self.shared.closing.cancel();
        self.shared.tasks.close();
        if tokio::time::timeout(grace.turns, self.shared.tasks.wait()).await.is_err() {
            tracing::info!("turns are still running; they go on at the next start");
        }
        if tokio::time::timeout(grace.hooks, self.hooks_settled()).await.is_err() {
            tracing::info!("hooks are still running and are stopped");
        }
        self.shared.stopping.cancel();
        self.shared.feeds.close_all();
        self.shared.tasks.wait().await;
        self.shared.observers.told().await;
        self.end_recovery().await;
    }

    /// Waits until hooks were told of everything, and those that nobody waits for have ended.
    async fn hooks_settled(&self) {
        self.shared.observers.told().await;
        self.shared.hooks.settled().await;
    }

    /// How many model calls a turn may make.
    pub fn turn_model_calls(&self) -> u32 {
        self.shared.limits.turn_model_calls
    }

    /// What the engine counts.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// What is wrong although everything goes on, for people who look after the server.
    pub fn problems(&self) -> Vec<String> {
        let of_store = self.shared.store.problem();
        of_store.into_iter().chain(self.shared.hooks.problems()).collect()
    }

    /// What the store has done.
    pub fn store_stats(&self) -> petasos_store::Stats {
        self.shared.store.stats()
    }

    /// Whether everything stops where it is. Readers of all sessions end then.
    pub fn is_stopping(&self) -> bool {
        self.shared.stopping.is_cancelled()
    }

    /// How many sessions have an actor.
    pub fn awake_sessions(&self) -> usize {
        lock(&self.shared.awake).len()
    }

    /// How many sessions have an actor or a reader.
    pub fn held_sessions(&self) -> usize {
        self.shared.feeds.count()
    }

    /// Hands a command to the session's actor and waits for what comes of it.
    pub(crate) async fn command<T>(
        &self,
        tenant: &TenantId,
        session_id: &SessionId,
        command: impl FnOnce(oneshot::Sender<Result<T>>) -> Command,
    ) -> Result<T> {
        if self.shared.closing.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let (reply, answer) = oneshot::channel();
        queue(&self.shared, tenant, session_id, command(reply))?;
        // The actor drops the reply only if it is stopped, by us or by a bug.
        answer.await.unwrap_or_else(|_| Err(self.dropped()))
    }

    fn dropped(&self) -> Error {
        if self.shared.closing.is_cancelled() {
            return Error::CutOff;
        }
        let context = "carry out a request".to_owned();
        let source = "the session stopped in the middle of it".into();
        Error::Store(petasos_store::Error::Failed { context, source })
    }
}

/// Queues a command for the session's actor, which is started if there is none.
fn queue(shared: &Arc<Shared>, tenant: &TenantId, session_id: &SessionId, command: Command) -> Result<()> {
    let mut awake = lock(&shared.awake);
    let sender = awake.entry((tenant.clone(), session_id.clone())).or_insert_with(|| {
        let (sender, mailbox) = mpsc::channel(MAX_WAITING);
        let actor = actor::run(Arc::clone(shared), tenant.clone(), session_id.clone(), mailbox);
        // Boxed, or it would be moved about four times until it runs, and it is large.
        shared.tasks.spawn(Box::pin(actor));
        sender
    });
    sender.try_send(command).map_err(|error| match error {
        TrySendError::Full(_) => Error::Busy { id: session_id.to_string() },
        TrySendError::Closed(_) => Error::ShuttingDown,
    })
}

/// Makes sure that a session has an actor.
pub(crate) fn wake(shared: &Arc<Shared>, tenant: &TenantId, session_id: &SessionId) {
    if queue(shared, tenant, session_id, Command::Wake).is_err() {
        tracing::warn!(%session_id, "the session could not be woken");
    }
}

/// The present, as the log records it: whole microseconds, so that every store and every JSON reader agrees.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}
