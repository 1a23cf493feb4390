//! Hooks of the configuration: commands, commands that run on, and addresses.
//!
//! They share what they are told and what their answers mean, and differ in how the one gets there and the other comes
//! back.

mod command;
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
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_net::Client;
use petasos_sandbox::Sandbox;

use self::http::Http;
use self::persistent::Persistent;
use crate::event::{EventSet, HookEvent};
use crate::source::{Answer, Callback, Firing, OnFailure, Source};

pub use self::judge::Exchange;
pub use self::matcher::Matcher;
pub use self::payload::arguments_of;
pub use self::place::Place;
pub use self::spec::{HookSpec, Specs, Target};

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
    spec: HookSpec,
    asks: Asks,
    reach: Arc<Reach>,
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
        Ok(ConfiguredHook { spec, asks, reach })
    }

    /// What is configured.
    pub fn spec(&self) -> &HookSpec {
        &self.spec
    }

    /// Tells the hook about a firing and takes its answer, whatever that is.
    pub async fn exchange(&self, firing: &Firing) -> Result<Exchange, String> {
        let Reach { place, sandbox, client } = self.reach.as_ref();
        let directory = match &firing.workspace {
            Some(workspace) => made(workspace)
                .map_err(|error| format!("the workspace {} cannot be used: {error}", workspace.display()))?,
            None => place.directory.clone(),
        };
        let payload = payload::text(firing, &directory.to_string_lossy());
        match &self.asks {
            Asks::Command(command) => command::ask(command, place, &payload, &directory).await,
            Asks::Persistent(persistent) => persistent.ask(place, sandbox, &payload).await,
            Asks::Http(http) => http.ask(client, &payload).await,
        }
    }

    /// What an answer means.
    pub fn judge(&self, firing: &Firing, exchange: &Exchange) -> Result<Answer, String> {
        judge::judge(&self.spec, firing, exchange)
    }
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
        self.spec.target.as_str()
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
            let exchange = self.exchange(firing).await?;
            self.judge(firing, &exchange)
        }
        .boxed()
    }
}

/// All hooks of the configuration that may run, in its order.
pub struct ConfiguredHooks {
    hooks: Vec<Arc<ConfiguredHook>>,
    events: EventSet,
}

impl ConfiguredHooks {
    /// A source of these hooks.
    pub fn new(hooks: Vec<ConfiguredHook>) -> Self {
        let events = hooks.iter().map(|hook| hook.spec.event).collect();
        ConfiguredHooks { hooks: hooks.into_iter().map(Arc::new).collect(), events }
    }
}

impl Source for ConfiguredHooks {
    fn events(&self) -> EventSet {
        self.events
    }

    fn callbacks(&self, event: HookEvent) -> Vec<Arc<dyn Callback>> {
        let hooks = self.hooks.iter().filter(|hook| hook.spec.event == event);
        hooks.map(|hook| Arc::clone(hook) as Arc<dyn Callback>).collect()
    }
}
