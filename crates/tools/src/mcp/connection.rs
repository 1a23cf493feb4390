//! One server: connected when it is needed, again when it was lost, and no longer than it is used.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use petasos_sandbox::Sandbox;
use rmcp::ServiceError;
use rmcp::model::{CallToolRequestParams, PaginatedRequestParams};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::call::{self, Failure};
use super::connect::{Client, connect_http, connect_program, with_causes};
use super::definition::{Program, Settings};
use super::http::Http;
use super::listing::{Listed, Listing};
use super::output::output;
use super::program::{self, Complaints, Running};
use super::schema;
use super::warnings::Warnings;
use crate::tool::ToolOutput;

const MAX_PAGES: usize = 20;
const MAX_TOOLS: usize = 512;
const MAX_DESCRIPTION: usize = 4000;
/// The most characters that a server may say about using its tools.
const MAX_INSTRUCTIONS: usize = 2000;
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
    listing: Listing,
    /// What the server said about using its tools when it was last connected to.
    instructions: RwLock<Option<Arc<str>>>,
    warnings: Arc<Warnings>,
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

struct Open {
    client: Arc<Client>,
    tools: Arc<[ListedTool]>,
    used_at: Instant,
    /// Ends with the connection.
    program: Option<Running>,
}

impl Connection {
    pub(super) fn new(
        name: String,
        connector: Connector,
        settings: Settings,
        warnings: Arc<Warnings>,
    ) -> Arc<Self> {
        Arc::new(Connection {
            name,
            connector,
            settings,
            state: Mutex::default(),
            listing: Listing::default(),
            instructions: RwLock::default(),
            warnings,
        })
    }

    /// What the server says about using its tools, if it says anything.
    pub(super) fn instructions(&self) -> Option<Arc<str>> {
        self.instructions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The server's tools, if it says in time what they are. A server that is slower is still waited for, in the
    /// background, and whoever asks later finds them.
    pub(super) async fn tools_in_time(self: &Arc<Self>) -> Listed {
        let connection = Arc::clone(self);
        self.listing.ask(self.settings.wait_time, async move { connection.tools().await }).await
    }

    /// The server's tools as far as they are known. It is not connected for them again.
    pub(super) async fn known_tools(self: &Arc<Self>) -> Listed {
        let is_open = self.state.try_lock().is_ok_and(|state| state.open.is_some());
        match self.listing.known() {
            Some(tools) if !is_open => Ok(tools),
            _ => self.tools_in_time().await,
        }
    }

    /// The server's tools, as it last listed them.
    pub(super) async fn tools(self: &Arc<Self>) -> Listed {
        let mut state = self.connected().await?;
        let Some(open) = &mut state.open else { return Err("it is closed".to_owned()) };
        if open.client.service().tools_changed.swap(false, Ordering::AcqRel) {
            let listed = tokio::time::timeout(self.settings.connect_time, self.list(&open.client)).await;
            match listed.unwrap_or_else(|_| Err(self.too_slow("list its tools", self.settings.connect_time)))
            {
                Ok(tools) => open.tools = tools,
                Err(problem) => {
                    if let Some(unsaid) = self.due("changed") {
                        tracing::warn!(
                            server = self.name,
                            problem,
                            unsaid,
                            "an MCP server does not list its changed tools"
                        );
                    }
                    open.client.service().tools_changed.store(true, Ordering::Release);
                }
            }
        }
        self.listing.remember(&open.tools);
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
        match call::call(&client, params, self.settings.call_time).await {
            Ok(result) => output(&result),
            Err(Failure::Service(ServiceError::McpError(error))) => {
                ToolOutput::error(format!("The tool failed: {}", error.message))
            }
            Err(Failure::AsksBack) => ToolOutput::error(format!(
                "The MCP server {} asks back before it answers, which is not supported.",
                self.name
            )),
            Err(Failure::Service(error)) => {
                let said = complaints.map(|complaints| complaints.sentence()).unwrap_or_default();
                ToolOutput::error(format!(
                    "The MCP server {} was lost during the call ({}{said}); whether the call had an effect is not known.",
                    self.name,
                    with_causes(&error)
                ))
            }
            Err(Failure::Silent) => self.given_up(&self.too_slow("answer", self.settings.call_time)),
            Err(Failure::Endless(time)) => {
                let problem = self.too_slow("answer", time);
                self.given_up(&format!("{problem}, the longest that progress extends a call"))
            }
        }
    }

    fn given_up(&self, problem: &str) -> ToolOutput {
        ToolOutput::error(format!(
            "The MCP server {}: {problem}; whether the call had an effect is not known.",
            self.name
        ))
    }

    /// How often a problem of this server came up unsaid, if the log is to be told of it now.
    fn due(&self, problem: &str) -> Option<u64> {
        self.warnings.due(format!("{} {problem}", self.name))
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
        self.remember_instructions(&client);
        let complaints = program.as_ref().map(|running| running.complaints.clone());
        let listed = self.list(&client).await;
        let tools = listed.map_err(|problem| {
            format!("{problem}{}", complaints.map(|c| c.sentence()).unwrap_or_default())
        })?;
        Ok(Open { client: Arc::new(client), tools, used_at: Instant::now(), program })
    }

    fn remember_instructions(&self, client: &Client) {
        let said = client.peer_info().and_then(|info| info.instructions.clone());
        let said = said.as_deref().map(readable).filter(|said| !said.is_empty());
        *self.instructions.write().unwrap_or_else(PoisonError::into_inner) = said.map(Arc::from);
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
            if let Some(unsaid) = self.due("too many") {
                tracing::warn!(
                    server = self.name,
                    most = MAX_TOOLS,
                    unsaid,
                    "an MCP server has too many tools; the rest is left out"
                );
            }
            tools.truncate(MAX_TOOLS);
        }
        Ok(tools.into())
    }

    fn listed(&self, tool: &rmcp::model::Tool) -> Option<ListedTool> {
        let input_schema = match schema::usable(&tool.input_schema) {
            Ok(schema) => schema,
            Err(problem) => {
                if let Some(unsaid) = self.due(&format!("left out {}", tool.name)) {
                    tracing::warn!(server = self.name, tool = %tool.name, problem, unsaid, "a tool of an MCP server is left out");
                }
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

/// A server's words without characters that say nothing, and no longer than they may be.
fn readable(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control() || *c == '\n' || *c == '\t').collect();
    let text = text.trim();
    if text.chars().count() <= MAX_INSTRUCTIONS {
        return text.to_owned();
    }
    text.chars().take(MAX_INSTRUCTIONS - 1).chain(['…']).collect()
}

/// How long a server is left alone after so many failures in a row.
pub(super) fn pause(failures: u32) -> Duration {
    Duration::from_secs(1).saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(MAX_PAUSE)
}
