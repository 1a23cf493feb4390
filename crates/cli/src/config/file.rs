//! What `config.yaml` may say. Everything is optional, and a key that is not here is an error.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use petasos_models::ProviderKind;
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::Error as _;

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
    /// Webhooks and callbacks.
    pub(crate) deliveries: Deliveries,
    /// MCP servers, by the name that toolsets use.
    pub(crate) mcp_servers: BTreeMap<String, McpServer>,
    /// How MCP servers are used.
    pub(crate) mcp: Mcp,
    /// The tools that look into the web.
    pub(crate) web: Web,
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

/// Plugins in Python.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Plugins {
    /// Those that are used, by name.
    pub(crate) enabled: Vec<String>,
    /// Those that are not, whatever else is said.
    pub(crate) disabled: Vec<String>,
    /// How many seconds a callback may take: 30 unless set, at most 600, 0 for as long as it likes.
    pub(crate) hook_callback_timeout: Option<f64>,
    /// The interpreter: a name or a path; python3 unless set.
    pub(crate) python: Option<String>,
    /// What single plugins may do, by name.
    pub(crate) entries: BTreeMap<String, PluginEntry>,
}

/// What one plugin may do. What else stands here is for the plugin itself.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub(crate) struct PluginEntry {
    /// Whether its tools may take the place of others.
    pub(crate) allow_tool_override: bool,
}

/// One model provider.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Provider {
    /// What it speaks.
    #[cfg_attr(test, schemars(with = "Option<String>", extend("enum" = ["openai", "openai-responses", "anthropic"])))]
    pub(crate) kind: Option<ProviderKind>,
    /// Where it is.
    pub(crate) base_url: Option<String>,
    /// Its key.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) api_key: Option<SecretString>,
    /// The environment variable that holds its key.
    pub(crate) api_key_env: Option<String>,
    /// Sent with every request.
    pub(crate) headers: BTreeMap<String, String>,
    /// Whether its models take pictures.
    pub(crate) images: Option<bool>,
}

/// Bounds of turns, tools and requests.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Model calls in one turn.
    pub(crate) turn_model_calls: Option<NonZero<u32>>,
    /// Time that one turn may run between two pauses.
    pub(crate) turn_seconds: Option<Seconds>,
    /// Tokens in one turn.
    pub(crate) turn_tokens: Option<NonZero<u64>>,
    /// Tokens in one session.
    pub(crate) session_tokens: Option<NonZero<u64>>,
    /// What one turn may cost.
    pub(crate) turn_cost: Option<Price>,
    /// What one session may cost.
    pub(crate) session_cost: Option<Price>,
    /// What an agent may cost on one day, all of its sessions together.
    pub(crate) agent_day_cost: Option<Price>,
    /// What an agent may cost in one month, all of its sessions together.
    pub(crate) agent_month_cost: Option<Price>,
    /// What happens when one of these is used up.
    pub(crate) at_budget: AtBudget,
    /// How long a paused turn waits for somebody; for ever unless set.
    pub(crate) action_seconds: Option<Seconds>,
    /// Tool calls that one model answer may make.
    pub(crate) step_tool_calls: Option<NonZero<usize>>,
    /// Subagents that one call may start.
    pub(crate) call_threads: Option<NonZero<usize>>,
    /// Model calls that a subagent may make.
    pub(crate) thread_model_calls: Option<NonZero<u32>>,
    /// Bytes of a request's body.
    pub(crate) body_bytes: Option<NonZero<usize>>,
    /// Characters of a tool's result.
    pub(crate) tool_output_chars: Option<NonZero<usize>>,
    /// Time that one tool call may take.
    pub(crate) tool_seconds: Option<Seconds>,
}

/// What happens when a budget is used up.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum AtBudget {
    /// The turn ends with an error.
    #[default]
    Stop,
    /// The turn waits until somebody lets it go on, or ends it.
    Pause,
}

/// How models are called.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Models {
    /// Attempts in all, the first one included.
    pub(crate) max_attempts: Option<NonZero<u32>>,
    /// The wait after the first failure; it doubles with each further one.
    pub(crate) retry_delay_seconds: Option<Seconds>,
    /// The longest wait.
    pub(crate) retry_max_delay_seconds: Option<Seconds>,
    /// How long a failing call is tried again.
    pub(crate) retry_total_seconds: Option<Seconds>,
    /// How long making a connection may take.
    pub(crate) connect_seconds: Option<Seconds>,
    /// How long a provider may be silent before it has said anything.
    pub(crate) first_byte_seconds: Option<Seconds>,
    /// How long it may be silent once it has started to answer.
    pub(crate) stall_seconds: Option<Seconds>,
    /// How long a call may take, all attempts together.
    pub(crate) call_seconds: Option<Seconds>,
    /// The most characters that an answer may have.
    pub(crate) output_chars: Option<NonZero<usize>>,
}

