//! `petasos hooks doctor`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use petasos_hooks::{ConfiguredHook, HookSpec, MissingGuard, Place, Target, Unavailable, synthetic};
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
    let mut problems = installed.specs.warnings.len() + installed.specs.missing.len();
    let mut shown: Vec<Value> = Vec::new();
    for guard in &installed.specs.missing {
        let check = unavailable(guard);
        if format == Format::Text {
            output::line(&check.line())?;
        }
        shown.push(json!({ "name": guard.name, "checks": [check] }));
    }
    for hook in &installed.specs.hooks {
        let mut checks = standing(installed, hook);
        // Doctor must not run a hook that nobody has consented to.
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
    checks.extend(specs.missing.iter().map(unavailable));
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
    checks.extend(installed.missing(hook).iter().map(unavailable));
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

/// A guard that is not available.
fn unavailable(guard: &MissingGuard) -> Check {
    Check::fail("guard", guard.problem(), "mend it, or agree to it; until then those calls are blocked")
}

/// Whether the command is there and can be run. A script after its interpreter need only be readable.
fn executable(place: &Place, command: &str) -> Check {
    let what = "command";
    let Err(why) = place.availability(command) else { return Check::ok(what, "is there and can be run") };
    let cure = match &why {
        Unavailable::Malformed(_) => "mend it in config.yaml".to_owned(),
        Unavailable::NotFound(_) | Unavailable::NoScript(_) => "install it, or mend the path".to_owned(),
        Unavailable::NoInterpreter { interpreter, .. } => {
            format!("install {interpreter}, or mend its first line")
        }
        Unavailable::NotExecutable(program) => format!("run: chmod +x {program}"),
        Unavailable::Unreadable(script) => format!("run: chmod +r {script}"),
    };
    Check::fail(what, why.to_string(), cure)
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
