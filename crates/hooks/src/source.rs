//! Where callbacks come from, what they are told and what they say.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::contract::SessionRef;
use crate::event::{EventSet, HookEvent};

/// Where callbacks come from.
pub trait Source: Send + Sync + 'static {
    /// The events that it has callbacks for at the moment. Asked whenever something happens, so it must be cheap.
    fn events(&self) -> EventSet;

    /// Its callbacks for an event, in the order in which they are to run.
    fn callbacks(&self, event: HookEvent) -> Vec<Arc<dyn Callback>>;

    /// What is wrong with it, for people who look after the server.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}

/// One piece of user code for one event.
pub trait Callback: Send + Sync + 'static {
    /// What people know it by, in the log and in the text of a block.
    fn name(&self) -> &str;

    /// Whether this firing concerns it.
    fn concerns(&self, firing: &Firing) -> bool;

    /// How long one call may take; none for as long as it likes.
    fn time_limit(&self) -> Option<Duration>;

    /// What a failed call means for what it was asked about.
    fn on_failure(&self) -> OnFailure;

    /// Whether nobody waits for it. What it answers is then of no use.
    fn runs_beside(&self) -> bool;

    /// Calls it. Dropping the future ends whatever it started.
    fn call<'a>(&'a self, firing: &'a Firing) -> BoxFuture<'a, Result<Answer, String>>;
}

/// What a failed callback means for what it was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// Nothing: it goes on as if the callback were not there.
    GoOn,
    /// It is blocked.
    Block,
}

/// Something that happened, as callbacks are told.
#[derive(Debug, Clone)]
pub struct Firing {
    /// What happened.
    pub event: HookEvent,
    /// The keyword arguments.
    pub arguments: Map<String, Value>,
    /// Where a command runs; none where there is no session.
    pub workspace: Option<PathBuf>,
    /// The session; none where there is none.
    pub session: Option<SessionRef>,
}

impl Firing {
    /// The tool that it is about.
    pub fn tool(&self) -> Option<&str> {
        self.arguments.get("tool_name").and_then(Value::as_str)
    }
}

/// What a callback has to say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// What it returned, in the shapes of the documentation; null for nothing.
    pub value: Value,
    /// The tool's arguments, if it changed them.
    pub input: Option<Map<String, Value>>,
    /// Something that went wrong although it answered.
    pub complaint: Option<String>,
}
