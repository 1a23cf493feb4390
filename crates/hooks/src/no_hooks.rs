//! Stands in where there is no user code.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::contract::{Hooks, TerminalOutput, ToolCall, ToolResult, TurnInfo, TurnStart};
use crate::observation::Observation;

/// No user code at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn is_empty(&self) -> bool {
        true
    }

    fn observe<'a>(&'a self, _: &'a TurnInfo, _: Observation) -> BoxFuture<'a, ()> {
        std::future::ready(()).boxed()
    }

    fn pre_llm_call<'a>(&'a self, _: &'a TurnInfo, _: TurnStart<'a>) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }

    fn pre_tool_call<'a>(
        &'a self,
        _: &'a TurnInfo,
        _: ToolCall<'a>,
        _: &'a mut Map<String, Value>,
    ) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }

    fn transform_tool_result<'a>(
        &'a self,
        _: &'a TurnInfo,
        _: ToolResult<'a>,
    ) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }

    fn transform_terminal_output<'a>(
        &'a self,
        _: &'a TurnInfo,
        _: TerminalOutput<'a>,
    ) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }

    fn transform_llm_output<'a>(&'a self, _: &'a TurnInfo, _: &'a str) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }
}
