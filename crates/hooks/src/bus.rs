//! Runs callbacks, and holds the rules that all of them share.
//!
//! All callbacks of an event run, one after another, in the order of the sources and of each source. What one of them
//! changes the next one sees. A callback that fails, panics or takes too long costs its own answer and nothing else,
//! unless it asked to block when it cannot judge.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::answers::{block_message, context, dispatch};
use crate::arguments;
use crate::complaints::Complaints;
use crate::contract::{
    Dispatch, Hooks, SessionRef, TerminalOutput, ToolCall, ToolResult, TurnInfo, TurnStart,
};
use crate::event::HookEvent;
use crate::observation::Observation;
use crate::source::{Answer, Callback, Firing, OnFailure, Source};

/// How many callbacks may be under way that nobody waits for.
const MAX_BESIDE: u32 = 64;

/// What came of one callback.
enum Reply {
    Said(Answer),
    /// It could not say, and wants that to count as a no, for this reason.
    Blocked(String),
}

/// Runs the callbacks of all sources.
pub struct Bus {
    sources: Vec<Arc<dyn Source>>,
    complaints: Arc<Complaints>,
    /// Places for callbacks that nobody waits for.
    beside: Arc<Semaphore>,
}

impl Bus {
    /// A bus over sources, the first of which is asked first.
    pub fn new(sources: Vec<Arc<dyn Source>>) -> Self {
        Bus { sources, complaints: Arc::default(), beside: Arc::new(Semaphore::new(MAX_BESIDE as usize)) }
    }

    /// `pre_gateway_dispatch`: what is to be done about a message that a channel received. The arguments are `event`,
    /// `gateway` and `session_store`.
    pub(crate) async fn pre_gateway_dispatch(&self, arguments: Map<String, Value>) -> Dispatch {
        let mut decision = None;
        let mut firing =
            Firing { event: HookEvent::PreGatewayDispatch, arguments, workspace: None, session: None };
        let take = |_: &mut Firing, reply| {
            if let Reply::Said(answer) = reply {
                decision = decision.take().or_else(|| dispatch(&answer.value));
            }
        };
        self.fire(&mut firing, take).await;
        decision.unwrap_or(Dispatch::Allow)
    }

    async fn fire(&self, firing: &mut Firing, mut take: impl FnMut(&mut Firing, Reply)) {
        let event = firing.event;
        for source in self.sources.iter().filter(|source| source.events().contains(event)) {
            for callback in source.callbacks(event) {
                if !callback.concerns(firing) {
                    continue;
                }
                if callback.runs_beside() {
                    self.start_beside(callback, firing);
                } else if let Some(reply) = call(callback.as_ref(), firing, &self.complaints).await {
                    take(firing, reply);
                }
            }
        }
    }

    /// Calls a callback that nobody waits for, unless too many are under way.
    fn start_beside(&self, callback: Arc<dyn Callback>, firing: &Firing) {
        let Ok(place) = Arc::clone(&self.beside).try_acquire_owned() else {
            let why = format!("it is not told: {MAX_BESIDE} that nobody waits for are under way");
            return self.complaints.say(firing.event.name(), callback.name(), &why);
        };
        let (complaints, firing) = (Arc::clone(&self.complaints), firing.clone());
        tokio::spawn(async move {
            call(callback.as_ref(), &firing, &complaints).await;
            drop(place);
        });
    }

    /// Hands a text from callback to callback, each of which may put another in its place.
    async fn transform(&self, mut firing: Firing, name: &str) -> Option<String> {
        let mut changed = None;
        let take = |firing: &mut Firing, reply| {
            if let Reply::Said(Answer { value: Value::String(text), .. }) = reply {
                firing.arguments.insert(name.to_owned(), text.clone().into());
                changed = Some(text);
            }
        };
        self.fire(&mut firing, take).await;
        changed
    }
}

/// Calls one callback within its bounds.
async fn call(callback: &dyn Callback, firing: &Firing, complaints: &Complaints) -> Option<Reply> {
    let calling = AssertUnwindSafe(async { callback.call(firing).await }).catch_unwind();
    let called = match callback.time_limit() {
        Some(limit) => tokio::time::timeout(limit, calling).await.unwrap_or_else(|_| {
            Ok(Err(format!("it had not answered after {} s and was stopped", limit.as_secs_f64())))
        }),
        None => calling.await,
    };
    let answer = called.unwrap_or_else(|_| Err("it ended in a bug of petasos".to_owned()));
    match answer {
        Ok(answer) => {
            if let Some(complaint) = &answer.complaint {
                complaints.say(firing.event.name(), callback.name(), complaint);
            }
            Some(Reply::Said(answer))
        }
        Err(why) => {
            complaints.say(firing.event.name(), callback.name(), &why);
            let block = || Reply::Blocked(format!("hook {} failed closed: {why}", callback.name()));
            (callback.on_failure() == OnFailure::Block).then(block)
        }
    }
}

