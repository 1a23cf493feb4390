//! An engine with a store of its own and a scripted model, which can be stopped anywhere and started again.

use std::sync::Arc;
use std::time::Duration;

use petasos_core::Event;
use petasos_core::event::{
    Block, Payload, Scope, StopReason, ToolConfirmation, UserMessage, UserSteer, Verdict,
};
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::limits::Limits;
use petasos_core::step::UserEvent;
use petasos_engine::{
    DeliveryCredentials, DeliveryOptions, DeliverySettings, DeliveryView, Engine, Grace, HOOK_HEAD_START,
    Hooks, Item, LogRange, MemorySettings, NewSession, NoHooks, Options, Reader, RecoveryTimes, Rendered,
    Result, SessionDetail, SkillOptions, Start, Unattended,
};
use petasos_net::{Client, Egress, Guard, Options as NetOptions, Targets};
use petasos_store::sqlite::{Options as StoreOptions, SqliteStore};
use petasos_testkit::model_server::quick_retries;
use petasos_testkit::{ModelServer, within};
use petasos_tools::{Tool, Toolbox};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::store::{Moment, WatchedStore};

/// What an engine is made with.
pub(crate) struct Setup {
    pub(crate) tools: Toolbox,
    pub(crate) hooks: Arc<dyn Hooks>,
    pub(crate) limits: Limits,
    pub(crate) max_store_bytes: Option<u64>,
    pub(crate) event_webhook_url: Option<String>,
    pub(crate) recovery_times: RecoveryTimes,
    pub(crate) store_holds_runs: bool,
    pub(crate) store_stops_at_once: bool,
}

impl Default for Setup {
    fn default() -> Self {
        // No test of the engine runs a tool that uses its workspace.
        let tools = petasos_testkit::tools::builtin("/nonexistent".into());
        let limits = Limits::default();
        Setup {
            tools,
            hooks: Arc::new(NoHooks),
            limits,
            max_store_bytes: None,
            event_webhook_url: None,
            recovery_times: RecoveryTimes::default(),
            store_holds_runs: false,
            store_stops_at_once: false,
        }
    }
}

impl Setup {
    pub(crate) fn with_tool(mut self, tool: &(impl Tool + Clone)) -> Self {
        self.tools.add(tool.clone());
        self
    }

    pub(crate) fn with_hooks(mut self, hooks: &Arc<impl Hooks>) -> Self {
        self.hooks = Arc::clone(hooks) as _;
        self
    }
}

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) model: ModelServer,
    pub(crate) store: WatchedStore,
    pub(crate) setup: Setup,
    sqlite: SqliteStore,
    home: TempDir,
}

