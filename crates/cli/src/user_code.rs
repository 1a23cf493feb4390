//! Puts together what users bring: plugins, hooks of the configuration, gateway hooks.

use std::sync::Arc;

use anyhow::Result;
use petasos_engine::{Engine, add_plugin_tools};
use petasos_hooks::python::{PluginSkill, PythonHosts, Status};
use petasos_hooks::{Bus, GatewayEvents, Source};
use petasos_tools::Toolbox;

use crate::config::{Config, PluginConfig, gateway_hooks};
use crate::env::Environment;
use crate::home::Home;
use crate::hooks::{self, Asking};
use crate::instance::supervisor;

/// How much user code a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything.
    All,
    /// What takes part in turns.
    Turns,
    /// Hooks of the configuration, without asking anybody: there will be no turns.
    Configured,
}

/// User code that runs.
pub(crate) struct UserCode {
    python: Option<PythonHosts>,
    bus: Arc<Bus>,
}

impl UserCode {
    /// Starts what there is, and waits until plugins have said what they want.
    pub(crate) async fn start(
        config: &Config,
        home: &Home,
        environment: &Environment,
        extent: Extent,
    ) -> Result<UserCode> {
        let asking = if extent == Extent::Configured { Asking::Never } else { Asking::Allowed };
        let configured = hooks::source(config, home, environment, asking)?;
        let python = python(&config.plugins, home, extent);
        if let Some(hosts) = &python {
            hosts.loaded().await;
        }
        // Plugins come first.
        let plugins = python.clone().map(|hosts| Arc::new(hosts) as Arc<dyn Source>);
        let bus = Arc::new(Bus::new(plugins.into_iter().chain(configured).collect()));
        Ok(UserCode { python, bus })
    }

    /// What takes part in turns.
    pub(crate) fn bus(&self) -> Arc<Bus> {
        Arc::clone(&self.bus)
    }

    /// Plugins and gateway hooks, if there are any.
    pub(crate) fn python(&self) -> Option<PythonHosts> {
        self.python.clone()
    }

    /// Adds the tools that plugins bring.
    pub(crate) fn add_tools(&self, tools: &mut Toolbox, config: &PluginConfig) {
        if let Some(hosts) = &self.python {
            add_plugin_tools(tools, hosts, &config.may_override);
        }
    }

    /// The skills that plugins bring.
    pub(crate) fn skills(&self) -> Vec<PluginSkill> {
        self.python.as_ref().map(PythonHosts::skills).unwrap_or_default()
    }

    /// Lets plugins ask things of sessions, and start agents with a model unless they name another.
    pub(crate) fn serve(&self, engine: &Engine, default_model: &str) {
        if let Some(hosts) = &self.python {
            hosts.serve_sessions(Arc::new(engine.clone()), default_model);
        }
    }

    /// Tells gateway hooks that the server has started. Nobody waits for them.
    pub(crate) fn tell_startup(&self) {
        let Some(hosts) = self.python.clone() else { return };
        let events = GatewayEvents::new(self.bus(), hosts, vec!["api".to_owned()]);
        tokio::spawn(async move { events.startup().await });
    }

    /// Ends it.
    pub(crate) fn stop(&self) {
        if let Some(hosts) = &self.python {
            hosts.stop();
        }
    }
}

/// Starts Python, if there is anything to run in it.
fn python(config: &PluginConfig, home: &Home, extent: Extent) -> Option<PythonHosts> {
    if extent == Extent::Configured {
        return None;
    }
    let mut plugins = config.plugins(home);
    plugins.retain(|plugin| {
        if let Status::Broken(problem) = &plugin.status
            && config.selection.enabled.contains(&plugin.key)
        {
            tracing::warn!(plugin = plugin.key, "a plugin is left out: {problem}");
        }
        plugin.is_enabled()
    });
    let hooks = if extent == Extent::All { gateway_hooks(&home.hooks()) } else { Vec::new() };
    let is_empty = plugins.is_empty() && hooks.is_empty();
    (!is_empty).then(|| PythonHosts::start(config.settings(home), supervisor(), &plugins, &hooks))
}
