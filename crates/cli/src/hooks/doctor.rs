//! `petasos hooks doctor`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use petasos_hooks::{ConfiguredHook, HookSpec, Place, Target, synthetic};
use serde_json::{Map, Value, json};

use super::command::{Installed, as_json, in_words};
use super::test::{milliseconds, try_out};
use crate::commands::Format;
use crate::config::Config;
use crate::doctor::{Check, Status};
use crate::env::Environment;
use crate::home::Home;
use crate::output;

/// A hook that takes longer is felt in every turn.
const SLOW: Duration = Duration::from_secs(1);

/// Checks every configured hook. Returns the exit code: 1 if something is wrong.
pub(super) async fn run(config: &Config, installed: &Installed, format: Format) -> Result<u8> {
    let reach = Arc::new(super::reach(config, installed.place.clone()));
    let mut problems = installed.specs.warnings.len();
    let mut shown: Vec<Value> = Vec::new();
    for hook in &installed.specs.hooks {
        let mut checks = standing(installed, hook);
        // Nobody's first run is ours to decide.
        let may_run = hook.target.command().is_none()
            || installed.agrees_to_all.is_some()
            || installed.consent(hook).is_some();
        if may_run && checks.iter().all(|check| check.status != Status::Fail) {
            match ConfiguredHook::new(hook.clone(), Arc::clone(&reach)) {
                Ok(ready) => checks.extend(smoke_test(&ready).await),
                Err(why) => checks.push(Check::fail("hook", why, "mend it in config.yaml")),
            }
        }
        problems += checks.iter().filter(|check| check.status != Status::Ok).count();
        if format == Format::Text {
            let lines: Vec<String> = checks.iter().map(|check| format!("  {}", check.line())).collect();
            output::line(&format!("{} {}\n{}", hook.event, in_words(hook), lines.join("\n")))?;
        }
        let mut entry = as_json(hook);
        entry["checks"] = serde_json::to_value(&checks)?;
        shown.push(entry);
    }
    match format {
        Format::Json => {
            let warnings = &installed.specs.warnings;
            output::json(&json!({ "ok": problems == 0, "hooks": shown, "warnings": warnings }))?;
        }
        Format::Text if shown.is_empty() && problems == 0 => output::note("There are no hooks."),
        Format::Text if problems == 0 => output::line("All is well.")?,
        Format::Text => output::line(&format!("Problems: {problems}"))?,
    }
    Ok(u8::from(problems > 0))
}

/// What `petasos doctor` says about hooks: what can be said without running them.
pub(crate) fn checks(config: &Config, home: &Home, environment: &Environment) -> Vec<Check> {
    let what = "hooks";
    let installed = match Installed::read(config, home, environment) {
        Ok(installed) => installed,
        Err(error) => return vec![Check::failed(what, &error)],
    };
    let Installed { specs, .. } = &installed;
    let warnings = specs.warnings.iter();
    let mut checks: Vec<Check> =
        warnings.map(|warning| Check::warn(what, warning, "mend it in config.yaml")).collect();
    for hook in &specs.hooks {
        let troubles = standing(&installed, hook).into_iter().filter(|check| check.status != Status::Ok);
        checks.extend(troubles.map(|check| check.about(&format!("hook {} {}", hook.event, in_words(hook)))));
    }
    if checks.is_empty() && !specs.hooks.is_empty() {
        let count = specs.hooks.len();
        checks.push(Check::ok(what, format!("{count} may run; petasos hooks doctor tries them out")));
    }
    checks
}

/// What can be said about a hook without running it.
fn standing(installed: &Installed, hook: &HookSpec) -> Vec<Check> {
    let Some(command) = hook.target.command() else { return Vec::new() };
    let mut checks = vec![executable(&installed.place, command)];
    match (installed.consent(hook), installed.agrees_to_all) {
        (None, Some(by)) => checks.push(Check::ok("consent", format!("given to all by {by}"))),
        (None, None) => checks.push(Check::warn(
            "consent",
            "nobody has agreed to it yet, so it does not run",
            "start petasos on a terminal and say yes, or once with --accept-hooks",
        )),
        (Some(consent), _) => {
            checks.push(Check::ok("consent", format!("given at {}", consent.approved_at)));
            if installed.has_drifted(hook, &consent) {
                checks.push(Check::warn(
                    "script",
                    "was changed after somebody agreed to it",
                    "look at it; to agree anew, petasos hooks revoke and start again",
                ));
            }
        }
    }
    checks
}

/// Whether the command is there and can be run. A script after its interpreter need only be readable.
fn executable(place: &Place, command: &str) -> Check {
    let what = "command";
    let arguments = match place.split(command) {
        Ok(arguments) => arguments,
        Err(why) => return Check::fail(what, why, "mend it in config.yaml"),
    };
    let program = arguments.first().map(String::as_str).unwrap_or_default();
    let path = std::env::split_paths(place.env.get("PATH").map(String::as_str).unwrap_or_default());
    let found = if program.contains('/') {
        Some(program.into())
    } else {
        path.map(|directory| directory.join(program)).find(|path| path.is_file())
    };
    match found.filter(|path| path.is_file()) {
        None => Check::fail(what, format!("{program} was not found"), "install it, or mend the path"),
        Some(path) if !is_executable(&path) => {
            Check::fail(what, format!("{program} is not executable"), format!("run: chmod +x {program}"))
        }
        Some(_) => match place.script(&arguments).filter(|script| Path::new(program) != script) {
            Some(script) if script.is_file() && std::fs::File::open(&script).is_err() => {
                let shown = script.display();
                Check::fail(what, format!("{shown} cannot be read"), format!("run: chmod +r {shown}"))
            }
            _ => Check::ok(what, "is there and can be run"),
        },
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

/// What a hook has to do that does not answer as it should.
fn cure(target: &Target) -> &'static str {
    match target {
        Target::Command(_) => "it must print nothing, or one JSON object, and return 0",
        Target::Persistent(_) => "it must print one JSON object on one line for each line that it reads",
        Target::Url { .. } => "it must answer with a status of 2xx, and with nothing or one JSON object",
    }
}

async fn smoke_test(hook: &ConfiguredHook) -> Vec<Check> {
    let firing = synthetic::firing(hook.spec().event, None, Map::new());
    let trial = try_out(hook, &firing).await;
    let time = format!("{} ms", milliseconds(trial.took));
    let answer = match &trial.answer {
        Err(why) => Check::fail("answer", why, cure(&hook.spec().target)),
        Ok(answer) => match &answer.complaint {
            Some(complaint) => Check::warn("answer", complaint, "it should return 0"),
            None => Check::ok("answer", "can be read"),
        },
    };
    let time = if trial.took > SLOW {
        Check::warn("time", time, "make it faster, or persistent, or async if nothing depends on it")
    } else {
        Check::ok("time", time)
    };
    vec![answer, time]
}
