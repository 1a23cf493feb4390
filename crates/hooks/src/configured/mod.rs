//! Hooks of the configuration: commands, commands that run on, and addresses.
//!
//! They share what they are told and what their answers mean, and differ in how the one gets there and the other comes
//! back.

mod availability;
mod command;
mod failure;
mod guard;
mod http;
mod judge;
mod matcher;
mod payload;
mod persistent;
mod place;
mod python_pattern;
mod spec;

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_net::Client;
use petasos_sandbox::Sandbox;

use self::http::Http;
use self::persistent::Persistent;
use crate::event::{EventSet, HookEvent};
use crate::source::{Answer, Callback, Firing, OnFailure, Source};

pub use self::availability::Unavailable;
pub use self::failure::HookFailure;
pub use self::guard::MissingGuard;
pub use self::judge::Exchange;
pub use self::matcher::Matcher;
pub use self::payload::arguments_of;
pub use self::place::Place;
pub use self::spec::{HookDirectory, HookSpec, Specs, Target};

/// What hooks of the configuration need to reach out.
pub struct Reach {
    /// Where they run.
    pub place: Place,
    /// What starts commands that run on.
    pub sandbox: Sandbox,
    /// What sends requests, guarded.
    pub client: Client,
}

/// One hook of the configuration, ready to be asked.
pub struct ConfiguredHook {
    name: String,
    spec: HookSpec,
    asks: Asks,
    reach: Arc<Reach>,
    /// Why a guard could not be asked last time.
    unavailable: Mutex<Option<String>>,
}

/// How it is asked.
enum Asks {
    Command(String),
    Persistent(Persistent),
    Http(Http),
}

impl ConfiguredHook {
    /// Makes a hook ready.
    pub fn new(spec: HookSpec, reach: Arc<Reach>) -> Result<Self, String> {
        let asks = match &spec.target {
            Target::Command(command) => Asks::Command(command.clone()),
            Target::Persistent(command) => Asks::Persistent(Persistent::new(command.clone())),
            Target::Url { url, secret } => Asks::Http(Http::new(url.clone(), secret.as_ref())?),
        };
        let name = spec.target.name();
        Ok(ConfiguredHook { name, spec, asks, reach, unavailable: Mutex::default() })
    }

    /// What is configured.
    pub fn spec(&self) -> &HookSpec {
        &self.spec
    }

    /// Tells the hook about a firing and takes its answer, whatever that is.
    pub async fn exchange(&self, firing: &Firing) -> Result<Exchange, HookFailure> {
        let Reach { place, sandbox, client } = self.reach.as_ref();
        let directory = match &firing.workspace {
            Some(workspace) => made(workspace).map_err(|error| {
                let why = format!("the workspace {} cannot be used: {error}", workspace.display());
                HookFailure::Failed(why)
            })?,
            None => place.directory.clone(),
        };
        let payload = payload::text(firing, &directory.to_string_lossy());
        match &self.asks {
            Asks::Command(command) => {
                let directory = match self.spec.directory {
                    HookDirectory::Workspace => &directory,
                    HookDirectory::Home => &place.directory,
                };
                command::ask(command, place, &payload, directory).await
            }
            Asks::Persistent(persistent) => persistent.ask(place, sandbox, &payload).await,
            Asks::Http(http) => http.ask(client, &payload).await,
        }
    }

    /// What an answer means.
    pub fn judge(&self, firing: &Firing, exchange: &Exchange) -> Result<Answer, String> {
        judge::judge(&self.spec, firing, exchange)
    }

    /// Why a guard is not available, for people who look after the server.
    fn problem(&self) -> Option<String> {
        if !self.spec.fail_closed {
            return None;
        }
        let command = self.spec.target.command();
        let now = command.and_then(|command| self.reach.place.availability(command).err());
        let why = now.map(|why| why.to_string()).or_else(|| self.last_failure().clone())?;
        Some(guard::problem(self.name(), self.spec.matcher.as_ref(), &why))
    }