/// What is known about a model.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Facts {
    /// Tokens that it can read.
    pub(crate) context_window: Option<NonZero<u64>>,
    /// What it costs.
    pub(crate) prices: Option<Prices>,
}

/// What a model costs, per million tokens.
#[derive(Deserialize, Clone, Copy)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Prices {
    /// For what it reads.
    pub(crate) input: Price,
    /// For what it writes.
    pub(crate) output: Price,
    /// For what it reads from the provider's cache; as any other input unless set.
    pub(crate) cached_input: Option<Price>,
    /// For what is written to the provider's cache; as any other input unless set.
    pub(crate) cache_write: Option<Price>,
}

/// How contexts are kept short enough for their models.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Compaction {
    /// The part of what the model can read at which a context is compacted.
    pub(crate) at: Option<Share>,
}

/// What may be reached on the word of a caller or a model. Private addresses are refused unless listed here.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Egress {
    /// Networks, addresses and hosts that may be reached although they are private.
    pub(crate) allow: Vec<String>,
    /// If there are any, no other host is reached.
    pub(crate) only_hosts: Vec<String>,
}

/// How webhooks and callbacks go out.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Deliveries {
    /// Where the events of sessions go if neither the session's nor the agent's metadata has event_webhook_url.
    pub(crate) event_webhook_url: Option<String>,
    /// What deliveries are sent with as bearer token; the server's API key unless set.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) token: Option<SecretString>,
    /// What deliveries are signed with, as whsec_ and base64; the one in delivery.secret unless set.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) secret: Option<SecretString>,
    /// How long a receiver may take to answer.
    pub(crate) timeout_seconds: Option<Seconds>,
    /// How often events are tried.
    pub(crate) events: Retries,
    /// How often callbacks are tried.
    pub(crate) callbacks: Retries,
    /// How many deliveries are sent at the same time.
    pub(crate) in_flight: Option<NonZero<usize>>,
    /// How long a delivery is kept once it is settled.
    pub(crate) keep_seconds: Option<Seconds>,
}

/// How often a delivery is tried.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Retries {
    /// The wait after the first failure; it doubles with each further one.
    pub(crate) first_retry_seconds: Option<Seconds>,
    /// The longest wait.
    pub(crate) max_retry_seconds: Option<Seconds>,
    /// Attempts in all.
    pub(crate) max_attempts: Option<NonZero<u32>>,
}

/// How commands of agents are run.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sandbox {
    /// What confines them.
    pub(crate) backend: SandboxBackend,
    /// The image of the backend docker.
    pub(crate) image: Option<String>,
    /// What happens where they cannot be confined.
    pub(crate) fallback: SandboxFallback,
    /// Whom they can talk to.
    pub(crate) network: SandboxNetwork,
    /// Whether they may make Unix sockets.
    pub(crate) unix_sockets: bool,
    /// What they may read and execute besides the system's programs.
    pub(crate) read: Vec<PathBuf>,
    /// What they may write besides their workspace.
    pub(crate) write: Vec<PathBuf>,
    /// Variables of their environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Memory of one command.
    pub(crate) memory_bytes: Option<NonZero<u64>>,
    /// Processes of one command.
    pub(crate) processes: Option<NonZero<u64>>,
    /// The size of a file that a command writes.
    pub(crate) file_bytes: Option<NonZero<u64>>,
    /// Processor time of each process.
    pub(crate) cpu_seconds: Option<NonZero<u64>>,
}

/// What confines commands.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxBackend {
    /// Landlock and seccomp of the kernel.
    #[default]
    Landlock,
    /// The program bwrap.
    Bubblewrap,
    /// A container for each command.
    Docker,
    /// Nothing.
    None,
}

/// What happens where commands cannot be confined.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxFallback {
    /// They do not run.
    #[default]
    Refuse,
    /// They run all the same.
    Unconfined,
}

/// Whom commands can talk to.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxNetwork {
    /// Nobody.
    #[default]
    None,
    /// Everybody.
    All,
}

/// Which commands ask a person.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Approvals {
    /// Whether dangerous commands ask.
    pub(crate) mode: ApprovalMode,
    /// Commands that never run.
    pub(crate) deny: Vec<String>,
    /// What happens to a call that a person would have to allow, in runs of routines and in subagents.
    pub(crate) unattended: Unattended,
}

/// What happens to a call that a person would have to allow, where nobody is.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unattended {
    /// It is refused.
    #[default]
    Deny,
    /// It runs.
    Allow,
}

/// Whether dangerous commands ask.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum ApprovalMode {
    /// They do.
    #[default]
    Manual,
    /// They do not.
    Off,
}

