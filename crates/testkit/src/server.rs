//! The real server on port 0, on a real store, with the scripted model.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use petasos_core::limits::Limits;
use petasos_engine::{
    DeliveryCredentials, DeliveryOptions, DeliverySettings, Engine, Grace, Hooks, MemorySettings, NoHooks,
    Options, RecoveryTimes, SkillOptions, SkillSettings, Unattended,
};
use petasos_hooks::python::{PluginSkill, PythonHosts};
use petasos_models::{Catalog, Settings};
use petasos_net::{Client as HttpClient, Guard, Options as NetOptions, Targets};
use petasos_server::{Patience, RateLimit, Server, UnknownFields};
use petasos_store::sqlite::{Options as StoreOptions, SqliteStore};
use petasos_tools::{Tool, Toolbox};
use secrecy::SecretString;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::model_server::{ModelServer, quick_retries};
use crate::within;

const ADMIN_KEY: &str = "pk_admin_key_of_tests";
/// What deliveries are signed with.
pub const DELIVERY_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// How a test server is set up.
#[derive(Clone)]
pub struct Setup {
    /// Bounds of turns and sessions.
    pub limits: Limits,
    /// Where the workspaces are.
    pub workspaces: Arc<TempDir>,
    /// The built-in tools and those of the test.
    pub tools: Toolbox,
    /// Hooks that the test watches.
    pub hooks: Arc<dyn Hooks>,
    /// Plugins whose slash commands people can use.
    pub commands: Option<PythonHosts>,
    /// How model calls are retried.
    pub models: Settings,
    /// What is known about models.
    pub catalog: Catalog,
    /// The largest request body.
    pub max_body_bytes: usize,
    /// How often a quiet stream gets a comment.
    pub keep_alive: Duration,
    /// How long peers may take.
    pub patience: Patience,
    /// How many requests each key may make.
    pub rate_limit: Option<RateLimit>,
    /// How many connections may be open.
    pub max_connections: usize,
    /// Whether `/metrics` needs no key.
    pub metrics_public: bool,
    /// The largest size of the database.
    pub max_store_bytes: Option<u64>,
    /// The most time that one tool call may take.
    pub tool_time: Duration,
    /// How much agents may note.
    pub memory: MemorySettings,
    /// Bounds of skills.
    pub skills: SkillSettings,
    /// Skills that plugins bring.
    pub plugin_skills: Vec<PluginSkill>,
    /// What happens to a call that a person would have to allow, where nobody is.
    pub unattended: Unattended,
    /// How long things take that crash loops are told by.
    pub recovery_times: RecoveryTimes,
    /// What may be reached on the word of a caller or a model.
    pub guard: Guard,
    /// Time and attempts of deliveries.
    pub deliveries: DeliverySettings,
    /// What deliveries of the tenant `default` are sent with; derived unless given.
    pub delivery_token: Option<String>,
    /// Where events go that neither session nor agent sends anywhere.
    pub event_webhook_url: Option<String>,
    /// What is said about the confinement of commands.
    pub sandbox: Option<petasos_sandbox::Sandbox>,
    /// What happens to fields of a body that mean nothing.
    pub unknown_fields: UnknownFields,
}

impl Default for Setup {
    fn default() -> Self {
        let workspaces = Arc::new(tempfile::tempdir().unwrap());
        Setup {
            limits: Limits::default(),
            tools: crate::tools::builtin(workspaces.path().to_owned()),
            workspaces,
            hooks: Arc::new(NoHooks),
            commands: None,
            models: quick_retries(),
            catalog: Catalog::default(),
            max_body_bytes: 16 * 1024 * 1024,
            keep_alive: Duration::from_secs(15),
            patience: Patience::default(),
            rate_limit: None,
            max_connections: petasos_server::MAX_CONNECTIONS,
            metrics_public: false,
            max_store_bytes: None,
            tool_time: Duration::from_secs(60),
            memory: MemorySettings::default(),
            skills: SkillSettings::default(),
            plugin_skills: Vec::new(),
            unattended: Unattended::default(),
            recovery_times: RecoveryTimes::default(),
            guard: Guard::default(),
            deliveries: DeliverySettings::default(),
            delivery_token: None,
            event_webhook_url: None,
            sandbox: None,
            unknown_fields: UnknownFields::default(),
        }
    }
}

impl Setup {
    /// The same with one more tool.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Tool) -> Self {
        self.tools.add(tool);
        self
    }

    fn delivery_options(&self) -> DeliveryOptions {
        let token = self.delivery_token.clone().map(SecretString::from);
        DeliveryOptions {
            guarded: HttpClient::guarded(&NetOptions::default(), self.guard.clone()),
            trusted: HttpClient::new(&NetOptions::default()),
            targets: Targets::new(self.guard.clone()),
            credentials: DeliveryCredentials::new(DELIVERY_SECRET.into(), token).unwrap(),
            event_webhook_url: self.event_webhook_url.clone(),
            settings: self.deliveries,
            new_view: petasos_server::conversation_view,
        }
    }
}

