//! All MCP servers: those of the configuration, and those that agents name by their URL.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use petasos_core::agent::AgentDefinition;
use petasos_core::ids::TenantId;
use petasos_net::{Client, Guard, Options};
use petasos_sandbox::{Backend, Limits, Sandbox, Supervisor};

use super::connection::{Connection, Connector};
use super::definition::{Reach, ServerDefinition, Settings, Tenants};
use super::http::Http;
use super::offer::{Missing, Offer};
use super::warnings::Warnings;

/// The most servers that agents' URLs may keep open at a time.
const MAX_BY_URL: usize = 256;

/// All MCP servers. Cheap to clone; clones share their connections.
#[derive(Clone, Default)]
pub struct McpServers {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    configured: BTreeMap<String, Configured>,
    by_url: Mutex<HashMap<(TenantId, String), Arc<Connection>>>,
    options: Options,
    guard: Guard,
    settings: Settings,
    warnings: Arc<Warnings>,
}

/// Which tools are asked for.
#[derive(Clone, Copy)]
enum Wanted {
    /// Those of servers that are there.
    Usable,
    /// Those that servers once said they have.
    Known,
}

struct Configured {
    tenants: Tenants,
    /// Set if it is reached over HTTP.
    url: Option<String>,
    connection: Arc<Connection>,
}

impl McpServers {
    /// The servers of the configuration by name. URLs that agents name are reached as far as the guard allows.
    pub fn new(
        configured: BTreeMap<String, ServerDefinition>,
        settings: Settings,
        options: Options,
        guard: Guard,
        supervisor: Supervisor,
    ) -> Self {
        let unconfined = petasos_sandbox::Settings {
            backend: Backend::Unconfined,
            limits: Limits::OF_OPERATOR,
            ..petasos_sandbox::Settings::default()
        };
        let sandbox = Sandbox::new(unconfined, supervisor);
        let mut servers = BTreeMap::new();
        let warnings = Arc::<Warnings>::default();
        for (name, ServerDefinition { reach, tenants }) in configured {
            let (url, connector) = match reach {
                Reach::Http { url, headers } => {
                    let client = Client::trusting(&options, &guard, &url);
                    let headers = Arc::new(headers.into_iter().collect());
                    let http = Http::new(client, headers, settings.message_bytes);
                    (Some(url.clone()), Connector::Http { http, url })
                }
                Reach::Program(program) => (None, Connector::Program { program, sandbox: sandbox.clone() }),
            };
            let connection =
                Connection::new(name.clone(), connector, settings.clone(), Arc::clone(&warnings));
            servers.insert(name, Configured { tenants, url, connection });
        }
        let by_url = Mutex::default();
        let shared = Shared { configured: servers, by_url, options, guard, settings, warnings };
        McpServers { shared: Arc::new(shared) }
    }

    /// Whether the configuration has a server of this name for this tenant.
    pub fn is_configured(&self, tenant: &TenantId, name: &str) -> bool {
        self.shared.configured.get(name).is_some_and(|server| server.tenants.has(tenant))
    }

    /// Why an agent of this tenant may not name this address, if it may not.
    pub fn problem_with(&self, tenant: &TenantId, url: &str) -> Option<String> {
        let mut usable = self.shared.configured.values().filter(|server| server.tenants.has(tenant));
        if usable.any(|server| server.url.as_deref() == Some(url)) {
            return None;
        }
        self.shared.guard.check(url).err().map(|error| error.to_string())
    }

    /// The tools of all toolsets of an agent, for a session that is about to use them. Servers that do not say in
    /// time what they have are missing.
    pub async fn offer(&self, tenant: &TenantId, agent: &AgentDefinition) -> Offer {
        let offer = self.listed(tenant, agent, Wanted::Usable).await;
        let warnings = &self.shared.warnings;
        for name in agent.mcp_toolsets() {
            // Every session that wakes finds the same server dead.
            let key = format!("{name} missing {tenant}");
            let Some(Missing { server, problem }) =
                offer.missing.iter().find(|missing| missing.server == name)
            else {
                warnings.over(&key);
                continue;
            };
            if let Some(unsaid) = warnings.due(key) {
                tracing::warn!(
                    server,
                    problem,
                    unsaid,
                    "an MCP server cannot be used; its tools are missing"
                );
            }
        }
        offer
    }