/// Notes that agents keep about users and their work.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Memory {
    /// Characters of the notes about the work, for one agent with one user.
    pub(crate) memory_chars: Option<NonZero<usize>>,
    /// Characters of the notes about the user.
    pub(crate) user_chars: Option<NonZero<usize>>,
}

/// Bounds of skills.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Skills {
    /// Skills that an agent may learn with one user.
    pub(crate) learned: Option<NonZero<usize>>,
    /// Characters of a SKILL.md.
    pub(crate) content_chars: Option<NonZero<usize>>,
    /// Files that come with a learned skill.
    pub(crate) files: Option<NonZero<usize>>,
    /// Bytes of one of them.
    pub(crate) file_bytes: Option<NonZero<usize>>,
    /// Characters of the index of skills in the system prompt.
    pub(crate) index_chars: Option<NonZero<usize>>,
}

/// The tools that look into the web.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Web {
    /// The search engine of web_search.
    pub(crate) search: Option<WebSearch>,
}

/// A search engine.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WebSearch {
    /// What it speaks.
    pub(crate) kind: SearchKind,
    /// Where it is.
    pub(crate) url: Option<String>,
    /// Its key.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) api_key: Option<SecretString>,
    /// The environment variable that holds its key.
    pub(crate) api_key_env: Option<String>,
}

/// What a search engine speaks.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum SearchKind {
    /// The JSON of SearXNG.
    #[default]
    Searxng,
    /// The API of Brave.
    Brave,
}

/// One MCP server: an address, or a program to start.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct McpServer {
    /// Where it is, over streamable HTTP.
    pub(crate) url: Option<String>,
    /// Sent with every request; `${NAME}` stands for a variable of the environment.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub(crate) headers: BTreeMap<String, SecretString>,
    /// The program that it is, over standard input and output.
    pub(crate) command: Option<String>,
    /// Arguments of the program.
    pub(crate) args: Vec<String>,
    /// Variables of the program; `${NAME}` stands for a variable of the environment.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub(crate) env: BTreeMap<String, SecretString>,
    /// Whose agents may use it; those of the tenant `default` unless set, `*` for all.
    pub(crate) tenants: Vec<String>,
}

/// How MCP servers are used.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Mcp {
    /// How long a session waits for a server's tools before it goes on without them.
    pub(crate) wait_seconds: Option<Seconds>,
    /// How long a server may take until its tools are known.
    pub(crate) connect_seconds: Option<Seconds>,
    /// How long one call may take.
    pub(crate) call_seconds: Option<Seconds>,
    /// How long a connection is kept that nobody uses.
    pub(crate) idle_seconds: Option<Seconds>,
    /// Bytes of one message of a server.
    pub(crate) message_bytes: Option<NonZero<usize>>,
}

/// How many requests each key may make.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Rate {
    /// Requests per second, over time.
    pub(crate) requests_per_second: NonZero<u32>,
    /// Requests at once, after a quiet time; as many as per second unless set.
    pub(crate) burst: Option<NonZero<u32>>,
}

/// Copies of the database in the server's home.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Backups {
    /// How many stay there; a new one takes the place of the oldest.
    pub(crate) keep: Option<NonZero<usize>>,
}

/// Which web pages may use the server from a browser.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Cors {
    /// Their origins; none listed means all.
    pub(crate) origins: Vec<String>,
}

/// Who sees the metrics.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Metrics {
    /// Whether they are shown without a key.
    pub(crate) public: bool,
}

/// Traces for an OpenTelemetry collector.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Traces {
    /// Where they go, over HTTP.
    pub(crate) endpoint: String,
    /// Sent with every request.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
}

/// The log of the process, on standard error.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Log {
    /// How much is logged.
    pub(crate) level: Option<String>,
    /// What a line looks like.
    pub(crate) format: LogFormat,
}

/// What a line of the log looks like.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object in a line.
    Json,
}

/// An amount of money that is not negative.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(with = "f64"))]
pub(crate) struct Price(pub(crate) f64);

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let price = f64::deserialize(deserializer)?;
        match price.is_finite() && price >= 0.0 {
            true => Ok(Price(price)),
            false => Err(D::Error::custom(format!("{price} must be an amount of 0 or more"))),
        }
    }
}

/// A part of a whole, between 0.1 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(with = "f64"))]
pub(crate) struct Share(pub(crate) f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(deserializer)?;
        match (0.1..=1.0).contains(&share) {
            true => Ok(Share(share)),
            false => Err(D::Error::custom(format!("{share} must be between 0.1 and 1"))),
        }
    }
}

/// A length of time, written as seconds; fractions are allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(with = "f64"))]
pub(crate) struct Seconds(pub(crate) Duration);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        match Duration::try_from_secs_f64(seconds) {
            Ok(time) if !time.is_zero() => Ok(Seconds(time)),
            _ => Err(D::Error::custom(format!("{seconds} must be a number of seconds greater than 0"))),
        }
    }
}
