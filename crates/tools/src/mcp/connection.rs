//! One server: connected when it is needed, again when it was lost, and no longer than it is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use petasos_sandbox::Sandbox;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams,
    ProtocolVersion,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, RoleClient, RunningService,
    serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::definition::{Program, Settings};
use super::http::Http;
use super::output::output;
use super::program::{self, Complaints, Running};
use super::schema;
use crate::tool::ToolOutput;

const MAX_PAGES: usize = 20;
const MAX_TOOLS: usize = 512;
const MAX_DESCRIPTION: usize = 4000;
/// The longest wait before a server that failed is tried again.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How a server is connected to.
pub(super) enum Connector {
    Http { http: Http, url: String },
    Program { program: Program, sandbox: Sandbox },
}

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ListedTool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input_schema: Value,
    pub(super) is_read_only: bool,
}

/// One server.
pub(super) struct Connection {
    /// What the log calls it.
    name: String,
    connector: Connector,
    settings: Settings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// Failures in a row, and the last of them.
    failures: u32,
    failed: Option<(Instant, String)>,
    /// Whether a task looks after its idleness.
    is_watched: bool,
}

type Client = RunningService<RoleClient, Listener>;

struct Open {
    client: Arc<Client>,
    tools: Arc<[ListedTool]>,
    used_at: Instant,
    /// Ends with the connection.
    program: Option<Running>,
}

/// Hears what a server says unasked.
struct Listener {
    tools_changed: AtomicBool,
}

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.store(true, Ordering::Release);
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("petasos", env!("CARGO_PKG_VERSION")),
        )
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

impl Connection {
    pub(super) fn new(name: String, connector: Connector, settings: Settings) -> Arc<Self> {
        Arc::new(Connection { name, connector, settings, state: Mutex::default() })
    }

    /// The server's tools, as it last listed them.
    pub(super) async fn tools(self: &Arc<Self>) -> Result<Arc<[ListedTool]>, String> {
        let mut state = self.connected().await?;
        let Some(open) = &mut state.open else { return Err("it is closed".to_owned()) };
        if open.client.service().tools_changed.swap(false, Ordering::AcqRel) {
            let listed = tokio::time::timeout(self.settings.connect_time, self.list(&open.client)).await;
            match listed.unwrap_or_else(|_| Err(self.too_slow("list its tools", self.settings.connect_time)))
            {
                Ok(tools) => open.tools = tools,
                Err(problem) => {
                    tracing::warn!(
                        server = self.name,
                        problem,
                        "an MCP server does not list its changed tools"
                    );
                    open.client.service().tools_changed.store(true, Ordering::Release);
                }
            }
        }
        Ok(Arc::clone(&open.tools))
    }

    /// Calls a tool. Dropping the future tells the server that nobody waits any more.
    pub(super) async fn call(self: &Arc<Self>, tool: &str, input: Map<String, Value>) -> ToolOutput {
        let client = match self.connected().await {
            Ok(state) => state.open.as_ref().map(|open| (Arc::clone(&open.client), open.complaints())),
            Err(problem) => {
                return ToolOutput::error(format!(
                    "The MCP server {} is out of reach: {problem}.",
                    self.name
                ));
            }
        };
        let Some((client, complaints)) = client else {
            return ToolOutput::error(format!("The MCP server {} is closed.", self.name));
        };
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        let called = tokio::time::timeout(self.settings.call_time, client.call_tool(params)).await;
        match called {
            Ok(Ok(result)) => output(&result),
            Ok(Err(ServiceError::McpError(error))) => {
                ToolOutput::error(format!("The tool failed: {}", error.message))
            }
            Ok(Err(error)) => {
                let said = complaints.map(|complaints| complaints.sentence()).unwrap_or_default();
                ToolOutput::error(format!(
                    "The MCP server {} was lost during the call ({}{said}); whether the call had an effect is not known.",
                    self.name,
                    with_causes(&error)
                ))
            }
            Err(_) => {
                let problem = self.too_slow("answer", self.settings.call_time);
                ToolOutput::error(format!(
                    "The MCP server {}: {problem}; whether the call had an effect is not known.",
                    self.name
                ))
            }
        }
    }

