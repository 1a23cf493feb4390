//! What is reached outside: addresses, receivers of deliveries, the web, MCP servers.

use std::collections::BTreeMap;
use std::num::NonZero;

use secrecy::SecretString;
use serde::Deserialize;

use super::amounts::Seconds;

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

/// Proxies. What is not set here is taken from the environment; an empty text stands for no proxy.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Proxy {
    /// The proxy of requests to http:// addresses; HTTP_PROXY unless set.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) http: Option<SecretString>,
    /// The proxy of requests to https:// addresses; HTTPS_PROXY unless set.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) https: Option<SecretString>,
    /// The proxy of both, unless they have one of their own; ALL_PROXY unless set.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) all: Option<SecretString>,
    /// Hosts, suffixes, addresses and networks that are reached without a proxy; NO_PROXY unless set.
    pub(crate) no_proxy: Option<Vec<String>>,
    /// Whether the addresses that callers and models name, and deliveries, go through the proxy too.
    pub(crate) callers: bool,
}

/// How webhooks and callbacks go out.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Deliveries {
    /// Where the events of sessions go if neither the session's nor the agent's metadata has event_webhook_url.
    pub(crate) event_webhook_url: Option<String>,
    /// The bearer token of the tenant default's deliveries; derived from the secret unless set.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) token: Option<SecretString>,
    /// Signs the tenant default's deliveries, and all other credentials follow from it; that of delivery.secret unless set.
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

/// The tools that look into the web.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Web {
    /// The search engine of web_search. Left out, the first of brave, searxng, tavily and exa whose variable is set.
    pub(crate) search: Option<WebSearch>,
}

/// A search engine.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WebSearch {
    /// What it speaks.
    pub(crate) kind: SearchKind,
    /// Where it is; left out, what SEARXNG_URL, TAVILY_BASE_URL or EXA_BASE_URL says, or the vendor's own address.
    pub(crate) url: Option<String>,
    /// Its key.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(crate) api_key: Option<SecretString>,
    /// The environment variable that holds its key; left out, BRAVE_API_KEY, TAVILY_API_KEY or EXA_API_KEY.
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
    /// The API of Tavily.
    Tavily,
    /// The API of Exa.
    Exa,
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
