//! Reads the `hooks` of the configuration. Nothing in it is fatal: what cannot be used is left out, with a warning.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::guard::MissingGuard;
use super::http::Http;
use super::matcher::Matcher;
use crate::event::HookEvent;

const DEFAULT_SECONDS: u64 = 60;
const MAX_SECONDS: u64 = 300;
/// The settings of a hook.
const KEYS: [&str; 13] = [
    "matcher",
    "command",
    "url",
    "persistent",
    "secret",
    "secret_env",
    "timeout",
    "fail_closed",
    "failClosed",
    "exit_code_2_blocks",
    "modify",
    "async",
    "cwd",
];
/// Keys of the block that are no events.
const RESERVED: [&str; 2] = ["output_spill", "outbound"];

/// One hook of the configuration.
#[derive(Debug, Clone)]
pub struct HookSpec {
    /// When it fires.
    pub event: HookEvent,
    /// The tools that it is about; all if none.
    pub matcher: Option<Matcher>,
    /// Who is asked.
    pub target: Target,
    /// How long one firing may take.
    pub timeout: Duration,
    /// Whether a tool call is blocked when the hook cannot judge it.
    pub fail_closed: bool,
    /// Whether the exit code 2 blocks a tool call.
    pub exit_code_2_blocks: bool,
    /// Whether it may change the arguments of a tool call.
    pub modify: bool,
    /// Whether nobody waits for it.
    pub runs_beside: bool,
    /// Where a command runs.
    pub directory: HookDirectory,
}

/// Where a command hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HookDirectory {
    /// In the workspace of the session that the firing is about.
    #[default]
    Workspace,
    /// In the home.
    Home,
}

/// Who is asked.
#[derive(Debug, Clone)]
pub enum Target {
    /// A command, started at each firing.
    Command(String),
    /// A command that runs on and gets a line at each firing.
    Persistent(String),
    /// An address that gets a request at each firing.
    Url {
        /// The address.
        url: String,
        /// What signs the requests.
        secret: Option<SecretString>,
    },
}

/// A command as it can be shown to everybody: without the values of options and variables that hold a secret.
fn command_name(command: &str) -> String {
    const SECRETS: [&str; 6] = ["key", "token", "secret", "passw", "auth", "cred"];
    let holds_secret = |name: &str| {
        let name = name.to_lowercase();
        SECRETS.iter().any(|secret| name.contains(secret))
    };
    let mut shown = command.to_owned();
    let mut words = command.split_whitespace().skip(1).peekable();
    while let Some(word) = words.next() {
        let value = match word.split_once('=') {
            Some((name, value)) if holds_secret(name) => Some(value),
            None if word.starts_with('-') && holds_secret(word) => words.peek().copied(),
            _ => None,
        };
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            shown = shown.replace(value, "***");
        }
    }
    shown
}

/// What of an address can be shown to everybody: user, password and query may be secrets.
fn address_name(url: &str) -> String {
    let address = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    format!("{scheme}://{}{path}", host.rsplit('@').next().unwrap_or(host))
}

impl Target {
    /// A name that can be shown to everybody.
    pub fn name(&self) -> String {
        match self {
            Target::Command(command) | Target::Persistent(command) => command_name(command),
            Target::Url { url, .. } => address_name(url),
        }
    }

    /// The command or address as it was written.
    pub fn as_str(&self) -> &str {
        match self {
            Target::Command(text) | Target::Persistent(text) | Target::Url { url: text, .. } => text,
        }
    }

    /// The command, if it is one. Commands need somebody's consent.
    pub fn command(&self) -> Option<&str> {
        match self {
            Target::Command(command) | Target::Persistent(command) => Some(command),
            Target::Url { .. } => None,
        }
    }
}

/// The hooks of a configuration, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Specs {
    /// The hooks that can be used, in the order of the file.
    pub hooks: Vec<HookSpec>,
    /// Guards that cannot be used: they block what they were to judge.
    pub missing: Vec<MissingGuard>,
    /// What was left out or changed, and why.
    pub warnings: Vec<String>,
}

impl Specs {
    /// Reads the block. `env` has the variables that hold secrets.
    pub fn read(block: &Value, env: &BTreeMap<String, String>) -> Self {
        let mut specs = Specs::default();
        match block {
            Value::Null => {}
            Value::Object(events) => {
                for (name, entries) in events {
                    specs.event(name, entries, env);
                }
            }
            _ => specs.leave_out(None, "hooks", block, "must be a mapping of events to lists of hooks"),
        }
        specs
    }