/// A running server with its store and its model.
pub struct TestServer {
    /// The scripted model behind `openai/…`, `responses/…` and `anthropic/…`.
    pub model: ModelServer,
    /// A client with the admin key.
    pub client: Client,
    /// The engine of the server.
    pub engine: Engine,
    /// Where the server listens.
    pub url: String,
    setup: Setup,
    home: TempDir,
    store: SqliteStore,
    shutdown: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl TestServer {
    /// Starts a server with the usual setup.
    pub async fn start() -> Self {
        Self::start_with(Setup::default()).await
    }

    /// Starts a server.
    pub async fn start_with(setup: Setup) -> Self {
        let model = ModelServer::start().await;
        // Every test would carry all that a start holds in its own future otherwise.
        Box::pin(Self::launch(setup, tempfile::tempdir().unwrap(), model)).await
    }

    async fn launch(setup: Setup, home: TempDir, model: ModelServer) -> Self {
        let mut options = StoreOptions::new(home.path().join("petasos.db"));
        options.max_bytes = setup.max_store_bytes;
        let store = SqliteStore::open(options).unwrap();
        let engine = Engine::new(Options {
            store: Arc::new(store.clone()),
            models: model.models(setup.models.clone()).with_catalog(setup.catalog.clone()),
            tools: setup.tools.clone(),
            hooks: Arc::clone(&setup.hooks),
            commands: setup.commands.clone(),
            limits: setup.limits,
            max_tool_output_chars: 100_000,
            tool_time: setup.tool_time,
            // However busy the machine is, what a test expects first comes first.
            hook_head_start: crate::PATIENCE,
            memory: setup.memory,
            unattended: setup.unattended,
            recovery_times: setup.recovery_times,
            callback_body: petasos_server::callback_body,
            skills: SkillOptions {
                of_plugins: setup.plugin_skills.clone(),
                settings: setup.skills,
                directory: Some(home.path().join("skills")),
                client: Some(HttpClient::guarded(&NetOptions::default(), setup.guard.clone())),
            },
            deliveries: setup.delivery_options(),
        });
        engine.recover().await.unwrap();
        let options = petasos_server::Options {
            engine: engine.clone(),
            admin_key: SecretString::from(ADMIN_KEY),
            cors_origins: Vec::new(),
            max_body_bytes: setup.max_body_bytes,
            keep_alive: setup.keep_alive,
            patience: setup.patience,
            max_connections: setup.max_connections,
            metrics_public: setup.metrics_public,
            rate_limit: setup.rate_limit,
            unknown_fields: setup.unknown_fields,
            backups: Some(petasos_server::Backups {
                store: Arc::new(store.clone()),
                directory: home.path().join("backups"),
                keep: NonZero::new(3).unwrap(),
            }),
            sandbox: setup.sandbox.clone(),
        };
        let server = Server::bind("127.0.0.1:0", options).await.unwrap();
        let url = format!("http://{}", server.local_addr());
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { server.run(shutdown).await.unwrap() }
        });
        let client = Client::new(&url, ADMIN_KEY);
        TestServer { model, client, engine, url, setup, home, store, shutdown, serving: Some(serving) }
    }

    /// A client with another key; an empty one sends none.
    pub fn client_with(&self, key: &str) -> Client {
        Client::new(&self.url, key)
    }

    /// The store of the server, to look behind it.
    pub fn store(&self) -> &SqliteStore {
        &self.store
    }

    /// The directory of the server's data.
    pub fn home(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    /// Creates an agent on the scripted model, with these fields besides.
    pub async fn agent_with(&self, fields: Value) -> String {
        let mut definition = json!({ "name": "Test", "model": "openai/scripted" });
        for (name, value) in fields.as_object().into_iter().flatten() {
            definition[name] = value.clone();
        }
        self.client.agent(definition).await
    }

    /// Creates a session with an agent of its own on the scripted model.
    pub async fn session(&self) -> String {
        let agent = self.agent_with(json!({})).await;
        self.client.session(&agent).await
    }

    /// Creates a session whose agent has a custom tool `check_order`.
    pub async fn session_with_custom_tool(&self) -> String {
        let tools =
            json!([{ "type": "custom_tool", "name": "check_order", "description": "Looks up an order." }]);
        let agent = self.agent_with(json!({ "tools": tools })).await;
        self.client.session(&agent).await
    }

    /// Waits until no session has an actor.
    pub async fn wait_until_asleep(&self) {
        within("all sessions to sleep", async {
            while self.engine.awake_sessions() > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    async fn stop(&mut self) {
        self.shutdown.cancel();
        self.engine.shutdown(Grace::NONE).await;
        if let Some(serving) = self.serving.take() {
            within("the server to stop", serving).await.unwrap();
        }
        self.store.close().await.unwrap();
    }

    /// Stops the server where it is, whatever is under way, and starts it again on the same data.
    #[must_use]
    pub async fn restart(mut self) -> Self {
        self.stop().await;
        let TestServer { setup, home, model, .. } = self;
        Self::launch(setup, home, model).await
    }
}
