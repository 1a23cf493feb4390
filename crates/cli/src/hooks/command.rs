//! `petasos hooks`.

use std::path::Path;

use anyhow::{Context, Result, bail};
use petasos_hooks::{Allowlist, Consent, HookEvent, HookSpec, MissingGuard, Place, Specs, Target};
use serde_json::{Map, Value, json};

use super::{doctor, list, test};
use crate::args::{HooksArgs, HooksCommand};
use crate::commands::Format;
use crate::config::Config;
use crate::env::Environment;
use crate::home::Home;
use crate::output;

/// An installation's hooks, as they are configured.
pub(super) struct Installed {
    pub(super) specs: Specs,
    pub(super) place: Place,
    pub(super) allowlist: Allowlist,
    /// What agrees to every command, if something does.
    pub(super) agrees_to_all: Option<&'static str>,
}

impl Installed {
    /// What a configuration says.
    pub(super) fn read(config: &Config, home: &Home, environment: &Environment) -> Result<Installed> {
        let place = super::place(home, environment)?;
        let specs = Specs::read(&config.hooks.block, &place.env);
        let allowlist = Allowlist::new(home.hook_allowlist());
        Ok(Installed { specs, place, allowlist, agrees_to_all: super::agrees_to_all(config, environment) })
    }

    /// The consent to a hook, if it has one.
    pub(super) fn consent(&self, hook: &HookSpec) -> Option<Consent> {
        self.allowlist.find(hook.event, hook.target.command()?)
    }

    /// Why a guard is not available, if it is one and is not.
    pub(super) fn missing(&self, hook: &HookSpec) -> Option<MissingGuard> {
        let command = hook.target.command().filter(|_| hook.fail_closed)?;
        let may_run = self.agrees_to_all.is_some() || self.consent(hook).is_some();
        let why = match self.place.availability(command) {
            Err(why) => why.to_string(),
            Ok(()) if may_run => return None,
            Ok(()) => super::NO_CONSENT.to_owned(),
        };
        Some(MissingGuard::new(hook, why))
    }

    /// Whether its script was changed after somebody agreed to it.
    pub(super) fn has_drifted(&self, hook: &HookSpec, consent: &Consent) -> bool {
        let arguments = hook.target.command().and_then(|command| self.place.split(command).ok());
        let script = arguments.and_then(|arguments| self.place.script(&arguments));
        script.is_some_and(|script| consent.has_drifted(&script))
    }
}

/// Does what the command says, and returns the exit code.
pub(crate) async fn run(args: HooksArgs, environment: &Environment) -> Result<u8> {
    let home = Home::find(args.home.data_dir.as_deref(), environment)?;
    let format = Format::from_flag(args.format.json);
    if let HooksCommand::Revoke { command } = &args.command {
        revoke(&Allowlist::new(home.hook_allowlist()), command, format)?;
        return Ok(0);
    }
    let config = Config::read(args.home.config.as_deref(), &home, environment)?;
    let installed = Installed::read(&config, &home, environment)?;
    if format == Format::Text {
        for warning in &installed.specs.warnings {
            output::note(&format!("warning: {warning}"));
        }
    }
    match args.command {
        HooksCommand::List => list::run(&installed, format).map(|()| 0),
        HooksCommand::Doctor => doctor::run(&config, &installed, format).await,
        HooksCommand::Test { event, for_tool, payload_file } => {
            let Some(event) = HookEvent::named(&event) else { bail!(unknown(&event)) };
            let given = payload_file.as_deref().map(read_payload).transpose()?.unwrap_or_default();
            test::run(&config, installed, event, for_tool.as_deref(), given, format).await.map(|()| 0)
        }
        HooksCommand::Revoke { .. } => Ok(0),
    }
}

fn revoke(allowlist: &Allowlist, command: &str, format: Format) -> Result<()> {
    let revoked = allowlist.revoke(command).context("change the allowlist")?;
    if format == Format::Json && revoked > 0 {
        return output::json(&json!({ "command": command, "revoked": revoked }));
    }
    match revoked {
        0 => bail!("nobody had agreed to {command}; petasos hooks list shows all commands"),
        1 => output::line(&format!("Took back 1 consent to {command}. It counts from the next start.")),
        _ => output::line(&format!(
            "Took back {revoked} consents to {command}. It counts from the next start."
        )),
    }
}

fn unknown(event: &str) -> String {
    let hint = HookEvent::closest(event).map(|event| format!(" Did you mean {event}?")).unwrap_or_default();
    let names: Vec<&str> = HookEvent::ALL.iter().map(|event| event.name()).collect();
    format!("there is no event {event}.{hint} There are: {}", names.join(", "))
}

fn read_payload(path: &Path) -> Result<Map<String, Value>> {
    let text = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
    let given = serde_json::from_slice(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    match given {
        Value::Object(given) => Ok(petasos_hooks::arguments_of(given)),
        _ => bail!("{} must hold a JSON object", path.display()),
    }
}

/// A hook as JSON shows it.
pub(super) fn as_json(hook: &HookSpec) -> Value {
    let (kind, name) = match &hook.target {
        Target::Command(_) => ("command", "command"),
        Target::Persistent(_) => ("persistent", "command"),
        Target::Url { .. } => ("url", "url"),
    };
    let mut shown = json!({ "event": hook.event.name(), "kind": kind });
    shown[name] = hook.target.as_str().into();
    shown["matcher"] = hook.matcher.as_ref().map(|matcher| matcher.as_str()).into();
    shown["timeout"] = hook.timeout.as_secs().into();
    shown
}

/// A hook in one line: what it is, and what it is about.
pub(super) fn in_words(hook: &HookSpec) -> String {
    let matcher = hook.matcher.as_ref().map(|matcher| format!(" [matcher='{}']", matcher.as_str()));
    crate::table::plain(&format!("{}{}", hook.target.as_str(), matcher.unwrap_or_default()))
}