    fn event(&mut self, name: &str, entries: &Value, env: &BTreeMap<String, String>) {
        if RESERVED.contains(&name) {
            return self.warn(format!("hooks.{name} is not supported here; it is left out"));
        }
        let Some(event) = HookEvent::named(name) else {
            let hint = HookEvent::closest(name).map(|event| format!(" Did you mean {event}?"));
            let hint = hint.unwrap_or_default();
            self.warn(format!("hooks: there is no event {name}; its hooks are left out.{hint}"));
            return self.miss(&format!("hooks.{name}"), entries, &format!("there is no event {name}.{hint}"));
        };
        match entries {
            Value::Null => {}
            Value::Array(entries) => {
                for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.is_null()) {
                    let place = format!("hooks.{event}[{index}]");
                    match entry {
                        Value::Object(fields) => {
                            if let Err(why) = self.entry(event, &place, fields, env) {
                                self.leave_out(Some(event), &place, entry, &why);
                            }
                        }
                        _ => self.leave_out(Some(event), &place, entry, "must be a mapping"),
                    }
                }
            }
            _ => self.leave_out(Some(event), &format!("hooks.{event}"), entries, "must be a list of hooks"),
        }
    }

    /// Warns of something that is left out, and keeps the guards in it as missing. Hooks of events that block nothing
    /// are no guards; without an event, nobody can tell.
    fn leave_out(&mut self, event: Option<HookEvent>, place: &str, value: &Value, why: &str) {
        self.warn(format!("{place} {why}; it is left out"));
        if event.is_none_or(|event| event == HookEvent::PreToolCall) {
            self.miss(place, value, &format!("{place} {why}"));
        }
    }

    /// Finds the guards in what is left out, however deep they are in it.
    fn miss(&mut self, place: &str, value: &Value, why: &str) {
        match value {
            Value::Object(entry) if self.fails_closed(place, entry) => {
                let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::trim);
                let text = |name: &str| text(name).filter(|text| !text.is_empty());
                let name = text("command").map(command_name).or_else(|| text("url").map(address_name));
                let name = name.unwrap_or_else(|| place.to_owned());
                let matcher = text("matcher").map(Matcher::new).filter(|matcher| !matcher.is_literal());
                self.missing.push(MissingGuard { name, matcher, why: why.to_owned() });
            }
            Value::Object(entries) => {
                for (name, value) in entries {
                    self.miss(&format!("{place}.{name}"), value, why);
                }
            }
            Value::Array(entries) => {
                for (index, value) in entries.iter().enumerate() {
                    self.miss(&format!("{place}[{index}]"), value, why);
                }
            }
            _ => {}
        }
    }

    fn entry(
        &mut self,
        event: HookEvent,
        place: &str,
        entry: &Map<String, Value>,
        env: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        self.warn_of_slips(place, entry);
        let target = self.target(place, entry, env)?;
        let flag = |specs: &mut Self, name: &str| specs.flag(place, entry, name);
        let mut spec = HookSpec {
            event,
            matcher: self.matcher(event, place, entry),
            target,
            timeout: self.timeout(place, entry),
            fail_closed: self.fails_closed(place, entry),
            exit_code_2_blocks: flag(self, "exit_code_2_blocks"),
            modify: flag(self, "modify"),
            runs_beside: flag(self, "async"),
            directory: self.directory(place, entry),
        };
        if event != HookEvent::PreToolCall {
            for (name, flag) in [
                ("fail_closed", &mut spec.fail_closed),
                ("exit_code_2_blocks", &mut spec.exit_code_2_blocks),
                ("modify", &mut spec.modify),
            ] {
                if std::mem::take(flag) {
                    self.warn(format!("{place}: {name} works for pre_tool_call only; it is left out"));
                }
            }
        }
        if spec.runs_beside && !event.is_observer() {
            self.warn(format!("{place}: {event} is waited for, so async is left out"));
            spec.runs_beside = false;
        }
        let same = |other: &HookSpec| {
            let pattern = |spec: &HookSpec| spec.matcher.as_ref().map(|matcher| matcher.as_str().to_owned());
            other.event == event
                && other.target.as_str() == spec.target.as_str()
                && pattern(other) == pattern(&spec)
        };
        if let Some(index) = self.hooks.iter().position(same) {
            // The same hook twice is one hook, and a guard if either is.
            let known = self.hooks.get_mut(index);
            known.into_iter().for_each(|known| known.fail_closed |= spec.fail_closed);
            return Ok(());
        }
        match &spec.matcher {
            // Nobody can tell which calls it should judge.
            Some(matcher) if spec.fail_closed && matcher.is_literal() => {
                let why = format!("its matcher {} is no regular expression", matcher.as_str());
                self.missing.push(MissingGuard::new(&spec, why));
            }
            _ => self.hooks.push(spec),
        }
        Ok(())
    }

    fn target(
        &mut self,
        place: &str,
        entry: &Map<String, Value>,
        env: &BTreeMap<String, String>,
    ) -> Result<Target, String> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::trim);
        let text = |name: &str| text(name).filter(|text| !text.is_empty()).map(str::to_owned);
        match (text("command"), text("url")) {
            (Some(command), None) if self.flag(place, entry, "persistent") => Ok(Target::Persistent(command)),
            (Some(command), None) => Ok(Target::Command(command)),
            (None, Some(url)) => {
                let variable = text("secret_env");
                let secret = text("secret").or_else(|| env.get(variable.as_ref()?).cloned());
                match (&variable, secret) {
                    (Some(variable), None) => {
                        Err(format!("has no secret to sign its requests with: {variable} is not set"))
                    }
                    (_, secret) => {
                        let secret = secret.map(SecretString::from);
                        Http::new(url.clone(), secret.as_ref())
                            .map_err(|why| format!("cannot be used: {why}"))?;
                        Ok(Target::Url { url, secret })
                    }
                }
            }
            (Some(_), Some(_)) => Err("has both a command and a url".to_owned()),
            (None, None) => Err("has no command".to_owned()),
        }
    }

    fn matcher(&mut self, event: HookEvent, place: &str, entry: &Map<String, Value>) -> Option<Matcher> {
        let text = match entry.get("matcher")? {
            Value::Null => return None,
            Value::String(text) => text.trim(),
            _ => {
                self.warn(format!("{place}: matcher must be a text; it is left out"));
                return None;
            }
        };
        if text.is_empty() {
            return None;
        }
        if !matches!(event, HookEvent::PreToolCall | HookEvent::PostToolCall) {
            self.warn(format!(
                "{place}: a matcher works for pre_tool_call and post_tool_call only; it is left out"
            ));
            return None;
        }
        let matcher = Matcher::new(text);
        if matcher.is_literal() && event == HookEvent::PreToolCall && self.fails_closed(place, entry) {
            self.warn(format!(
                "{place}: the matcher {text} is no regular expression, so that the hook blocks every call"
            ));
        } else if matcher.is_literal() {
            self.warn(format!(
                "{place}: the matcher {text} is no regular expression; it stands for itself, and only a tool of just \
                 this name matches"
            ));
        }
        Some(matcher)
    }

    fn directory(&mut self, place: &str, entry: &Map<String, Value>) -> HookDirectory {
        match entry.get("cwd") {
            None | Some(Value::Null) => HookDirectory::Workspace,
            Some(Value::String(text)) if text == "workspace" => HookDirectory::Workspace,
            Some(Value::String(text)) if text == "home" => HookDirectory::Home,
            Some(_) => {
                self.warn(format!("{place}: cwd must be home or workspace; workspace is taken"));
                HookDirectory::Workspace
            }
        }
    }

    fn timeout(&mut self, place: &str, entry: &Map<String, Value>) -> Duration {
        let value = match entry.get("timeout") {
            None | Some(Value::Null) => return Duration::from_secs(DEFAULT_SECONDS),
            Some(value) => value,
        };
        let seconds = match value {
            Value::String(text) => text.trim().parse().ok(),
            Value::Number(number) => number.as_f64().map(f64::trunc),
            _ => None,
        };
        match seconds {
            #[expect(clippy::cast_precision_loss, reason = "it is a small number")]
            Some(seconds) if seconds > MAX_SECONDS as f64 => {
                self.warn(format!("{place}: timeout is {value}; {MAX_SECONDS} s is the most and is taken"));
                Duration::from_secs(MAX_SECONDS)
            }
            Some(seconds) if seconds >= 1.0 => Duration::from_secs_f64(seconds),
            _ => {
                self.warn(format!(
                    "{place}: timeout must be at least 1 second; {DEFAULT_SECONDS} s is taken"
                ));
                Duration::from_secs(DEFAULT_SECONDS)
            }
        }
    }

    /// Whether a hook is a guard. A value that is neither true nor false is taken for true: a guard that nobody
    /// wanted is noticed, and one that is silently off is not.
    fn fails_closed(&mut self, place: &str, entry: &Map<String, Value>) -> bool {
        let value = entry.get("fail_closed").or_else(|| entry.get("failClosed"));
        match value {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(word)) if ["true", "yes", "on", "1"].contains(&word.trim()) => true,
            Some(Value::String(word)) if ["false", "no", "off", "0"].contains(&word.trim()) => false,
            Some(_) => {
                let warning = format!("{place}: fail_closed must be true or false; it is taken for true");
                if !self.warnings.contains(&warning) {
                    self.warn(warning);
                }
                true
            }
        }
    }

    /// Warns of keys that are most likely slips of the pen.
    fn warn_of_slips(&mut self, place: &str, entry: &Map<String, Value>) {
        for name in entry.keys().filter(|name| !KEYS.contains(&name.as_str())) {
            let likeness = |key: &str| strsim::normalized_levenshtein(name, key);
            let closest = KEYS.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
            if let Some(closest) = closest.filter(|closest| likeness(closest) >= 0.6) {
                self.warn(format!("{place}: {name} is no setting of a hook. Did you mean {closest}?"));
            }
        }
    }

    fn flag(&mut self, place: &str, entry: &Map<String, Value>, name: &str) -> bool {
        match entry.get(name) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.warn(format!("{place}: {name} must be true or false; it is left out"));
                false
            }
        }
    }

    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }
}
