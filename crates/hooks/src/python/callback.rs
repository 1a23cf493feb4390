//! A callback of a plugin, as the bus calls it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::call::{Repeat, call};
use super::guest::Guest;
use super::hosts::Shared;
use super::message::{self, Order};
use super::wishes::Caller;
use crate::event::HookEvent;
use crate::source::{Answer, Callback, Firing, OnFailure};

/// The `nth` callback of a plugin for an event.
pub(super) struct PythonCallback {
    pub(super) shared: Arc<Shared>,
    pub(super) guest: Arc<Guest>,
    pub(super) nth: usize,
    pub(super) name: String,
}

impl Callback for PythonCallback {
    fn name(&self) -> &str {
        &self.name
    }

    fn concerns(&self, _: &Firing) -> bool {
        true
    }

    /// None: a call of Python code keeps its own limit, because it takes more than dropping a future to end it.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    fn on_failure(&self) -> OnFailure {
        OnFailure::GoOn
    }

    fn runs_beside(&self) -> bool {
        false
    }

    fn call<'a>(&'a self, firing: &'a Firing) -> BoxFuture<'a, Result<Answer, String>> {
        let caller = Caller { session: firing.session.clone(), call_tool: None };
        let kwargs = &firing.arguments;
        let order = move |function| match firing.event {
            HookEvent::PreGatewayDispatch => Order::Dispatch { function, kwargs },
            event => {
                let edits = event == HookEvent::PreToolCall;
                let cwd = firing.workspace.as_ref().map(|workspace| workspace.display().to_string());
                Order::Fire { function, kwargs, cwd, returns: !event.is_observer(), edits }
            }
        };
        async move {
            let limit = self.shared.callback_time();
            let answer = call(&self.shared, &self.guest, caller, limit, Repeat::IfLost, |registered| {
                registered.hook(firing.event, self.nth).map(order)
            });
            Ok(said(firing, answer.await?))
        }
        .boxed()
    }
}

/// What a callback has to say, from what its host said.
fn said(firing: &Firing, answer: message::Answer) -> Answer {
    let before = firing.arguments.get("args").and_then(Value::as_object);
    let input: Option<Map<String, Value>> = answer.args.filter(|args| Some(args) != before);
    // A message that was edited in place is as good as one that is to be rewritten.
    let value = match answer.text {
        Some(text) if answer.result.is_null() => json!({ "action": "rewrite", "text": text }),
        _ => answer.result,
    };
    Answer { value, input, complaint: None }
}
