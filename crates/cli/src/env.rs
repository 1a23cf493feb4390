//! The environment: every variable that Petasos reads, and the only place that reads them. Those of model providers are
//! named by [`petasos_models::presets`].

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use secrecy::SecretString;

use crate::output::Colours;

/// Where everything is kept, unless `--data-dir` says so.
pub(crate) const HOME: &str = "PETASOS_HOME";
/// The admin key of a server, and the key that commands use.
pub(crate) const API_KEY: &str = "PETASOS_API_KEY";
/// The address to listen on.
pub(crate) const LISTEN: &str = "PETASOS_LISTEN";
/// How much is logged.
pub(crate) const LOG: &str = "PETASOS_LOG";
/// The server that commands talk to.
pub(crate) const URL: &str = "PETASOS_URL";
/// Whether every configured hook may run.
pub(crate) const ACCEPT_HOOKS: &str = "PETASOS_ACCEPT_HOOKS";
/// The same, by the name that it has where the contract of hooks comes from.
pub(crate) const HERMES_ACCEPT_HOOKS: &str = "HERMES_ACCEPT_HOOKS";
/// Plugins of the working directory are used too.
pub(crate) const ENABLE_PROJECT_PLUGINS: &str = "PETASOS_ENABLE_PROJECT_PLUGINS";
/// No colours, not even on a terminal.
pub(crate) const NO_COLOR: &str = "NO_COLOR";
const TERM: &str = "TERM";
/// Those that the editor cannot be used on.
const SIMPLE_TERMINALS: [&str; 3] = ["dumb", "cons25", "emacs"];
/// Who is at the terminal.
const USER: &str = "USER";
/// The key of Brave's search API.
pub(crate) const BRAVE_API_KEY: &str = "BRAVE_API_KEY";
/// The address of a SearXNG server.
pub(crate) const SEARXNG_URL: &str = "SEARXNG_URL";
/// The key of Tavily's search API.
pub(crate) const TAVILY_API_KEY: &str = "TAVILY_API_KEY";
/// The address of Tavily's search API.
pub(crate) const TAVILY_BASE_URL: &str = "TAVILY_BASE_URL";
/// The key of Exa's search API.
pub(crate) const EXA_API_KEY: &str = "EXA_API_KEY";
/// The address of Exa's search API.
pub(crate) const EXA_BASE_URL: &str = "EXA_BASE_URL";

/// The proxy of requests to `http://` addresses. This program is no CGI, so that no request sets it.
pub(crate) const HTTP_PROXY: &str = "HTTP_PROXY";
/// The proxy of requests to `https://` addresses.
pub(crate) const HTTPS_PROXY: &str = "HTTPS_PROXY";
/// The proxy of both, unless they have one of their own.
pub(crate) const ALL_PROXY: &str = "ALL_PROXY";
/// The hosts that are reached without a proxy.
pub(crate) const NO_PROXY: &str = "NO_PROXY";
/// A file of certificates that are trusted.
pub(crate) const SSL_CERT_FILE: &str = "SSL_CERT_FILE";

/// The variables as they were when the process started. An empty variable counts as one that is not set.
#[derive(Default, Clone)]
pub(crate) struct Environment {
    variables: HashMap<OsString, OsString>,
    user_home: Option<PathBuf>,
    /// Whether the command line says that every hook may run.
    accept_hooks: bool,
}

impl Environment {
    /// Reads the environment of this process.
    pub(crate) fn read() -> Self {
        let (variables, user_home) = (std::env::vars_os().collect(), std::env::home_dir());
        Environment { variables, user_home, accept_hooks: false }
    }

    /// The same, with what the command line says about hooks.
    pub(crate) fn accepting_hooks(self, accept_hooks: bool) -> Self {
        Environment { accept_hooks, ..self }
    }

    /// Whether every configured hook may run.
    pub(crate) fn accepts_hooks(&self) -> bool {
        self.accept_hooks || self.is_on(ACCEPT_HOOKS) || self.is_on(HERMES_ACCEPT_HOOKS)
    }

    /// The environment of hooks and plugins: all variables that are text, without the key to the server and without
    /// what would have programs run code from the working directory.
    pub(crate) fn for_user_code(&self) -> BTreeMap<String, String> {
        let text = |(name, value): (&OsString, &OsString)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        };
        let mut variables: BTreeMap<_, _> = self.variables.iter().filter_map(text).collect();
        variables.remove(API_KEY);
        petasos_hooks::hook_environment(variables)
    }

    /// The home directory of the user, not of Petasos.
    pub(crate) fn user_home(&self) -> Option<PathBuf> {
        self.user_home.clone().filter(|home| !home.as_os_str().is_empty())
    }

    /// Whether colours may be used.
    pub(crate) fn colours(&self) -> Colours {
        let never = self.get(NO_COLOR).is_some() || self.has_simple_terminal();
        if never { Colours::Never } else { Colours::OnTerminals }
    }

    /// Whether the terminal, if there is one, knows nothing but text.
    pub(crate) fn has_simple_terminal(&self) -> bool {
        self.get(TERM).is_some_and(|term| SIMPLE_TERMINALS.iter().any(|simple| term == *simple))
    }

    /// Who is at the terminal, as the sessions of `run` and `chat` name them.
    pub(crate) fn user_name(&self) -> String {
        let name = self.get(USER).and_then(|name| name.to_str()).map(str::trim);
        name.filter(|name| !name.is_empty()).unwrap_or("local").to_owned()
    }

    /// A variable that holds a path.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// A variable that holds text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        match self.get(name).map(|value| value.to_str()) {
            None => Ok(None),
            Some(Some(value)) => Ok(Some(value.to_owned())),
            Some(None) => bail!("the environment variable {name} is not valid UTF-8"),
        }
    }

    /// A variable whose name may be in lower case, which wins, and the name that it has.
    pub(crate) fn either_case(&self, name: &str) -> Result<Option<(String, String)>> {
        for name in [name.to_ascii_lowercase(), name.to_owned()] {
            if let Some(value) = self.text(&name)? {
                return Ok(Some((name, value)));
            }
        }
        Ok(None)
    }

    /// A variable that holds a key. White space around it is cut off: files that keys come from end in a newline.
    pub(crate) fn secret(&self, name: &str) -> Result<Option<SecretString>> {
        let value = self.text(name)?;
        let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        Ok(value.map(SecretString::from))
    }

    /// Whether a switch is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name).and_then(|word| word.to_str()).is_some_and(petasos_hooks::is_yes)
    }

    fn get(&self, name: &str) -> Option<&OsString> {
        self.variables.get(std::ffi::OsStr::new(name)).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
impl Environment {
    /// An environment with these variables.
    pub(crate) fn of(pairs: &[(&str, &str)]) -> Self {
        let variables = pairs.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Environment { variables, user_home: None, accept_hooks: false }
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Environment::of(&pairs)
    }
}