    /// The same as far as it is known: no server is connected to that has said before what it has.
    pub async fn known(&self, tenant: &TenantId, agent: &AgentDefinition) -> Offer {
        self.listed(tenant, agent, Wanted::Known).await
    }

    fn listed<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent: &'a AgentDefinition,
        wanted: Wanted,
    ) -> BoxFuture<'a, Offer> {
        let listed = async move {
            let mut offer = Offer::default();
            let names: Vec<&str> = agent.mcp_toolsets().collect();
            let listed = join_all(names.iter().map(|name| async move {
                let connection = self.connection(tenant, agent, name)?;
                let tools = match wanted {
                    Wanted::Usable => connection.tools_in_time().await?,
                    Wanted::Known => connection.known_tools().await?,
                };
                Ok::<_, String>((connection, tools))
            }));
            for (name, listed) in names.iter().zip(listed.await) {
                match listed {
                    Ok((connection, tools)) => offer.add(name, &connection, &tools, &self.shared.warnings),
                    Err(problem) => offer.missing.push(Missing { server: (*name).to_owned(), problem }),
                }
            }
            offer
        };
        // Boxed here, or every crate that waits for it would compile the client once more.
        listed.boxed()
    }

    /// How many tools each server of the configuration has, or why it cannot be used.
    pub fn check(&self) -> BoxFuture<'_, Vec<(String, Result<usize, String>)>> {
        let checks = self.shared.configured.iter().map(|(name, server)| async move {
            (name.clone(), server.connection.tools().await.map(|tools| tools.len()))
        });
        join_all(checks).boxed()
    }

    fn connection(
        &self,
        tenant: &TenantId,
        agent: &AgentDefinition,
        name: &str,
    ) -> Result<Arc<Connection>, String> {
        let mut usable = self.shared.configured.iter().filter(|(_, server)| server.tenants.has(tenant));
        let by_agent = agent.mcp_servers.iter().find(|server| server.name == name);
        let configured = match by_agent {
            Some(server) => usable.find(|(_, configured)| configured.url.as_ref() == Some(&server.url)),
            None => usable.find(|(configured, _)| *configured == name),
        };
        match (configured, by_agent) {
            (Some((_, configured)), _) => Ok(Arc::clone(&configured.connection)),
            (None, Some(server)) => self.by_url(tenant, name, &server.url),
            (None, None) => Err("neither the agent nor the configuration defines it".to_owned()),
        }
    }

    fn by_url(&self, tenant: &TenantId, name: &str, url: &str) -> Result<Arc<Connection>, String> {
        let Shared { by_url, options, guard, settings, warnings, .. } = self.shared.as_ref();
        guard.check(url).map_err(|error| error.to_string())?;
        let mut by_url = by_url.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (tenant.clone(), url.to_owned());
        if let Some(connection) = by_url.get(&key) {
            return Ok(Arc::clone(connection));
        }
        if by_url.len() >= MAX_BY_URL {
            by_url.retain(|_, connection| !connection.is_at_rest());
        }
        if by_url.len() >= MAX_BY_URL {
            return Err(format!("{MAX_BY_URL} servers of agents are open already; try again later"));
        }
        let client = Client::guarded(options, guard.clone());
        let http = Http::new(client, Arc::default(), settings.message_bytes);
        let connector = Connector::Http { http, url: url.to_owned() };
        let connection = Connection::new(name.to_owned(), connector, settings.clone(), Arc::clone(warnings));
        by_url.insert(key, Arc::clone(&connection));
        Ok(connection)
    }
}
