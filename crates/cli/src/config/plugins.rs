//! Plugins and gateway hooks, as the server runs them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use petasos_hooks::python::{GatewayHook, Plugin, Python, Selection, Settings};

use super::file;
use crate::env::{self, Environment};
use crate::home::Home;

/// The longest time limit of a callback.
const MAX_CALLBACK_TIME: Duration = Duration::from_secs(600);
const USUAL_PYTHON: &str = "python3";

/// What the configuration says about plugins.
pub(crate) struct PluginConfig {
    /// How they are run. Where they start is known when the home is.
    settings: Settings,
    /// Which are used.
    pub(crate) selection: Selection,
    /// Those whose tools may take the place of others.
    pub(crate) may_override: BTreeSet<String>,
    /// Where a project keeps its own, if that is switched on.
    pub(super) project: Option<PathBuf>,
}

impl PluginConfig {
    /// What the file and the environment say.
    pub(super) fn resolve(file: file::Plugins, environment: &Environment) -> Result<Self> {
        let program = file.python.unwrap_or_else(|| USUAL_PYTHON.to_owned());
        // The key to the server is not for user code. Everything else it may need.
        let env = environment.for_user_code();
        let mut settings = Settings::new(Python { program, env, directory: PathBuf::new() });
        if let Some(seconds) = file.hook_callback_timeout {
            settings.callback_time = callback_time(seconds)?;
        }
        if let Some(most) = file.max_concurrent_calls {
            settings.most_calls = most.get();
        }
        let entries = file.entries.into_iter();
        let project = environment
            .is_on(env::ENABLE_PROJECT_PLUGINS)
            .then(|| std::path::absolute(".petasos/plugins"))
            .transpose()?;
        Ok(PluginConfig {
            settings,
            selection: Selection { enabled: file.enabled, disabled: file.disabled },
            may_override: entries
                .filter(|(_, entry)| entry.allow_tool_override)
                .map(|(key, _)| key)
                .collect(),
            project,
        })
    }

    /// All plugins that are there, used or not.
    pub(crate) fn plugins(&self, home: &Home) -> Vec<Plugin> {
        Plugin::discover(&home.plugins(), self.project.as_deref(), &self.selection)
    }

    /// Whether a plugin of this key is in a directory, rather than only named by the configuration.
    pub(crate) fn is_there(&self, home: &Home, key: &str) -> bool {
        let there = Plugin::discover(&home.plugins(), self.project.as_deref(), &Selection::default());
        there.iter().any(|plugin| plugin.key == key)
    }

    /// How they are run in a home.
    pub(crate) fn settings(&self, home: &Home) -> Settings {
        let mut settings = self.settings.clone();
        settings.python.directory = home.path().to_owned();
        let path = home.path().to_string_lossy().into_owned();
        // Plugins that were written for this contract elsewhere look for their home under the other name.
        for name in [env::HOME, "HERMES_HOME"] {
            settings.python.env.entry(name.to_owned()).or_insert_with(|| path.clone());
        }
        settings.python.env.insert(env::HOME.to_owned(), path);
        settings
    }
}

/// The gateway hooks of a home.
pub(crate) fn gateway_hooks(directory: &Path) -> Vec<GatewayHook> {
    GatewayHook::discover(directory)
}

fn callback_time(seconds: f64) -> Result<Option<Duration>> {
    if seconds == 0.0 {
        return Ok(None);
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(Some(time.min(MAX_CALLBACK_TIME))),
        // More than a length of time can be.
        Err(_) if seconds > 0.0 => Ok(Some(MAX_CALLBACK_TIME)),
        _ => bail!("plugins.hook_callback_timeout: {seconds} must be a number of seconds, or 0 for no limit"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_limit_is_clamped_and_can_be_switched_off() {
        assert_eq!(callback_time(0.0).unwrap(), None);
        assert_eq!(callback_time(0.25).unwrap(), Some(Duration::from_millis(250)));
        assert_eq!(callback_time(1e9).unwrap(), Some(Duration::from_secs(600)));
        assert!(callback_time(-1.0).is_err() && callback_time(f64::NAN).is_err());
    }

    #[test]
    fn user_code_does_not_get_the_key_to_the_server() {
        let environment = Environment::from([(env::API_KEY, "secret"), ("PATH", "/bin")]);
        let config = PluginConfig::resolve(file::Plugins::default(), &environment).unwrap();
        let env = config.settings.python.env;
        assert_eq!(env.get("PATH").map(String::as_str), Some("/bin"));
        assert!(!env.values().any(|value| value == "secret"));
    }
}
