//! The configuration: defaults, then `config.yaml`, then the environment, then flags.

mod catalog;
mod deliveries;
mod egress;
mod file;
mod list_edit;
mod mcp;
mod plugins;
mod providers;
mod proxy;
mod read;
#[cfg(test)]
mod reference;
mod sandbox;
mod starting;
mod web;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use petasos_models::ProviderConfig;
use petasos_server::RateLimit;

pub(crate) use self::deliveries::DeliveryConfig;
use self::file::{File, Price, Seconds};
pub(crate) use self::file::{LogFormat, WebApproval};
pub(crate) use self::list_edit::{Want, edit as edit_list};
pub(crate) use self::plugins::{PluginConfig, gateway_hooks};
pub(crate) use self::proxy::net_of_environment;
use self::read::Presence;
use crate::env::{self, Environment};
use crate::home::Home;
use crate::hooks::HookSettings;
use crate::logging;
use crate::traces::TraceSettings;

/// Where the server listens unless told otherwise.
const DEFAULT_LISTEN: &str = "127.0.0.1:7380";
const DEFAULT_BODY_BYTES: usize = 16 * 1024 * 1024;
const DEFAULT_TOOL_OUTPUT_CHARS: usize = 100_000;
const DEFAULT_BACKUPS: NonZero<usize> = NonZero::new(10).unwrap();
const DEFAULT_TOOL_TIME: Duration = Duration::from_secs(600);

/// Everything that can be set, with all layers applied but the flags of single commands.
pub(crate) struct Config {
    /// The address to listen on.
    pub(crate) listen: String,
    /// The model of `run` and `chat`, if that was set.
    pub(crate) default_model: Option<String>,
    /// Model providers, by name.
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
    /// How models are called.
    pub(crate) models: petasos_models::Settings,
    /// What is known about models.
    pub(crate) catalog: petasos_models::Catalog,
    /// How connections to them are made.
    pub(crate) net: petasos_net::Options,
    /// What may be reached on the word of a caller or a model.
    pub(crate) guard: petasos_net::Guard,
    /// How webhooks and callbacks go out.
    pub(crate) deliveries: DeliveryConfig,
    /// MCP servers, by name.
    pub(crate) mcp_servers: BTreeMap<String, petasos_tools::mcp::ServerDefinition>,
    /// How they are used.
    pub(crate) mcp: petasos_tools::mcp::Settings,
    /// The search engine of `web_search`.
    pub(crate) search: web::Search,
    /// Bounds of turns and sessions.
    pub(crate) limits: petasos_core::limits::Limits,
    /// How much agents may note.
    pub(crate) memory: petasos_engine::MemorySettings,
    /// Bounds of skills.
    pub(crate) skills: petasos_engine::SkillSettings,
    /// Bytes of a request's body.
    pub(crate) max_body_bytes: usize,
    /// Characters of a tool's result.
    pub(crate) max_tool_output_chars: usize,
    /// Time that one tool call may take.
    pub(crate) tool_time: Duration,
    /// How commands of agents are run.
    pub(crate) sandbox: petasos_sandbox::Settings,
    /// Which commands of agents ask a person.
    pub(crate) approvals: petasos_tools::Approvals,
    /// Whether `web_extract` asks a person.
    pub(crate) web_approval: WebApproval,
    /// What is run at points of a turn.
    pub(crate) hooks: HookSettings,
    /// How much agents' files may take on the disk.
    pub(crate) workspaces: petasos_tools::WorkspaceLimits,
    /// How many backups stay in the home.
    pub(crate) backups_keep: NonZero<usize>,
    /// What happens to a call that a person would have to allow, where nobody is.
    pub(crate) unattended: petasos_engine::Unattended,
    /// Origins that may use the server from a browser; none for all.
    pub(crate) cors_origins: Vec<String>,
    /// What happens to fields of requests that are not known.
    pub(crate) unknown_fields: petasos_server::UnknownFields,
    /// How many requests each key may make.
    pub(crate) rate_limit: Option<RateLimit>,
    /// Whether metrics are shown without a key.
    pub(crate) metrics_public: bool,
    /// Where traces go, if anywhere.
    pub(crate) traces: Option<TraceSettings>,
    /// How much is logged, if that was set.
    pub(crate) log_level: Option<String>,
    /// What a line of the log looks like.
    pub(crate) log_format: LogFormat,
    /// Plugins.
    pub(crate) plugins: PluginConfig,
    /// What is odd but no reason not to start.
    pub(crate) warnings: Vec<String>,
}

