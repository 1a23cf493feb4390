//! One server in this process: the store, the engine and the listener, from start to end.
//!
//! `serve` runs one until a signal comes; other commands run one for as long as they take.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use petasos_engine::{DeliveryCredentials, Engine, Grace};
use petasos_models::Models;
use petasos_sandbox::{Fallback, Report, Sandbox, Settings, Supervisor};
use petasos_server::{Patience, Server};
use petasos_store::sqlite::SqliteStore;
use petasos_tools::mcp::McpServers;
use petasos_tools::{Approvals, Toolbox, WorkspaceLimits, Workspaces};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::SUPERVISOR;
use crate::agent_files::AgentFiles;
use crate::config::{Config, DeliveryConfig, WebApproval};
use crate::home::Home;
use crate::routine_files::RoutineFiles;
use crate::talk::DEFAULT_MODEL;
use crate::user_code::UserCode;
use crate::{default_agent, delivery_secret, open_files, own_files};

/// How long turns and hooks may take to end when a server stops that others use.
pub(crate) const SERVER_GRACE: Grace =
    Grace { turns: Duration::from_secs(10), hooks: Duration::from_secs(5) };
/// The same for a server of a command's own. Its hooks get the time that they are allowed: somebody sees the command
/// end, and may interrupt it.
pub(crate) const COMMAND_GRACE: Grace = Grace { turns: SERVER_GRACE.turns, hooks: Duration::MAX };
/// How often a quiet stream gets a comment.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long after the start it is found out what confines commands.
const LOOK_AFTER: Duration = Duration::from_millis(500);

/// A server that has its address and answers nobody yet.
pub(crate) struct Instance {
    server: Server,
    engine: Engine,
    store: SqliteStore,
    agent_files: AgentFiles,
    routine_files: RoutineFiles,
    user_code: UserCode,
    sandbox: Sandbox,
}

impl Instance {
    /// Puts a server together, takes its address and reads the files of agents. If that fails, the store is closed.
    pub(crate) async fn bind(
        config: Config,
        store: SqliteStore,
        home: &Home,
        listen: &str,
        admin_key: SecretString,
        user_code: UserCode,
    ) -> Result<Instance> {
        match bind(config, store.clone(), home, listen, admin_key, &user_code).await {
            Ok((server, engine, sandbox)) => {
                let mut agent_files = AgentFiles::new(home.agents());
                agent_files.sync(&engine).await;
                let routine_files = RoutineFiles::new(home.routines());
                Ok(Instance { server, engine, store, agent_files, routine_files, user_code, sandbox })
            }
            Err(error) => {
                store.close().await.context("close the store")?;
                Err(error)
            }
        }
    }

    /// Where a client on this machine finds the server.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", reachable(self.server.local_addr()))
    }

    /// The address that the server listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Makes the agent that conversations are with unless they name another, if it is not there.
    pub(crate) async fn ensure_default_agent(&self, model: &str) -> Result<()> {
        default_agent::ensure(&self.engine, model).await
    }

    /// Reads the files of routines. The agents that they name have to be there before, the default one too.
    pub(crate) async fn read_routines(&mut self) {
        self.routine_files.sync(&self.engine).await;
    }

    /// Tells gateway hooks that the server is there.
    pub(crate) fn tell_startup(&self) {
        self.user_code.tell_startup();
    }

    /// Goes on with the turns that the last process left unfinished. Returns how many there are.
    pub(crate) async fn recover(&self) -> Result<usize> {
        self.engine.recover().await.context("cannot find the sessions that were running")
    }

    /// Serves until `shutdown` is cancelled or the listener fails, then ends turns.
    pub(crate) async fn run(self, shutdown: CancellationToken, grace: Grace) -> Stopped {
        let Instance { server, engine, store, agent_files, routine_files, user_code, sandbox } = self;
        tokio::spawn(tell_later(sandbox));
        let watching = tokio::spawn(agent_files.watch(engine.clone()));
        let watching_routines = tokio::spawn(routine_files.watch(engine.clone()));
        let serving = async {
            let result = server.run(shutdown.clone()).await;
            shutdown.cancel();
            result
        };
        let ending = async {
            shutdown.cancelled().await;
            watching.abort();
            watching_routines.abort();
            engine.shutdown(grace).await;
        };
        let (served, ()) = tokio::join!(serving, ending);
        user_code.stop();
        Stopped { served, store }
    }
}

/// A server that has stopped and still has its store.
pub(crate) struct Stopped {
    served: Result<(), petasos_server::Error>,
    store: SqliteStore,
}

impl Stopped {
    /// Closes the store, and says how serving ended.
    pub(crate) async fn close(self) -> Result<()> {
        let closed = self.store.close().await;
        self.served.context("the server failed")?;
        closed.context("close the store")
    }
}

