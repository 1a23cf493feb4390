//! One plugin or gateway hook, wherever it runs, and what it has registered.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde_json::{Map, Value};

use super::keeper::{Keeper, State};
use super::message::{Order, RegisteredTool, Registration};
use crate::event::HookEvent;

/// What a guest is made from.
#[derive(Debug, Clone)]
pub(super) enum Code {
    /// A plugin with its manifest.
    Plugin { manifest: Map<String, Value> },
    /// The handler of a gateway hook.
    Handler { name: String, path: PathBuf, events: Vec<String> },
}

/// One plugin or gateway hook.
pub(super) struct Guest {
    /// Names it among all guests.
    pub(super) key: Arc<str>,
    pub(super) code: Code,
    /// Whether it has a host of its own.
    is_apart: AtomicBool,
    keeper: RwLock<Arc<Keeper>>,
    /// What it registered when it was last loaded. While its host starts anew this is what is expected of it.
    registered: RwLock<Arc<Registered>>,
    /// Why it is not loaded.
    problem: Mutex<Option<String>>,
}

/// What a guest has registered with one host.
#[derive(Debug, Default, Clone)]
pub(super) struct Registered {
    pub(super) hooks: Vec<Hook>,
    pub(super) tools: Vec<RegisteredTool>,
    pub(super) commands: Vec<CommandInfo>,
    pub(super) cli_commands: Vec<CliCommandInfo>,
    pub(super) skills: Vec<SkillInfo>,
    /// Methods that did nothing.
    pub(super) ignored: BTreeSet<String>,
    /// The function of a gateway hook.
    pub(super) handler: Option<u64>,
}

/// A callback.
#[derive(Debug, Clone)]
pub(super) struct Hook {
    pub(super) event: HookEvent,
    pub(super) function: u64,
    /// The name of the Python function.
    pub(super) callback: String,
}

/// A slash command.
#[derive(Debug, Clone)]
pub(super) struct CommandInfo {
    pub(super) name: String,
    pub(super) function: u64,
    pub(super) description: String,
    pub(super) args_hint: String,
}

/// A command of the command line.
#[derive(Debug, Clone)]
pub(super) struct CliCommandInfo {
    pub(super) name: String,
    pub(super) function: u64,
    pub(super) description: String,
}

/// A skill.
#[derive(Debug, Clone)]
pub(super) struct SkillInfo {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) description: String,
}

impl Guest {
    pub(super) fn new(key: &str, code: Code, keeper: Arc<Keeper>) -> Self {
        Guest {
            key: key.into(),
            code,
            is_apart: AtomicBool::new(false),
            keeper: RwLock::new(keeper),
            registered: RwLock::default(),
            problem: Mutex::default(),
        }
    }

    /// The order to load it.
    pub(super) fn load_order(&self) -> Order<'_> {
        match &self.code {
            Code::Plugin { manifest } => Order::Load { manifest },
            Code::Handler { name, path, .. } => {
                Order::LoadHandler { name, path: path.to_str().unwrap_or_default() }
            }
        }
    }

    /// Gives it a keeper of its own. Returns whether it had none yet.
    pub(super) fn set_apart(&self, keeper: impl FnOnce() -> Arc<Keeper>) -> bool {
        if self.is_apart.swap(true, Ordering::SeqCst) {
            return false;
        }
        *self.keeper.write().unwrap_or_else(PoisonError::into_inner) = keeper();
        true
    }

    /// Who keeps its host running.
    pub(super) fn keeper(&self) -> Arc<Keeper> {
        Arc::clone(&self.keeper.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who keeps its host running, and how that is doing, as soon as it is there or known not to be.
    pub(super) async fn settled(&self) -> (Arc<Keeper>, State) {
        loop {
            let keeper = self.keeper();
            let state = keeper.settled().await;
            // Meanwhile it may have been given a host of its own.
            if Arc::ptr_eq(&keeper, &self.keeper()) {
                return (keeper, state);
            }
        }
    }

    pub(super) fn registered(&self) -> Arc<Registered> {
        Arc::clone(&self.registered.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_registered(&self, registered: Arc<Registered>) {
        *self.registered.write().unwrap_or_else(PoisonError::into_inner) = registered;
    }

    pub(super) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes why it is not loaded. Returns whether that is news.
    pub(super) fn set_problem(&self, problem: Option<String>) -> bool {
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = *known != problem;
        *known = problem;
        is_news
    }
}

impl Registered {
    /// Adds what a plugin registers. Nonsense is said in the log.
    pub(super) fn add(&mut self, plugin: &str, what: Registration) {
        match what {
            Registration::Hook { name, function, callback } => match HookEvent::named(&name) {
                Some(event) => self.hooks.push(Hook { event, function, callback }),
                None => {
                    let hint = HookEvent::closest(&name);
                    let hint = hint.map(|event| format!("; did you mean {event}?")).unwrap_or_default();
                    tracing::warn!(
                        plugin,
                        "a plugin registered a hook for {name:?}, which never fires{hint}"
                    );
                }
            },
            Registration::Tool(tool) => match &tool.missing {
                Some(why) => {
                    tracing::info!(plugin, tool = tool.name, "a plugin's tool is not offered: {why}");
                }
                None => {
                    self.tools.retain(|known| known.name != tool.name);
                    self.tools.push(tool);
                }
            },
            Registration::Command { name, function, description, args_hint } => {
                self.commands.retain(|known| known.name != name);
                self.commands.push(CommandInfo { name, function, description, args_hint });
            }
            Registration::CliCommand { name, function, description } => {
                self.cli_commands.retain(|known| known.name != name);
                self.cli_commands.push(CliCommandInfo { name, function, description });
            }
            Registration::Skill { name, path, description } => {
                self.skills.retain(|known| known.name != name);
                self.skills.push(SkillInfo { name, path, description });
            }
            Registration::Ignored { method } => {
                self.ignored.insert(method);
            }
        }
    }

    /// The function of a command of the command line.
    pub(super) fn cli_command(&self, name: &str) -> Option<u64> {
        self.cli_commands.iter().find(|known| known.name == name).map(|known| known.function)
    }

    /// The function of the `nth` callback for an event.
    pub(super) fn hook(&self, event: HookEvent, nth: usize) -> Option<u64> {
        self.hooks.iter().filter(|hook| hook.event == event).nth(nth).map(|hook| hook.function)
    }
}
