//! Hooks of the configuration: who may run, and the commands that look after them.

mod command;
mod doctor;
mod list;
mod test;

use std::sync::Arc;

use anyhow::{Context, Result};
use nix::unistd::{getpgrp, tcgetpgrp};
use petasos_hooks::{
    Admission, Allowlist, ConfiguredHook, ConfiguredHooks, HookSpec, MissingGuard, Place, Reach, Source,
    Specs, admitted,
};
use petasos_sandbox::{Backend, Sandbox, Settings};
use serde_json::Value;

pub(crate) use self::command::run;
pub(crate) use self::doctor::checks;
use crate::config::Config;
use crate::env::{ACCEPT_HOOKS, Environment, HERMES_ACCEPT_HOOKS};
use crate::home::Home;
use crate::instance::supervisor;
use crate::output;

/// Why a command does not run that nobody has agreed to.
const NO_CONSENT: &str = "nobody has agreed to it yet, so it does not run";

/// What the configuration says about hooks.
#[derive(Debug, Clone, Default)]
pub(crate) struct HookSettings {
    /// The block `hooks`, as it is written.
    pub(crate) block: Value,
    /// Whether every command may run.
    pub(crate) auto_accept: bool,
}

/// Whether a person may be asked for their consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// If there is a terminal. If there is none, a hook that nobody agreed to is left out with a warning.
    Allowed,
    /// No: a hook that nobody agreed to is left out, and the next command that runs turns says so.
    Never,
}

/// All hooks of the configuration that may run.
pub(crate) fn source(
    config: &Config,
    home: &Home,
    environment: &Environment,
    asking: Asking,
) -> Result<Option<Arc<dyn Source>>> {
    let place = place(home, environment)?;
    let specs = Specs::read(&config.hooks.block, &place.env);
    for warning in &specs.warnings {
        tracing::warn!("{warning}");
    }
    let accept = agrees_to_all(config, environment).is_some();
    let allowlist = Allowlist::new(home.hook_allowlist());
    let Admission { admitted, refused } =
        admitted(specs.hooks, &allowlist, &place, accept, |hook| match asking {
            Asking::Allowed => ask(hook),
            Asking::Never => Some(false),
        });
    let mut missing = specs.missing;
    let refused = refused.iter().filter(|hook| hook.fail_closed);
    missing.extend(refused.map(|hook| MissingGuard::new(hook, NO_CONSENT.to_owned())));
    let reach = Arc::new(reach(config, place));
    let (hooks, unusable) = ready(admitted, &reach);
    missing.extend(unusable);
    if hooks.is_empty() && missing.is_empty() {
        return Ok(None);
    }
    // Scripts write their logs there, and do not expect to have to make the directory.
    if let Err(error) = home.create_logs() {
        tracing::debug!(%error, "hooks have no directory for logs");
    }
    let source = ConfiguredHooks::new(hooks, missing);
    for problem in source.problems() {
        tracing::warn!("{problem}");
    }
    Ok(Some(Arc::new(source)))
}

/// What agrees to every command, if something does.
fn agrees_to_all(config: &Config, environment: &Environment) -> Option<&'static str> {
    if config.hooks.auto_accept {
        Some("hooks_auto_accept")
    } else {
        let variable = [ACCEPT_HOOKS, HERMES_ACCEPT_HOOKS].into_iter().find(|name| environment.is_on(name));
        variable.or_else(|| environment.accepts_hooks().then_some("--accept-hooks"))
    }
}

/// Makes hooks ready. One that cannot be is left out, and is a missing guard if it was to be one.
fn ready(hooks: Vec<HookSpec>, reach: &Arc<Reach>) -> (Vec<ConfiguredHook>, Vec<MissingGuard>) {
    let (mut usable, mut missing) = (Vec::new(), Vec::new());
    for hook in hooks {
        match ConfiguredHook::new(hook.clone(), Arc::clone(reach)) {
            Ok(ready) => usable.push(ready),
            Err(why) => {
                tracing::warn!("a hook is left out: {why}");
                missing.extend(hook.fail_closed.then(|| MissingGuard::new(&hook, why)));
            }
        }
    }
    (usable, missing)
}

/// Where hooks run. They have our environment, without the key to the server.
fn place(home: &Home, environment: &Environment) -> Result<Place> {
    let mut env = environment.for_user_code();
    // Hooks that were written for this contract elsewhere look for their home under the other name.
    env.entry("HERMES_HOME".to_owned()).or_insert_with(|| home.path().display().to_string());
    env.insert(crate::env::HOME.to_owned(), home.path().display().to_string());
    if let Some(user_home) = environment.user_home() {
        env.entry("HOME".to_owned()).or_insert_with(|| user_home.display().to_string());
    }
    let scripts = std::env::current_dir().context("find the working directory")?;
    Ok(Place { env, directory: home.path().to_owned(), scripts })
}

fn reach(config: &Config, place: Place) -> Reach {
    let settings = Settings { backend: Backend::Unconfined, ..Settings::default() };
    // The addresses of hooks are the operator's, and judged all the same.
    let mut net = config.net.clone();
    net.proxies.callers = true;
    Reach {
        place,
        sandbox: Sandbox::new(settings, supervisor()),
        client: petasos_net::Client::guarded(&net, config.guard.clone()),
    }
}

/// Whether somebody else has the terminal, as with `petasos serve &`: whoever reads there then is stopped.
fn is_in_background() -> bool {
    tcgetpgrp(std::io::stdin()).is_ok_and(|foreground| foreground != getpgrp())
}

/// Asks the person at the terminal, if there is one.
fn ask(hook: &HookSpec) -> Option<bool> {
    if !output::stdin_is_terminal() || !output::stderr_is_terminal() || is_in_background() {
        return None;
    }
    // What was typed before was no answer.
    crate::terminal::forget_typed();
    output::note_part(&format!(
        "A hook wants to run at {}:\n  {}\nIt runs with all of your rights. May it, from now on? [y/N] ",
        hook.event,
        crate::table::plain(hook.target.as_str()),
    ));
    let mut answer = String::new();
    // Nothing typed is a no, and so is a closed terminal.
    let read = std::io::stdin().read_line(&mut answer);
    if !answer.ends_with('\n') {
        output::note("");
    }
    Some(read.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}