async fn bind(
    config: Config,
    store: SqliteStore,
    home: &Home,
    listen: &str,
    admin_key: SecretString,
    user_code: &UserCode,
) -> Result<(Server, Engine, Sandbox)> {
    let client = petasos_net::Client::new(&config.net);
    let mcp = McpServers::new(
        config.mcp_servers,
        config.mcp,
        config.net.clone(),
        config.guard.clone(),
        supervisor(),
    );
    let pages = petasos_net::Client::guarded(&config.net, config.guard.clone());
    let (tools, sandbox) = tools(config.sandbox, config.approvals, config.workspaces, home, &store)?;
    let mut tools = tools.with_mcp(mcp).with_web(pages.clone(), config.search.engine);
    if config.web_approval == WebApproval::Ask {
        tools = tools.asking_before_web_extract(pages);
    }
    user_code.add_tools(&mut tools, &config.plugins);
    let backups = petasos_server::Backups {
        store: Arc::new(store.clone()),
        directory: home.backups(),
        keep: config.backups_keep,
    };
    let deliveries = deliveries(config.deliveries, &config.net, home)?;
    let engine = Engine::new(petasos_engine::Options {
        store: Arc::new(store),
        models: Models::new(config.providers, config.models, client).with_catalog(config.catalog),
        tools,
        hooks: user_code.bus(),
        commands: user_code.python(),
        limits: config.limits,
        max_tool_output_chars: config.max_tool_output_chars,
        tool_time: config.tool_time,
        hook_head_start: petasos_engine::HOOK_HEAD_START,
        memory: config.memory,
        unattended: config.unattended,
        recovery_times: petasos_engine::RecoveryTimes::default(),
        callback_body: petasos_server::callback_body,
        skills: petasos_engine::SkillOptions {
            settings: config.skills,
            directory: Some(home.skills()),
            client: Some(petasos_net::Client::guarded(&config.net, config.guard)),
            of_plugins: user_code.skills(),
        },
        deliveries,
    });
    user_code.serve(&engine, config.default_model.as_deref().unwrap_or(DEFAULT_MODEL));
    let options = petasos_server::Options {
        engine: engine.clone(),
        admin_key,
        cors_origins: config.cors_origins,
        max_body_bytes: config.max_body_bytes,
        keep_alive: KEEP_ALIVE,
        patience: Patience::default(),
        max_connections: open_files::max_connections(),
        metrics_public: config.metrics_public,
        rate_limit: config.rate_limit,
        unknown_fields: config.unknown_fields,
        backups: Some(backups),
        sandbox: Some(sandbox.clone()),
    };
    match Server::bind(listen, options).await {
        Ok(server) => Ok((server, engine, sandbox)),
        Err(petasos_server::Error::Bind { address, source }) => Err(bind_problem(&address, source)),
        Err(error) => Err(error.into()),
    }
}

/// How webhooks and callbacks go out.
fn deliveries(
    config: DeliveryConfig,
    net: &petasos_net::Options,
    home: &Home,
) -> Result<petasos_engine::DeliveryOptions> {
    let secret = match config.secret {
        Some(secret) => secret,
        None => delivery_secret::read(home)?,
    };
    let mut net = net.clone();
    if !net.proxies.callers {
        // Deliveries carry what callers have said, wherever the operator sends them.
        net.proxies = petasos_net::Proxies::default();
    }
    Ok(petasos_engine::DeliveryOptions {
        guarded: petasos_net::Client::guarded(&net, config.targets.guard().clone()),
        trusted: petasos_net::Client::new(&net),
        targets: config.targets,
        credentials: DeliveryCredentials::new(secret, config.token)?,
        event_webhook_url: config.event_webhook_url,
        settings: config.settings,
        new_view: petasos_server::conversation_view,
    })
}

/// This program, as the supervisor of what it starts.
pub(crate) fn supervisor() -> Supervisor {
    Supervisor::this_program(&[SUPERVISOR])
}

/// The built-in tools, and what confines their commands.
fn tools(
    mut settings: Settings,
    approvals: Approvals,
    limits: WorkspaceLimits,
    home: &Home,
    store: &SqliteStore,
) -> Result<(Toolbox, Sandbox)> {
    let database = store.files();
    own_files::refuse_writable(&settings, home, &database)?;
    settings.hidden.push(home.path().to_owned());
    settings.hidden.extend(database);
    let sandbox = Sandbox::new(settings, supervisor());
    let tools = Toolbox::builtin(petasos_tools::Options {
        workspaces: Workspaces::new(home.workspaces()).with_limits(limits),
        sandbox: sandbox.clone(),
        approvals,
    });
    Ok((tools, sandbox))
}

/// Finds out what confines commands, unless a command has by then, and says in the log what does not. That starts
/// processes, so it leaves the start and the first requests alone.
async fn tell_later(sandbox: Sandbox) {
    tokio::time::sleep(LOOK_AFTER).await;
    // If it fails the cause is in the log already.
    drop(tokio::task::spawn_blocking(move || tell_what_is_missing(sandbox.report())).await);
}

/// Says in the log what does not confine commands.
fn tell_what_is_missing(report: &Report) {
    match (&report.missing, report.fallback) {
        (Some(missing), Fallback::Refuse) => {
            tracing::warn!(missing, "agents cannot run commands; see petasos doctor");
        }
        (Some(missing), Fallback::Unconfined) => {
            tracing::warn!(missing, "agents run commands without a sandbox");
        }
        (None, _) => {
            let broken: Vec<&str> = report.broken().collect();
            if !broken.is_empty() {
                tracing::warn!(
                    not_kept = broken.join("; "),
                    "commands of agents are confined less than they could be; see petasos doctor"
                );
            }
        }
    }
}

/// Says why an address cannot be listened on, and what to do.
fn bind_problem(address: &str, source: io::Error) -> anyhow::Error {
    let cure = match source.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens there; stop it, or choose another address with --listen, for example \
             --listen 127.0.0.1:0 for any free port"
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have that address; choose one of its own with --listen, or 0.0.0.0 for all"
        }
        io::ErrorKind::PermissionDenied => {
            "the system does not allow it; choose a port above 1023 with --listen"
        }
        _ => "write the address as HOST:PORT, for example --listen 127.0.0.1:7380",
    };
    match source.kind() {
        io::ErrorKind::AddrInUse => anyhow!("cannot listen on {address}: {cure}"),
        _ => anyhow!(source).context(format!("cannot listen on {address}: {cure}")),
    }
}

/// An address that can be dialled: "all addresses" is this machine's own.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
