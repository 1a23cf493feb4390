//! Reads the `hooks` of the configuration. Nothing in it is fatal: what cannot be used is left out, with a warning.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::matcher::Matcher;
use crate::event::HookEvent;

const DEFAULT_SECONDS: u64 = 60;
const MAX_SECONDS: u64 = 300;
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

impl Target {
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
            _ => specs.warn("hooks must be a mapping of events to lists of hooks; it is left out".to_owned()),
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
            return self.warn(format!("hooks: there is no event {name}; its hooks are left out.{hint}"));
        };
        match entries {
            Value::Null => {}
            Value::Array(entries) => {
                for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.is_null()) {
                    let place = format!("hooks.{event}[{index}]");
                    match entry {
                        Value::Object(entry) => self.entry(event, &place, entry, env),
                        _ => self.warn(format!("{place} must be a mapping; it is left out")),
                    }
                }
            }
            _ => self.warn(format!("hooks.{event} must be a list of hooks; it is left out")),
        }
    }

    fn entry(
        &mut self,
        event: HookEvent,
        place: &str,
        entry: &Map<String, Value>,
        env: &BTreeMap<String, String>,
    ) {
        let Some(target) = self.target(place, entry, env) else { return };
        let flag = |specs: &mut Self, name: &str| specs.flag(place, entry, name);
        let mut spec = HookSpec {
            event,
            matcher: self.matcher(event, place, entry),
            target,
            timeout: self.timeout(place, entry),
            fail_closed: if entry.contains_key("fail_closed") {
                flag(self, "fail_closed")
            } else {
                flag(self, "failClosed")
            },
            exit_code_2_blocks: flag(self, "exit_code_2_blocks"),
            modify: flag(self, "modify"),
            runs_beside: flag(self, "async"),
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
        if !self.hooks.iter().any(same) {
            self.hooks.push(spec);
        }
    }

    fn target(
        &mut self,
        place: &str,
        entry: &Map<String, Value>,
        env: &BTreeMap<String, String>,
    ) -> Option<Target> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::trim);
        let text = |name: &str| text(name).filter(|text| !text.is_empty()).map(str::to_owned);
        match (text("command"), text("url")) {
            (Some(command), None) if self.flag(place, entry, "persistent") => {
                Some(Target::Persistent(command))
            }
            (Some(command), None) => Some(Target::Command(command)),
            (None, Some(url)) => {
                let variable = text("secret_env");
                let secret = text("secret").or_else(|| env.get(variable.as_ref()?).cloned());
                if let (Some(variable), None) = (&variable, &secret) {
                    self.warn(format!(
                        "{place}: {variable} is not set, so nothing can sign the requests; it is left out"
                    ));
                    return None;
                }
                Some(Target::Url { url, secret: secret.map(SecretString::from) })
            }
            (Some(_), Some(_)) => {
                self.warn(format!("{place} has both a command and a url; it is left out"));
                None
            }
            (None, None) => {
                self.warn(format!("{place} has no command; it is left out"));
                None
            }
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
        if matcher.is_literal() {
            self.warn(format!(
                "{place}: the matcher {text} is no regular expression; it stands for itself, and only a tool of just \
                 this name matches"
            ));
        }
        Some(matcher)
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