/// What the named file, or the one in the home if there is one, says about commands. Nothing else in it is looked at.
pub(crate) fn approvals(named: Option<&Path>, home: &Home) -> Result<petasos_tools::Approvals> {
    let file = match named {
        Some(path) => read::read(&std::path::absolute(path)?, Presence::Required)?,
        None => read::read(&home.config(), Presence::Optional)?,
    };
    Ok(sandbox::approvals(file.approvals, file.command_allowlist))
}

impl Config {
    /// Reads the configuration: the named file, or the one in the home if there is one.
    pub(crate) fn read(named: Option<&Path>, home: &Home, environment: &Environment) -> Result<Config> {
        let (path, presence) = match named {
            Some(path) => (std::path::absolute(path)?, Presence::Required),
            None => (home.config(), Presence::Optional),
        };
        let mut config = Config::resolve(read::read(&path, presence)?, environment)?;
        // It holds keys, and may lie where commands can read.
        config.sandbox.hidden.push(path);
        // What commands write there would run outside the sandbox at the next start.
        config.sandbox.hidden.extend(config.plugins.project.clone());
        Ok(config)
    }

    fn resolve(file: File, environment: &Environment) -> Result<Config> {
        let providers = providers::providers(file.providers, environment)?;
        let catalog = catalog::catalog(file.catalog, &file.compaction, &providers);
        let mut warnings = providers.warnings;
        let mcp_servers = mcp::servers(file.mcp_servers, environment, &mut warnings)?;
        let listen = match (environment.text(env::LISTEN)?, file.listen) {
            (Some(address), _) => Some((env::LISTEN, address)),
            (None, address) => address.map(|address| ("listen", address)),
        };
        let log_level = match (environment.text(env::LOG)?, file.log.level) {
            (Some(level), _) => Some((env::LOG, level)),
            (None, level) => level.map(|level| ("log.level", level)),
        };
        listen.as_ref().map_or(Ok(()), |(name, address)| starting::listen(name, address))?;
        file.default_model.as_deref().map_or(Ok(()), starting::default_model)?;
        file.traces.as_ref().map_or(Ok(()), |traces| starting::traces(&traces.endpoint))?;
        log_level.as_ref().map_or(Ok(()), |(name, level)| logging::check(name, level))?;
        let mut net = petasos_net::Options::default();
        set(&mut net.connect_timeout, time(file.models.connect_seconds));
        net.proxies = proxy::proxies(file.proxy, environment, &mut warnings)?;
        net.certificates = proxy::certificates(file.ca_file.as_deref(), environment)?;
        let guard = egress::guard(&file.egress)?;
        let search = web::search(file.web.search, environment, &net, &guard, &mut warnings)?;
        Ok(Config {
            listen: listen.map_or_else(|| DEFAULT_LISTEN.to_owned(), |(_, address)| address),
            default_model: file.default_model,
            providers: providers.all,
            models: model_settings(&file.models),
            catalog,
            net,
            search,
            deliveries: deliveries::deliveries(file.deliveries, &guard)?,
            guard,
            mcp_servers,
            mcp: mcp::settings(&file.mcp),
            limits: turn_limits(&file.limits),
            memory: memory_settings(&file.memory),
            skills: skill_settings(&file.skills),
            max_body_bytes: file.limits.body_bytes.map_or(DEFAULT_BODY_BYTES, NonZero::get),
            max_tool_output_chars: file
                .limits
                .tool_output_chars
                .map_or(DEFAULT_TOOL_OUTPUT_CHARS, NonZero::get),
            tool_time: time(file.limits.tool_seconds).unwrap_or(DEFAULT_TOOL_TIME),
            sandbox: sandbox::settings(file.sandbox, &workspace_limits(&file.workspaces))?,
            unattended: match file.approvals.unattended {
                file::Unattended::Deny => petasos_engine::Unattended::Deny,
                file::Unattended::Allow => petasos_engine::Unattended::Allow,
            },
            web_approval: file.approvals.web,
            approvals: sandbox::approvals(file.approvals, file.command_allowlist),
            hooks: HookSettings {
                block: file.hooks,
                auto_accept: petasos_hooks::accepts(&file.hooks_auto_accept),
            },
            workspaces: workspace_limits(&file.workspaces),
            backups_keep: file.backups.keep.unwrap_or(DEFAULT_BACKUPS),
            cors_origins: file.cors.origins,
            unknown_fields: match file.unknown_fields {
                file::UnknownFields::Refuse => petasos_server::UnknownFields::Refuse,
                file::UnknownFields::Ignore => petasos_server::UnknownFields::Ignore,
            },
            rate_limit: file.rate_limit.map(|limit| RateLimit {
                per_second: limit.requests_per_second,
                burst: limit.burst.unwrap_or(limit.requests_per_second),
            }),
            metrics_public: file.metrics.public,
            traces: file.traces.map(|traces| TraceSettings {
                endpoint: traces.endpoint,
                headers: traces.headers.into_iter().collect(),
            }),
            log_level: log_level.map(|(_, level)| level),
            log_format: file.log.format,
            plugins: PluginConfig::resolve(file.plugins, environment)?,
            warnings,
        })
    }
}

