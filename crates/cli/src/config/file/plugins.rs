//! Plugins in Python.

use std::collections::BTreeMap;
use std::num::NonZero;

use serde::Deserialize;

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
    /// How many callbacks, tools and commands of plugins may be under way in one Python process: 256 unless set.
    pub(crate) max_concurrent_calls: Option<NonZero<usize>>,
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
