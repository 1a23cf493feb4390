//! What `config.yaml` may say. Everything is optional, and a key that is not here is an error.

mod amounts;
mod commands;
mod kept;
mod limits;
mod models;
mod operation;
mod outside;
mod plugins;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

pub(crate) use self::amounts::{Price, Seconds, Share};
pub(crate) use self::commands::{
    ApprovalMode, Approvals, Sandbox, SandboxBackend, SandboxFallback, SandboxNetwork, Unattended,
    WebApproval,
};
pub(crate) use self::kept::{Memory, Skills};
pub(crate) use self::limits::{AtBudget, Limits};
pub(crate) use self::models::{Compaction, Facts, Kind, Models, Provider};
pub(crate) use self::operation::{
    Backups, Cors, Log, LogFormat, Metrics, Rate, Traces, UnknownFields, WorkspaceFiles,
};
pub(crate) use self::outside::{
    Deliveries, Egress, Mcp, McpServer, Proxy, Retries, SearchKind, Web, WebSearch,
};
pub(crate) use self::plugins::Plugins;

/// The whole file.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    /// The address to listen on.
    pub(crate) listen: Option<String>,
    /// The model of `run` and `chat`, as provider/model.
    pub(crate) default_model: Option<String>,
    /// Model providers, by the name that stands before the slash.
    pub(crate) providers: BTreeMap<String, Provider>,
    /// Bounds.
    pub(crate) limits: Limits,
    /// How models are called.
    pub(crate) models: Models,
    /// Notes that agents keep about users and their work.
    pub(crate) memory: Memory,
    /// Skills.
    pub(crate) skills: Skills,
    /// What is known about models, by provider/model; a name that ends in * stands for all that begin so.
    pub(crate) catalog: BTreeMap<String, Facts>,
    /// How contexts are kept short enough.
    pub(crate) compaction: Compaction,
    /// What may be reached on the word of a caller or a model.
    pub(crate) egress: Egress,
    /// Proxies on the way out.
    pub(crate) proxy: Proxy,
    /// A PEM file of certificates that are trusted besides those of the system.
    pub(crate) ca_file: Option<PathBuf>,
    /// Webhooks and callbacks.
    pub(crate) deliveries: Deliveries,
    /// MCP servers, by the name that toolsets use.
    pub(crate) mcp_servers: BTreeMap<String, McpServer>,
    /// How MCP servers are used.
    pub(crate) mcp: Mcp,
    /// The tools that look into the web.
    pub(crate) web: Web,
    /// What happens to fields of requests that are not known.
    pub(crate) unknown_fields: UnknownFields,
    /// How many requests each key may make.
    pub(crate) rate_limit: Option<Rate>,
    /// How commands of agents are run.
    pub(crate) sandbox: Sandbox,
    /// Which commands of agents ask a person.
    pub(crate) approvals: Approvals,
    /// Commands that are not dangerous here, and keys of patterns that are not.
    pub(crate) command_allowlist: Vec<String>,
    /// Commands and addresses that are told or asked at points of a turn, by event.
    pub(crate) hooks: serde_json::Value,
    /// Whether every command under hooks may run without somebody having agreed to it.
    pub(crate) hooks_auto_accept: serde_json::Value,
    /// Files of agents.
    pub(crate) workspaces: WorkspaceFiles,
    /// Copies of the database.
    pub(crate) backups: Backups,
    /// Browsers.
    pub(crate) cors: Cors,
    /// Metrics.
    pub(crate) metrics: Metrics,
    /// Traces for an OpenTelemetry collector.
    pub(crate) traces: Option<Traces>,
    /// The log of the process.
    pub(crate) log: Log,
    /// Plugins in Python.
    pub(crate) plugins: Plugins,
}