fn workspace_limits(file: &file::WorkspaceFiles) -> petasos_tools::WorkspaceLimits {
    let mut limits = petasos_tools::WorkspaceLimits::default();
    set(&mut limits.max_bytes, file.max_bytes.map(NonZero::get));
    limits.total_max_bytes = file.total_max_bytes.map(NonZero::get);
    limits
}

fn turn_limits(file: &file::Limits) -> petasos_core::limits::Limits {
    let mut limits = petasos_core::limits::Limits::default();
    set(&mut limits.turn_model_calls, file.turn_model_calls.map(NonZero::get));
    set(&mut limits.turn_time, time(file.turn_seconds));
    set(&mut limits.turn_tokens, file.turn_tokens.map(NonZero::get));
    set(&mut limits.session_tokens, file.session_tokens.map(|tokens| Some(tokens.get())));
    limits.turn_cost_nanos = file.turn_cost.map(nanos);
    limits.session_cost_nanos = file.session_cost.map(nanos);
    limits.agent_day_cost_nanos = file.agent_day_cost.map(nanos);
    limits.agent_month_cost_nanos = file.agent_month_cost.map(nanos);
    limits.at_budget = match file.at_budget {
        file::AtBudget::Stop => petasos_core::budget::AtBudget::Stop,
        file::AtBudget::Pause => petasos_core::budget::AtBudget::Pause,
    };
    limits.action_time = time(file.action_seconds);
    set(&mut limits.step_tool_calls, file.step_tool_calls.map(NonZero::get));
    set(&mut limits.call_threads, file.call_threads.map(NonZero::get));
    set(&mut limits.thread_model_calls, file.thread_model_calls.map(NonZero::get));
    limits
}

fn model_settings(file: &file::Models) -> petasos_models::Settings {
    let mut settings = petasos_models::Settings::default();
    set(&mut settings.retry.max_attempts, file.max_attempts.map(NonZero::get));
    set(&mut settings.retry.base_delay, time(file.retry_delay_seconds));
    set(&mut settings.retry.max_delay, time(file.retry_max_delay_seconds));
    set(&mut settings.retry.max_total, time(file.retry_total_seconds));
    set(&mut settings.first_byte_timeout, time(file.first_byte_seconds));
    set(&mut settings.stall_timeout, time(file.stall_seconds));
    set(&mut settings.time_limit, time(file.call_seconds));
    set(&mut settings.max_output_chars, file.output_chars.map(NonZero::get));
    settings
}

fn memory_settings(file: &file::Memory) -> petasos_engine::MemorySettings {
    let mut settings = petasos_engine::MemorySettings::default();
    set(&mut settings.memory_chars, file.memory_chars.map(NonZero::get));
    set(&mut settings.user_chars, file.user_chars.map(NonZero::get));
    settings
}

