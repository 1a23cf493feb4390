//! Hooks that write down when they fire, and do what a test tells them to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use petasos_hooks::{Hooks, Observation, TerminalOutput, ToolCall, ToolResult, TurnInfo, TurnStart};
use petasos_testkit::within;
use serde_json::{Map, Value};
use tokio::sync::watch;

/// The points that only watch, beside the turn.
pub(crate) const BESIDE: &[&str] = &[
    "on_session_start",
    "pre_api_request",
    "post_api_request",
    "pre_approval_request",
    "post_approval_response",
    "post_llm_call",
    "on_session_end",
];

/// The points that a turn waits for.
pub(crate) const AWAITED: &[&str] =
    &["pre_llm_call", "pre_tool_call", "post_tool_call", "transform_tool_result", "transform_llm_output"];

/// What a hook does at a point.
#[derive(Debug, Clone)]
pub(crate) enum Do {
    Say(&'static str),
    Set(&'static str, &'static str),
    Panic,
    Hang,
}

/// One time that a hook fired.
#[derive(Debug, Clone)]
pub(crate) struct Fired {
    pub(crate) point: &'static str,
    pub(crate) turn: TurnInfo,
    pub(crate) observation: Option<Observation>,
}

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    fired: watch::Sender<Vec<Fired>>,
    script: Mutex<HashMap<&'static str, Do>>,
}

impl Recorder {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// From now on, does this at the point.
    pub(crate) fn on(&self, point: &'static str, what: Do) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).insert(point, what);
    }

    /// From now on, does nothing anywhere.
    pub(crate) fn behave(&self) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn fired(&self) -> Vec<Fired> {
        self.fired.borrow().clone()
    }

    /// The points that fired so far, of those that are named.
    pub(crate) fn order(&self, of: &[&str]) -> Vec<&'static str> {
        self.fired().into_iter().map(|fired| fired.point).filter(|point| of.contains(point)).collect()
    }

    /// Waits until a point has fired this often.
    pub(crate) async fn wait_for(&self, point: &str, times: usize) {
        let enough = |fired: &Vec<Fired>| fired.iter().filter(|fired| fired.point == point).count() >= times;
        let mut fired = self.fired.subscribe();
        within(point, async { drop(fired.wait_for(enough).await) }).await;
    }

    async fn fire(
        &self,
        point: &'static str,
        turn: &TurnInfo,
        observation: Option<Observation>,
    ) -> Option<Do> {
        self.fired.send_modify(|all| all.push(Fired { point, turn: turn.clone(), observation }));
        let what = self.script.lock().unwrap_or_else(PoisonError::into_inner).get(point).cloned();
        match what {
            Some(Do::Panic) => panic!("a hook of the test panics at {point}"),
            Some(Do::Hang) => pending().await,
            what => what,
        }
    }

    async fn say(&self, point: &'static str, turn: &TurnInfo) -> Option<String> {
        match self.fire(point, turn, None).await {
            Some(Do::Say(text)) => Some(text.to_owned()),
            _ => None,
        }
    }
}

impl Hooks for Recorder {
    fn observe<'a>(&'a self, turn: &'a TurnInfo, observation: Observation) -> BoxFuture<'a, ()> {
        self.fire(observation.event().name(), turn, Some(observation)).map(|_| ()).boxed()
    }

    fn pre_llm_call<'a>(&'a self, turn: &'a TurnInfo, _: TurnStart<'a>) -> BoxFuture<'a, Option<String>> {
        self.say("pre_llm_call", turn).boxed()
    }

    fn pre_tool_call<'a>(
        &'a self,
        turn: &'a TurnInfo,
        _: ToolCall<'a>,
        input: &'a mut Map<String, Value>,
    ) -> BoxFuture<'a, Option<String>> {
        async move {
            match self.fire("pre_tool_call", turn, None).await {
                Some(Do::Say(text)) => Some(text.to_owned()),
                Some(Do::Set(name, value)) => {
                    input.insert(name.to_owned(), value.into());
                    None
                }
                _ => None,
            }
        }
        .boxed()
    }

    fn transform_tool_result<'a>(
        &'a self,
        turn: &'a TurnInfo,
        _: ToolResult<'a>,
    ) -> BoxFuture<'a, Option<String>> {
        self.say("transform_tool_result", turn).boxed()
    }

    fn transform_terminal_output<'a>(
        &'a self,
        turn: &'a TurnInfo,
        _: TerminalOutput<'a>,
    ) -> BoxFuture<'a, Option<String>> {
        self.say("transform_terminal_output", turn).boxed()
    }

    fn transform_llm_output<'a>(&'a self, turn: &'a TurnInfo, _: &'a str) -> BoxFuture<'a, Option<String>> {
        self.say("transform_llm_output", turn).boxed()
    }
}
