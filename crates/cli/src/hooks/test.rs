//! `petasos hooks test`: the same way to a hook as in a turn, with a made-up firing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use petasos_hooks::{Answer, Callback, ConfiguredHook, Exchange, Firing, HookEvent, HookFailure, synthetic};
use serde_json::{Map, Value, json};

use super::command::{Installed, as_json, in_words};
use crate::commands::Format;
use crate::config::Config;
use crate::output;
use crate::table::plain;

/// One hook that was tried out.
pub(super) struct Trial {
    pub(super) exchange: Exchange,
    pub(super) answer: Result<Answer, String>,
    pub(super) took: Duration,
}

/// Fires a hook once, within its time.
pub(super) async fn try_out(hook: &ConfiguredHook, firing: &Firing) -> Trial {
    let started = Instant::now();
    let limit = hook.spec().timeout;
    let exchanged = tokio::time::timeout(limit, hook.exchange(firing)).await;
    let took = started.elapsed();
    let too_late = || format!("it had not answered after {} s and was stopped", limit.as_secs());
    let exchanged = exchanged.unwrap_or_else(|_| Err(HookFailure::Failed(too_late())));
    match exchanged {
        Ok(exchange) => Trial { answer: hook.judge(firing, &exchange), exchange, took },
        Err(why) => Trial { exchange: Exchange::default(), answer: Err(why.to_string()), took },
    }
}

/// Fires every hook that is about the event.
pub(super) async fn run(
    config: &Config,
    installed: Installed,
    event: HookEvent,
    tool: Option<&str>,
    given: Map<String, Value>,
    format: Format,
) -> Result<()> {
    let firing = synthetic::firing(event, tool, given);
    let reach = Arc::new(super::reach(config, installed.place));
    let hooks = installed.specs.hooks.into_iter().filter(|hook| hook.event == event).collect();
    let (hooks, _) = super::ready(hooks, &reach);
    let mut shown = Vec::new();
    for hook in hooks.iter().filter(|hook| hook.concerns(&firing)) {
        let trial = try_out(hook, &firing).await;
        match format {
            Format::Json => shown.push(as_result(hook, &trial)),
            Format::Text => output::line(&in_text(hook, &trial))?,
        }
        if format == Format::Text {
            shown.push(Value::Null);
        }
    }
    match format {
        Format::Json => output::json(&json!({ "event": event.name(), "results": shown })),
        Format::Text if shown.is_empty() => {
            let about = firing.tool().map(|tool| format!(" and {tool}")).unwrap_or_default();
            output::note(&format!("There is no hook for {event}{about}."));
            Ok(())
        }
        Format::Text => Ok(()),
    }
}

fn as_result(hook: &ConfiguredHook, trial: &Trial) -> Value {
    let mut shown = as_json(hook.spec());
    shown["exitCode"] = trial.exchange.exit_code.into();
    shown["signal"] = trial.exchange.signal.into();
    shown["elapsedMs"] = milliseconds(trial.took).into();
    shown["stdout"] = trial.exchange.stdout.as_str().into();
    shown["stderr"] = trial.exchange.stderr.as_str().into();
    shown["parsed"] = trial.answer.as_ref().map(parsed).unwrap_or_default();
    shown["error"] = trial.answer.as_ref().err().cloned().into();
    shown
}

/// What an answer means, in the shape that callbacks answer in.
fn parsed(answer: &Answer) -> Value {
    match &answer.input {
        Some(input) => json!({ "action": "modify", "args": input }),
        None => answer.value.clone(),
    }
}

fn in_text(hook: &ConfiguredHook, trial: &Trial) -> String {
    let mut lines = vec![in_words(hook.spec())];
    let exchange = &trial.exchange;
    let ended = match (exchange.exit_code, exchange.signal) {
        (Some(code), _) => format!("exit code {code}, "),
        (None, Some(signal)) => format!("ended by signal {signal}, "),
        (None, None) => String::new(),
    };
    lines.push(format!("  {ended}{} ms", milliseconds(trial.took)));
    for (name, text) in [("stdout", &exchange.stdout), ("stderr", &exchange.stderr)] {
        if !text.trim().is_empty() {
            lines.push(format!("  {name}: {}", plain(text.trim())));
        }
    }
    lines.push(match &trial.answer {
        Err(why) => format!("  problem: {}", plain(why)),
        Ok(answer) if parsed(answer).is_null() => "  answer: nothing".to_owned(),
        Ok(answer) => format!("  answer: {}", plain(&parsed(answer).to_string())),
    });
    lines.join("\n")
}

/// Time in milliseconds, with a digit after the point.
pub(super) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}