fn skill_settings(file: &file::Skills) -> petasos_engine::SkillSettings {
    let mut settings = petasos_engine::SkillSettings::default();
    set(&mut settings.learned, file.learned.map(NonZero::get));
    set(&mut settings.content_chars, file.content_chars.map(NonZero::get));
    set(&mut settings.files, file.files.map(NonZero::get));
    set(&mut settings.file_bytes, file.file_bytes.map(NonZero::get));
    set(&mut settings.index_chars, file.index_chars.map(NonZero::get));
    settings
}

fn nanos(Price(amount): Price) -> u64 {
    (amount * petasos_core::spending::NANOS) as u64
}

fn time(seconds: Option<Seconds>) -> Option<Duration> {
    seconds.map(|Seconds(time)| time)
}

/// Replaces a default by what was set.
fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved<const N: usize>(file: &str, variables: [(&str, &str); N]) -> Config {
        Config::resolve(serde_saphyr::from_str(file).unwrap(), &Environment::from(variables)).unwrap()
    }

    #[test]
    fn defaults_are_those_of_the_crates() {
        let config = resolved("{}", []);
        assert_eq!(config.listen, "127.0.0.1:7380");
        assert_eq!(config.models, petasos_models::Settings::default());
        assert_eq!(config.limits, petasos_core::limits::Limits::default());
        assert_eq!(config.log_level, None);
    }

    #[test]
    fn the_file_sets_and_the_environment_wins() {
        let file = "
listen: 127.0.0.1:1
limits: { turn_seconds: 1.5, session_tokens: 7, body_bytes: 10, tool_output_chars: 11, tool_seconds: 12 }
models: { max_attempts: 1, first_byte_seconds: 2, connect_seconds: 3, output_chars: 4 }
memory: { memory_chars: 13, user_chars: 14 }
skills: { learned: 15, content_chars: 16, files: 17, file_bytes: 18, index_chars: 19 }
workspaces: { max_bytes: 20, total_max_bytes: 21 }
cors: { origins: ['https://a'] }
metrics: { public: true }
log: { level: debug, format: json }
catalog: { 'a/*': { context_window: 1000, prices: { input: 2, output: 8.5 } } }
compaction: { at: 0.5 }
";
        let config = resolved(file, []);
        assert_eq!(config.listen, "127.0.0.1:1");
        assert_eq!(config.limits.turn_time, Duration::from_millis(1500));
        assert_eq!(config.limits.session_tokens, Some(7));
        assert_eq!((config.max_body_bytes, config.max_tool_output_chars), (10, 11));
        assert_eq!(config.tool_time, Duration::from_secs(12));
        assert_eq!((config.workspaces.max_bytes, config.workspaces.total_max_bytes), (20, Some(21)));
        assert_eq!(config.sandbox.limits.unnamed_bytes, 20);
        assert_eq!(config.models.retry.max_attempts, 1);
        assert_eq!(config.models.first_byte_timeout, Duration::from_secs(2));
        assert_eq!(config.net.connect_timeout, Duration::from_secs(3));
        assert_eq!(config.models.max_output_chars, 4);
        assert_eq!((config.memory.memory_chars, config.memory.user_chars), (13, 14));
        assert_eq!((config.skills.learned, config.skills.content_chars), (15, 16));
        assert_eq!((config.skills.files, config.skills.file_bytes, config.skills.index_chars), (17, 18, 19));
        assert_eq!(config.catalog.compact_at("a/b"), 500);
        let usage = petasos_core::model::Usage { input_tokens: 3, output_tokens: 2, ..Default::default() };
        assert_eq!(config.catalog.cost_nanos("a/b", &usage), Some(23_000));
        assert_eq!(config.cors_origins, ["https://a"]);
        assert!(config.metrics_public);
        assert_eq!(config.log_format, LogFormat::Json);
        assert_eq!(config.log_level.as_deref(), Some("debug"));

        let config = resolved(file, [("PETASOS_LISTEN", "127.0.0.1:2"), ("PETASOS_LOG", "trace")]);
        assert_eq!(config.listen, "127.0.0.1:2");
        assert_eq!(config.log_level.as_deref(), Some("trace"));
    }
}