pub(crate) fn tenant() -> TenantId {
    "default".parse().unwrap()
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        Self::launch(setup, tempfile::tempdir().unwrap(), ModelServer::start().await).await
    }

    async fn launch(setup: Setup, home: TempDir, model: ModelServer) -> Self {
        let mut options = StoreOptions::new(home.path().join("petasos.db"));
        options.max_bytes = setup.max_store_bytes;
        let sqlite = SqliteStore::open(options).unwrap();
        let store = WatchedStore::new(sqlite.clone());
        if setup.store_holds_runs {
            store.hold_runs();
        }
        if setup.store_stops_at_once {
            store.stop_at(1, Moment::Before);
        }
        let engine = engine(&setup, &model, &store);
        World { engine, model, store, setup, sqlite, home }
    }

    /// Another engine on the same store, as a second process would have it.
    pub(crate) fn second_engine(&self) -> Engine {
        engine(&self.setup, &self.model, &self.store)
    }

    /// Stops everything where it is, and starts again on the same data.
    pub(crate) async fn restart(self) -> Self {
        self.restart_with(|_| ()).await
    }

    /// The same as a crash: the next start does not know that this one stopped in good order.
    pub(crate) async fn crash(self) -> Self {
        self.crash_with(|_| ()).await
    }

    /// The same with another setup.
    pub(crate) async fn crash_with(self, change: impl FnOnce(&mut Setup)) -> Self {
        self.store.lose_the_end();
        self.restart_with(change).await
    }

    /// A crash, and another one before the next process writes to a log.
    pub(crate) async fn crash_before_its_first_append(self) -> Self {
        let world = self.crash_with(|setup| setup.store_stops_at_once = true).await;
        within("an append", world.store.stopped()).await;
        world.crash_with(|setup| setup.store_stops_at_once = false).await
    }

    /// The same with another setup.
    pub(crate) async fn restart_with(self, change: impl FnOnce(&mut Setup)) -> Self {
        within("the engine to stop", self.engine.shutdown(Grace::NONE)).await;
        within("the store to close", self.sqlite.close()).await.unwrap();
        let World { model, mut setup, home, .. } = self;
        change(&mut setup);
        let world = Self::launch(setup, home, model).await;
        world.engine.recover().await.unwrap();
        world
    }

    /// A session whose agent has these fields.
    pub(crate) async fn session_with(&self, fields: Value) -> SessionId {
        let mut definition = json!({ "name": "Test", "model": "openai/scripted" });
        for (name, value) in fields.as_object().into_iter().flatten() {
            definition[name] = value.clone();
        }
        let definition = serde_json::from_value(definition).unwrap();
        let agent = self.engine.create_agent(&tenant(), None, definition).await.unwrap();
        let new = NewSession { platform: "api".to_owned(), ..NewSession::default() };
        self.engine.create_session(&tenant(), &agent.id, new).await.unwrap().header.id
    }

    pub(crate) async fn session(&self) -> SessionId {
        self.session_with(json!({})).await
    }

    /// A session whose agent runs every tool without asking.
    pub(crate) async fn trusting_session(&self) -> SessionId {
        let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
        self.session_with(json!({ "tools": [{ "type": "agent_toolset", "defaultConfig": policy }] })).await
    }

    pub(crate) async fn send(&self, id: &SessionId, event: UserEvent) -> Result<Vec<Event>> {
        within("an answer", self.engine.send(&tenant(), id, vec![event])).await
    }

    pub(crate) async fn message(&self, id: &SessionId, text: &str) -> Result<Vec<Event>> {
        self.send(id, message(text)).await
    }

    pub(crate) async fn detail(&self, id: &SessionId) -> SessionDetail {
        self.engine.session_detail(&tenant(), id).await.unwrap()
    }

    /// The ids of what the turn waits for.
    pub(crate) async fn pending(&self, id: &SessionId) -> Vec<String> {
        self.detail(id).await.state.pending().map(|action| action.id.to_owned()).collect()
    }

    pub(crate) async fn follow(&self, id: &SessionId, start: Start) -> Follower {
        Follower { reader: self.engine.follow(&tenant(), id, start).await.unwrap() }
    }

    /// Sends a message and follows the turn until it ends or pauses.
    pub(crate) async fn turn(&self, id: &SessionId, text: &str) -> Vec<Item> {
        let mut follower = self.follow(id, Start::Now).await;
        self.message(id, text).await.unwrap();
        follower.until_idle().await
    }

    /// The same, allowing the one call that waits for it.
    pub(crate) async fn turn_with_approval(&self, id: &SessionId, text: &str) -> Vec<Item> {
        let mut follower = self.follow(id, Start::Now).await;
        self.message(id, text).await.unwrap();
        let mut items = follower.until_idle().await;
        if let Some(call) = self.pending(id).await.first() {
            self.send(id, confirm(call, Verdict::Allow)).await.unwrap();
            items.extend(follower.until_idle().await);
        }
        items
    }

    /// The whole log.
    pub(crate) async fn log(&self, id: &SessionId) -> Vec<Event> {
        let mut part = self.engine.log_part(&tenant(), id, LogRange::default()).await.unwrap();
        let mut log = Vec::new();
        while let Some(event) = part.next().await.unwrap() {
            log.push(event);
        }
        log
    }

    /// Waits until no session has an actor.
    pub(crate) async fn asleep(&self) {
        within("all sessions to sleep", async {
            while self.engine.awake_sessions() > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

fn engine(setup: &Setup, model: &ModelServer, store: &WatchedStore) -> Engine {
    Engine::new(Options {
        store: Arc::new(store.clone()),
        models: model.models(quick_retries()),
        tools: setup.tools.clone(),
        hooks: Arc::clone(&setup.hooks),
        commands: None,
        limits: setup.limits,
        max_tool_output_chars: 1_000_000,
        tool_time: Duration::from_secs(600),
        hook_head_start: HOOK_HEAD_START,
        memory: MemorySettings::default(),
        skills: SkillOptions::default(),
        deliveries: deliveries(setup),
        unattended: Unattended::default(),
        callback_body: |_| Vec::new(),
        recovery_times: setup.recovery_times,
    })
}

/// Deliveries that show every event by its type.
fn deliveries(setup: &Setup) -> DeliveryOptions {
    let guard = Guard::new(Egress { allow: vec!["127.0.0.1".parse().unwrap()], only_hosts: Vec::new() });
    DeliveryOptions {
        guarded: Client::guarded(&NetOptions::default(), guard.clone()),
        trusted: Client::new(&NetOptions::default()),
        targets: Targets::new(guard),
        credentials: DeliveryCredentials::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(), None).unwrap(),
        event_webhook_url: setup.event_webhook_url.clone(),
        settings: DeliverySettings::default(),
        new_view: || Box::new(Types),
    }
}

struct Types;

impl DeliveryView for Types {
    fn push(&mut self, event: &Event) -> Option<Rendered> {
        let (offset, kind) = (event.sequence - 1, event.payload.type_name());
        Some(Rendered { offset, body: json!({ "offset": offset, "kind": kind }).to_string().into() })
    }
}

pub(crate) fn message(text: &str) -> UserEvent {
    UserEvent::Message(UserMessage::new(vec![Block::text(text)]))
}

pub(crate) fn steer(text: &str) -> UserEvent {
    UserEvent::Steer(UserSteer { message: text.to_owned() })
}

pub(crate) fn confirm(id: &str, result: Verdict) -> UserEvent {
    let tool_use_id = id.parse().unwrap();
    let scope = Scope::Once;
    UserEvent::ToolConfirmation(ToolConfirmation {
        tool_use_id,
        result,
        scope,
        reason: None,
        tool: None,
        pattern: None,
        also: Vec::new(),
    })
}

/// A reader that must not be kept waiting for ever.
pub(crate) struct Follower {
    reader: Reader,
}

impl Follower {
    /// The next item; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Item> {
        within("the next item", self.reader.next()).await.unwrap()
    }

    /// Items up to and including the first that fits.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Item) -> bool) -> Vec<Item> {
        let mut items = Vec::new();
        while !items.last().is_some_and(&fits) {
            items.push(self.next().await.expect("the reader ended too early"));
        }
        items
    }

    /// Items until the turn ends or pauses.
    pub(crate) async fn until_idle(&mut self) -> Vec<Item> {
        self.until(|item| stop_of(item).is_some()).await
    }
}

