//! How the server is run and watched.

use std::collections::BTreeMap;
use std::num::NonZero;

use serde::Deserialize;

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

/// How much agents' files may take on the disk.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WorkspaceFiles {
    /// Bytes of one workspace; 10 GB unless set.
    pub(crate) max_bytes: Option<NonZero<u64>>,
    /// Bytes of all workspaces together; no bound unless set.
    pub(crate) total_max_bytes: Option<NonZero<u64>>,
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

/// What happens to fields of requests that are not known.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum UnknownFields {
    /// The request is refused.
    #[default]
    Refuse,
    /// They are left out, and named in the answer and in the log.
    Ignore,
}