impl Hooks for Bus {
    fn is_empty(&self) -> bool {
        self.sources.iter().all(|source| source.events().is_empty())
    }

    fn problems(&self) -> Vec<String> {
        self.sources.iter().flat_map(|source| source.problems()).collect()
    }

    fn wants(&self, event: HookEvent) -> bool {
        self.sources.iter().any(|source| source.events().contains(event))
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        // Whoever has all the places is alone.
        async { drop(self.beside.acquire_many(MAX_BESIDE).await) }.boxed()
    }

    fn observe<'a>(&'a self, turn: &'a TurnInfo, observation: Observation) -> BoxFuture<'a, ()> {
        async move {
            // Putting the arguments together may cost more than the turn's own work.
            if !self.wants(observation.event()) {
                return;
            }
            let arguments = arguments::of_observation(turn, &observation);
            self.fire(&mut firing(turn, observation.event(), arguments), |_, _| {}).await;
        }
        .boxed()
    }

    fn pre_llm_call<'a>(&'a self, turn: &'a TurnInfo, start: TurnStart<'a>) -> BoxFuture<'a, Option<String>> {
        async move {
            if !self.wants(HookEvent::PreLlmCall) {
                return None;
            }
            let arguments = arguments::pre_llm_call(turn, start);
            let mut contexts = Vec::new();
            let take = |_: &mut Firing, reply| {
                if let Reply::Said(answer) = reply {
                    contexts.extend(context(answer.value));
                }
            };
            self.fire(&mut firing(turn, HookEvent::PreLlmCall, arguments), take).await;
            (!contexts.is_empty()).then(|| contexts.join("\n\n"))
        }
        .boxed()
    }

    fn pre_tool_call<'a>(
        &'a self,
        turn: &'a TurnInfo,
        call: ToolCall<'a>,
        input: &'a mut Map<String, Value>,
    ) -> BoxFuture<'a, Option<String>> {
        async move {
            if !self.wants(HookEvent::PreToolCall) {
                return None;
            }
            let arguments = arguments::pre_tool_call(turn, call, input.clone());
            let mut block = None;
            let take = |firing: &mut Firing, reply| {
                let why = match reply {
                    Reply::Blocked(why) => Some(why),
                    Reply::Said(answer) => {
                        if let Some(changed) = answer.input {
                            input.clone_from(&changed);
                            firing.arguments.insert("args".to_owned(), Value::Object(changed));
                        }
                        block_message(&answer.value)
                    }
                };
                block = block.take().or(why);
            };
            self.fire(&mut firing(turn, HookEvent::PreToolCall, arguments), take).await;
            block
        }
        .boxed()
    }

    fn transform_tool_result<'a>(
        &'a self,
        turn: &'a TurnInfo,
        result: ToolResult<'a>,
    ) -> BoxFuture<'a, Option<String>> {
        async move {
            let event = HookEvent::TransformToolResult;
            if !self.wants(event) {
                return None;
            }
            let arguments = arguments::transform_tool_result(turn, result);
            self.transform(firing(turn, event, arguments), "result").await
        }
        .boxed()
    }

    fn transform_terminal_output<'a>(
        &'a self,
        turn: &'a TurnInfo,
        output: TerminalOutput<'a>,
    ) -> BoxFuture<'a, Option<String>> {
        async move {
            let event = HookEvent::TransformTerminalOutput;
            if !self.wants(event) {
                return None;
            }
            let arguments = arguments::transform_terminal_output(turn, output);
            self.transform(firing(turn, event, arguments), "output").await
        }
        .boxed()
    }

    fn transform_llm_output<'a>(
        &'a self,
        turn: &'a TurnInfo,
        text: &'a str,
    ) -> BoxFuture<'a, Option<String>> {
        async move {
            let event = HookEvent::TransformLlmOutput;
            if !self.wants(event) {
                return None;
            }
            let arguments = arguments::transform_llm_output(turn, text);
            let text = self.transform(firing(turn, event, arguments), "response_text").await;
            // An answer that says nothing at all is no answer to the user.
            text.filter(|text| !text.is_empty())
        }
        .boxed()
    }
}

fn firing(turn: &TurnInfo, event: HookEvent, arguments: Map<String, Value>) -> Firing {
    let session = SessionRef { tenant: turn.tenant.clone(), session_id: turn.session_id.clone() };
    Firing { event, arguments, workspace: Some(turn.workspace.clone()), session: Some(session) }
}

#[cfg(test)]
mod tests;
