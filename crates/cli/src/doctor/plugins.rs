//! Checks of plugins and gateway hooks: they are loaded as a server would load them.

use petasos_hooks::Source as _;
use petasos_hooks::python::{GatewayHook, PythonHosts, Status};

use super::Check;
use crate::config::{Config, gateway_hooks};
use crate::home::Home;
use crate::instance::supervisor;

/// Loads everything that is switched on, and says what cannot be.
pub(super) async fn check(config: &Config, home: &Home) -> Vec<Check> {
    let plugins = config.plugins.plugins(home);
    let mut checks: Vec<Check> = Vec::new();
    for plugin in &plugins {
        if let Status::Broken(problem) = &plugin.status {
            let cure = if config.plugins.is_there(home, &plugin.key) {
                "mend the file, or remove the directory".to_owned()
            } else {
                format!("mend that, or take {} out of plugins.enabled in config.yaml", plugin.key)
            };
            checks.push(Check::warn(
                format!("plugin {}", plugin.key),
                format!("is left out: {problem}"),
                cure,
            ));
        }
    }
    let enabled: Vec<_> = plugins.into_iter().filter(|plugin| plugin.is_enabled()).collect();
    let hooks = gateway_hooks(&home.hooks());
    if enabled.is_empty() && hooks.is_empty() {
        return checks;
    }
    let hosts = PythonHosts::start(config.plugins.settings(home), supervisor(), &enabled, &hooks);
    hosts.loaded().await;
    let unloaded = hosts.unloaded();
    for (name, problem) in &unloaded {
        let problem = format!("cannot be loaded: {problem}");
        let hook = hooks.iter().find(|hook| name.strip_prefix("hooks/") == Some(&hook.name));
        checks.push(match hook.filter(|_| enabled.iter().all(|plugin| plugin.key != *name)) {
            Some(GatewayHook { name, handler, .. }) => {
                let directory = home.hooks();
                let cure = format!(
                    "mend {}, or move its directory out of {}",
                    handler.display(),
                    directory.display()
                );
                Check::warn(format!("gateway hook {name}"), problem, cure)
            }
            None => {
                let cure = format!("mend it, or switch it off: petasos plugins disable {name}");
                Check::warn(format!("plugin {name}"), problem, cure)
            }
        });
    }
    for (name, method) in hosts.ignored() {
        let (what, cure) =
            (format!("plugin {name}"), "what it registers there does nothing; the rest of it works");
        checks.push(Check::warn(what, format!("calls {method}, which is not supported here"), cure));
    }
    let problems = hosts.problems();
    let what = "python host";
    checks.extend(problems.iter().map(|problem| {
        Check::fail(
            what,
            problem.clone(),
            "look at the log of petasos serve, and mend or disable what it names",
        )
    }));
    if problems.is_empty() {
        let loaded = enabled.len() + hooks.len() - unloaded.len();
        checks.push(Check::ok(what, format!("runs {loaded} plugins and gateway hooks")));
    }
    hosts.stop();
    checks
}