/// Why the session became idle with this item, if it did.
pub(crate) fn stop_of(item: &Item) -> Option<&StopReason> {
    match item {
        Item::Durable(event) => match &event.payload {
            Payload::StatusIdle(idle) => Some(&idle.stop_reason),
            _ => None,
        },
        Item::Live(_) => None,
    }
}

/// The stop reason of the last item.
pub(crate) fn last_stop(items: &[Item]) -> &StopReason {
    items.last().and_then(stop_of).expect("the last item is an idle one")
}

/// The live text of these items.
pub(crate) fn live_text(items: &[Item]) -> String {
    let texts = items.iter().filter_map(|item| match item {
        Item::Live(live) if live.kind == petasos_engine::LiveKind::Text => Some(live.text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The agent's messages in a log.
pub(crate) fn said(log: &[Event]) -> Vec<&str> {
    let texts = log.iter().filter_map(|event| match &event.payload {
        Payload::AgentMessage(message) => Some(message.text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The texts of tool results in a log.
pub(crate) fn results(log: &[Event]) -> Vec<String> {
    let texts = log.iter().filter_map(|event| match &event.payload {
        Payload::ToolResult(result) => Some(petasos_core::event::joined_text(&result.content)),
        _ => None,
    });
    texts.collect()
}

/// Checks what holds for every log: no gap, and one result for each tool use once its turn has ended.
pub(crate) fn check_log(log: &[Event]) {
    let sequences: Vec<u64> = log.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (1..=log.len() as u64).collect::<Vec<_>>());
    for event in log {
        let Payload::ToolUse(call) = &event.payload else { continue };
        let ends = |event: &&Event| match &event.payload {
            Payload::ToolResult(result) => result.tool_use_id == call.id,
            _ => false,
        };
        assert_eq!(log.iter().filter(ends).count(), 1, "one result for {}: {log:#?}", call.id);
    }
}