    /// Turns the outcome of a guard's call into an answer. A guard that could not be asked blocks.
    fn guarded(&self, asked: Result<Answer, HookFailure>) -> Result<Answer, String> {
        let asked = asked.map_err(|failure| self.explained(failure));
        *self.last_failure() = match &asked {
            Err(HookFailure::Unavailable(why)) => Some(why.clone()),
            _ => None,
        };
        match asked {
            Ok(answer) => Ok(answer),
            Err(HookFailure::Unavailable(why)) => Ok(guard::block(self.name(), why)),
            Err(HookFailure::Failed(why)) => Err(why),
        }
    }

    /// A command that failed may have done so because it, or the script that it was to run, is not there.
    fn explained(&self, failure: HookFailure) -> HookFailure {
        let Some(command) = self.spec.target.command() else { return failure };
        match self.reach.place.availability(command) {
            Err(why) => HookFailure::Unavailable(why.to_string()),
            Ok(()) => failure,
        }
    }

    fn last_failure(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.unavailable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads what a hook said. A shell returns 126 and 127 for a program that it could not start.
fn judged(hook: &ConfiguredHook, firing: &Firing, exchange: &Exchange) -> Result<Answer, HookFailure> {
    let not_started = matches!(exchange.exit_code, Some(126 | 127));
    hook.judge(firing, exchange)
        .map_err(|why| if not_started { HookFailure::Unavailable(why) } else { HookFailure::Failed(why) })
}

/// The directory, made if need be, by the path that it really has.
fn made(directory: &Path) -> io::Result<PathBuf> {
    match directory.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            directory.canonicalize()
        }
        found => found,
    }
}

impl Callback for ConfiguredHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn concerns(&self, firing: &Firing) -> bool {
        match &self.spec.matcher {
            Some(matcher) => firing.tool().is_some_and(|tool| matcher.matches(tool)),
            None => true,
        }
    }

    fn time_limit(&self) -> Option<Duration> {
        Some(self.spec.timeout)
    }

    fn on_failure(&self) -> OnFailure {
        if self.spec.fail_closed { OnFailure::Block } else { OnFailure::GoOn }
    }

    fn runs_beside(&self) -> bool {
        self.spec.runs_beside
    }

    fn call<'a>(&'a self, firing: &'a Firing) -> BoxFuture<'a, Result<Answer, String>> {
        async move {
            let exchanged = self.exchange(firing).await;
            let asked = exchanged.and_then(|exchange| judged(self, firing, &exchange));
            if self.spec.fail_closed { self.guarded(asked) } else { asked.map_err(|why| why.to_string()) }
        }
        .boxed()
    }
}

/// All hooks of the configuration that may run, in its order.
pub struct ConfiguredHooks {
    hooks: Vec<Arc<ConfiguredHook>>,
    missing: Vec<Arc<MissingGuard>>,
    events: EventSet,
}

impl ConfiguredHooks {
    /// A source of these hooks, and of the guards that are missing among them.
    pub fn new(hooks: Vec<ConfiguredHook>, missing: Vec<MissingGuard>) -> Self {
        let guarded = missing.iter().map(|_| HookEvent::PreToolCall);
        let events = hooks.iter().map(|hook| hook.spec.event).chain(guarded).collect();
        let hooks = hooks.into_iter().map(Arc::new).collect();
        ConfiguredHooks { hooks, missing: missing.into_iter().map(Arc::new).collect(), events }
    }
}

impl Source for ConfiguredHooks {
    fn events(&self) -> EventSet {
        self.events
    }

    fn callbacks(&self, event: HookEvent) -> Vec<Arc<dyn Callback>> {
        let hooks = self.hooks.iter().filter(|hook| hook.spec.event == event);
        let hooks = hooks.map(|hook| Arc::clone(hook) as Arc<dyn Callback>);
        let missing = self.missing.iter().filter(|_| event == HookEvent::PreToolCall);
        hooks.chain(missing.map(|guard| Arc::clone(guard) as Arc<dyn Callback>)).collect()
    }

    fn problems(&self) -> Vec<String> {
        let missing = self.missing.iter().map(|guard| guard.problem());
        missing.chain(self.hooks.iter().filter_map(|hook| hook.problem())).collect()
    }
}
