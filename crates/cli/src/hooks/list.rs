//! `petasos hooks list`.

use anyhow::Result;
use petasos_hooks::{HookEvent, HookSpec, MissingGuard, Target};
use serde_json::{Value, json};

use super::command::{Installed, as_json, in_words};
use crate::commands::Format;
use crate::output;
use crate::table::plain;

/// Shows the configured hooks.
pub(super) fn run(installed: &Installed, format: Format) -> Result<()> {
    let specs = &installed.specs;
    if format == Format::Json {
        let hooks: Vec<Value> = specs.hooks.iter().map(|hook| shown(installed, hook)).collect();
        let hooks: Vec<Value> = hooks.into_iter().chain(specs.missing.iter().map(shown_missing)).collect();
        return output::json(&json!({ "hooks": hooks, "warnings": specs.warnings }));
    }
    if specs.hooks.is_empty() && specs.missing.is_empty() {
        output::note("There are no hooks. They go under hooks: in config.yaml.");
        return Ok(());
    }
    let mut events: Vec<HookEvent> = specs.hooks.iter().map(|hook| hook.event).collect();
    events.sort_by_key(|event| event.name());
    events.dedup();
    let mut lines = Vec::new();
    for event in events {
        lines.push(event.name().to_owned());
        for hook in specs.hooks.iter().filter(|hook| hook.event == event) {
            lines.extend(described(installed, hook));
        }
    }
    lines.extend(specs.missing.iter().map(|guard| plain(&format!("NOT AVAILABLE: {}", guard.problem()))));
    output::line(&lines.join("\n"))
}

fn described(installed: &Installed, hook: &HookSpec) -> Vec<String> {
    let consent = installed.consent(hook);
    let mut facts = vec![format!("timeout={}s", hook.timeout.as_secs())];
    facts.extend(match &hook.target {
        Target::Command(_) => None,
        Target::Persistent(_) => Some("persistent".to_owned()),
        Target::Url { secret: Some(_), .. } => Some("signed".to_owned()),
        Target::Url { secret: None, .. } => Some("UNSIGNED".to_owned()),
    });
    for (set, name) in [
        (hook.fail_closed, "fail_closed"),
        (hook.exit_code_2_blocks, "exit_code_2_blocks"),
        (hook.modify, "modify"),
        (hook.runs_beside, "async"),
    ] {
        facts.extend(set.then(|| name.to_owned()));
    }
    facts.extend(hook.target.command().map(|_| match (&consent, installed.agrees_to_all) {
        (Some(_), _) => "allowed".to_owned(),
        (None, Some(by)) => format!("allowed by {by}"),
        (None, None) => "not allowed".to_owned(),
    }));
    let mut lines = vec![format!("  - {} ({})", in_words(hook), facts.join(", "))];
    if let Some(consent) = consent {
        let drifted = installed.has_drifted(hook, &consent);
        let note = if drifted { "; the script was changed since" } else { "" };
        lines.push(format!("    allowed at {}{note}", consent.approved_at));
    }
    lines.extend(
        installed.missing(hook).map(|guard| plain(&format!("    NOT AVAILABLE: {}", guard.problem()))),
    );
    lines
}

/// A guard that the configuration has in a way that cannot be used.
fn shown_missing(guard: &MissingGuard) -> Value {
    json!({
        "event": HookEvent::PreToolCall.name(),
        "name": guard.name,
        "matcher": guard.matcher.as_ref().map(|matcher| matcher.as_str()),
        "failClosed": true,
        "available": false,
        "problem": guard.problem(),
    })
}

fn shown(installed: &Installed, hook: &HookSpec) -> Value {
    let consent = installed.consent(hook);
    let mut shown = as_json(hook);
    shown["failClosed"] = hook.fail_closed.into();
    shown["exitCode2Blocks"] = hook.exit_code_2_blocks.into();
    shown["modify"] = hook.modify.into();
    shown["async"] = hook.runs_beside.into();
    let missing = installed.missing(hook);
    shown["available"] = missing.is_none().into();
    shown["problem"] = missing.map(|guard| guard.problem()).into();
    match &hook.target {
        Target::Url { secret, .. } => shown["signed"] = secret.is_some().into(),
        Target::Command(_) | Target::Persistent(_) => {
            shown["allowed"] = (consent.is_some() || installed.agrees_to_all.is_some()).into();
            shown["allowedBy"] = installed.agrees_to_all.filter(|_| consent.is_none()).into();
            shown["approvedAt"] = consent.as_ref().map(|consent| consent.approved_at.clone()).into();
            let drifted = consent.is_some_and(|consent| installed.has_drifted(hook, &consent));
            shown["changedSinceApproval"] = drifted.into();
        }
    }
    shown
}