    /// Connects, unless it is connected or has failed a moment ago.
    async fn connected(self: &Arc<Self>) -> Result<MutexGuard<'_, State>, String> {
        let mut state = self.state.lock().await;
        if let Some(open) = state.open.as_mut().filter(|open| !open.client.is_transport_closed()) {
            open.used_at = Instant::now();
            return Ok(state);
        }
        state.open = None;
        if let Some((at, problem)) = &state.failed {
            let again = *at + pause(state.failures);
            let wait = again.saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                return Err(format!("{problem} (it is tried again in {} s)", wait.as_secs() + 1));
            }
        }
        let connected = tokio::time::timeout(self.settings.connect_time, self.connect()).await;
        match connected.unwrap_or_else(|_| Err(self.too_slow("answer", self.settings.connect_time))) {
            Ok(open) => {
                tracing::debug!(server = self.name, tools = open.tools.len(), "connected to an MCP server");
                state.open = Some(open);
                (state.failures, state.failed) = (0, None);
                if !std::mem::replace(&mut state.is_watched, true) {
                    self.close_when_idle();
                }
                Ok(state)
            }
            Err(problem) => {
                state.failures = state.failures.saturating_add(1);
                state.failed = Some((Instant::now(), problem.clone()));
                Err(problem)
            }
        }
    }

    async fn connect(&self) -> Result<Open, String> {
        let (client, program) = match &self.connector {
            Connector::Http { http, url } => (connect_http(http, url).await?, None),
            Connector::Program { program, sandbox } => {
                let running = program::start(program, sandbox)
                    .map_err(|error| format!("{} cannot be started: {error}", program.command))?;
                let (client, running) = connect_program(running, self.settings.message_bytes).await?;
                (client, Some(running))
            }
        };
        let complaints = program.as_ref().map(|running| running.complaints.clone());
        let listed = self.list(&client).await;
        let tools = listed.map_err(|problem| {
            format!("{problem}{}", complaints.map(|c| c.sentence()).unwrap_or_default())
        })?;
        Ok(Open { client: Arc::new(client), tools, used_at: Instant::now(), program })
    }

    async fn list(&self, client: &Client) -> Result<Arc<[ListedTool]>, String> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = client.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await;
            let page =
                page.map_err(|error| format!("it does not list its tools: {}", with_causes(&error)))?;
            tools.extend(page.tools.iter().filter_map(|tool| self.listed(tool)));
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() > MAX_TOOLS {
                break;
            }
        }
        if tools.len() > MAX_TOOLS || cursor.is_some() {
            tracing::warn!(
                server = self.name,
                most = MAX_TOOLS,
                "an MCP server has too many tools; the rest is left out"
            );
            tools.truncate(MAX_TOOLS);
        }
        Ok(tools.into())
    }

    fn listed(&self, tool: &rmcp::model::Tool) -> Option<ListedTool> {
        let input_schema = match schema::usable(&tool.input_schema) {
            Ok(schema) => schema,
            Err(problem) => {
                tracing::warn!(server = self.name, tool = %tool.name, problem, "a tool of an MCP server is left out");
                return None;
            }
        };
        let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        Some(ListedTool {
            name: tool.name.to_string(),
            description: description.chars().take(MAX_DESCRIPTION).collect(),
            input_schema,
            is_read_only: tool.annotations.as_ref().and_then(|hints| hints.read_only_hint).unwrap_or(false),
        })
    }

    /// Watches a connection until it is closed because nobody used it.
    fn close_when_idle(self: &Arc<Self>) {
        let connection = Arc::downgrade(self);
        let idle = self.settings.idle_time;
        tokio::spawn(async move {
            let mut wait = idle;
            loop {
                tokio::time::sleep(wait).await;
                let Some(connection) = connection.upgrade() else { return };
                let mut state = connection.state.lock().await;
                let unused_for = state.open.as_ref().map(|open| match Arc::strong_count(&open.client) {
                    1 => open.used_at.elapsed(),
                    // A call is under way.
                    _ => Duration::ZERO,
                });
                match unused_for {
                    Some(unused_for) if unused_for < idle => wait = idle - unused_for,
                    _ => {
                        let open = state.open.take();
                        state.is_watched = false;
                        drop(state);
                        if let Some(open) = open {
                            open.close().await;
                        }
                        return;
                    }
                }
            }
        });
    }

    /// Whether nothing is held for it.
    pub(super) fn is_at_rest(&self) -> bool {
        self.state.try_lock().is_ok_and(|state| state.open.is_none())
    }

    fn too_slow(&self, what: &str, time: Duration) -> String {
        format!("it did not {what} within {} s", time.as_secs_f32())
    }
}

impl Open {
    /// Says goodbye.
    async fn close(self) {
        let Open { client, program, .. } = self;
        drop(client);
        if let Some(program) = program {
            program.end().await;
        }
    }

    fn complaints(&self) -> Option<Complaints> {
        self.program.as_ref().map(|program| program.complaints.clone())
    }
}

impl Listener {
    fn new() -> Self {
        Listener { tools_changed: AtomicBool::new(false) }
    }
}

async fn connect_program(mut running: Running, message_bytes: usize) -> Result<(Client, Running), String> {
    let (Some(stdout), Some(stdin)) = (running.stdout.take(), running.stdin.take()) else {
        return Err("its streams are not there".to_owned());
    };
    let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(message_bytes);
    let lifecycle = ClientLifecycleMode::Initialize;
    match serve_client_with_lifecycle(Listener::new(), transport, lifecycle).await {
        Ok(client) => Ok((client, running)),
        Err(error) => Err(format!("{}{}", with_causes(&error), running.last_words().await)),
    }
}

async fn connect_http(http: &Http, url: &str) -> Result<Client, String> {
    let serve = |lifecycle| {
        let mut retries = ExponentialBackoff::default();
        retries.max_times = Some(3);
        let mut config = StreamableHttpClientTransportConfig::with_uri(url);
        config.retry_config = Arc::new(retries);
        let transport = StreamableHttpClientTransport::with_client(http.clone(), config);
        serve_client_with_lifecycle(Listener::new(), transport, lifecycle)
    };
    match serve(ClientLifecycleMode::Initialize).await {
        // Servers of the newest protocol need not know the handshake of the older ones.
        Err(ClientInitializeError::JsonRpcError(error)) => {
            let newest = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
            serve(newest).await.map_err(|_| error.message.to_string())
        }
        served => served.map_err(|error| with_causes(&error)),
    }
}

/// How long a server is left alone after so many failures in a row.
fn pause(failures: u32) -> Duration {
    Duration::from_secs(1).saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(MAX_PAUSE)
}

/// An error and what it comes from, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}
