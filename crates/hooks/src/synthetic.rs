//! Made-up firings, to try hooks out with. They have the arguments of real ones, since the same code puts them together.

use petasos_core::event::Block;
use petasos_core::model::{Message, Usage};
use serde_json::{Map, Value};

use crate::arguments::{self, Arguments};
use crate::contract::{TerminalOutput, ToolCall, ToolResult, TurnInfo, TurnStart};
use crate::event::HookEvent;
use crate::gateway::{ChatSource, Incoming, received};
use crate::observation::{Approval, CallStatus, Observation};
use crate::source::Firing;

const SESSION: &str = "test-session";
const COMMAND: &str = "echo hello";
const RESULT: &str = r#"{"output":"hello","exit_code":0}"#;
const QUESTION: &str = "What is the weather?";
const ANSWER: &str = "It is sunny.";

/// A firing as it could happen, about the tool `tool` if it is about one. What is `given` takes the place of what is
/// made up.
pub fn firing(event: HookEvent, tool: Option<&str>, given: Map<String, Value>) -> Firing {
    let mut arguments = made_up(event).unwrap_or_default();
    if let (Some(tool), true) = (tool, arguments.contains_key("tool_name")) {
        arguments.insert("tool_name".to_owned(), tool.into());
    }
    arguments.extend(given);
    Firing { event, arguments, workspace: None, session: None }
}

/// The arguments of an event; none if what is made up here were no good.
fn made_up(event: HookEvent) -> Option<Arguments> {
    let turn = turn()?;
    let (tool, tool_use_id) = ("terminal", "toolu_test");
    let input = Map::from_iter([("command".to_owned(), COMMAND.into())]);
    let result = ToolResult { tool_use_id, tool, input: &input, result: RESULT, duration_ms: 42 };
    let question = Message::User(vec![Block::text(QUESTION)]);
    let observation = match event {
        HookEvent::PreToolCall => {
            return Some(arguments::pre_tool_call(&turn, ToolCall { tool_use_id, tool }, input));
        }
        HookEvent::TransformToolResult => return Some(arguments::transform_tool_result(&turn, result)),
        HookEvent::TransformTerminalOutput => {
            let output =
                TerminalOutput { command: COMMAND, output: "hello\n", exit_code: 0, directory: "/tmp" };
            return Some(arguments::transform_terminal_output(&turn, output));
        }
        HookEvent::TransformLlmOutput => return Some(arguments::transform_llm_output(&turn, ANSWER)),
        HookEvent::PreLlmCall => {
            let start = TurnStart { user_message: QUESTION, history: &[question], is_first_turn: true };
            return Some(arguments::pre_llm_call(&turn, start));
        }
        HookEvent::PreGatewayDispatch => return Some(pre_gateway_dispatch()),
        HookEvent::PostToolCall => Observation::PostToolCall {
            tool_use_id: tool_use_id.to_owned(),
            tool: tool.to_owned(),
            input,
            result: RESULT.to_owned(),
            status: CallStatus::Ok,
            duration_ms: 42,
        },
        HookEvent::PostLlmCall => Observation::PostLlmCall {
            user_message: QUESTION.to_owned(),
            text: ANSWER.to_owned(),
            history: vec![question],
        },
        HookEvent::OnSessionStart => Observation::SessionStart,
        HookEvent::OnSessionEnd => Observation::SessionEnd { completed: true, interrupted: false },
        HookEvent::OnSessionFinalize => Observation::SessionFinalize,
        HookEvent::OnSessionReset => {
            Observation::SessionReset { old_session_id: "test-session-before".parse().ok() }
        }
        HookEvent::SubagentStart => Observation::SubagentStart {
            child_session_id: "test-child".parse().ok()?,
            goal: "Look it up.".to_owned(),
        },
        HookEvent::SubagentStop => Observation::SubagentStop {
            child_session_id: "test-child".parse().ok()?,
            summary: "Found it.".to_owned(),
            status: "completed",
            duration_ms: 1234,
        },
        HookEvent::PreApprovalRequest => Observation::PreApprovalRequest(approval(tool_use_id)),
        HookEvent::PostApprovalResponse => {
            Observation::PostApprovalResponse { approval: approval(tool_use_id), choice: "once" }
        }
        HookEvent::PreApiRequest => Observation::PreApiRequest { call: 1, messages: 1, tools: 0 },
        HookEvent::PostApiRequest => {
            let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
            Observation::PostApiRequest { call: 1, usage, duration_ms: 500 }
        }
        HookEvent::ApiRequestError => {
            Observation::ApiRequestError { call: 1, message: "overloaded".to_owned(), retrying: true }
        }
    };
    Some(arguments::of_observation(&turn, &observation))
}

fn turn() -> Option<TurnInfo> {
    Some(TurnInfo {
        tenant: petasos_core::ids::TenantId::default_tenant(),
        session_id: SESSION.parse().ok()?,
        agent_id: "test-agent".parse().ok()?,
        user_id: None,
        turn_id: "test-turn".to_owned(),
        platform: "cli".to_owned(),
        model: "demo/echo".to_owned(),
        workspace: "/tmp".into(),
    })
}

fn approval(tool_use_id: &str) -> Approval {
    Approval {
        tool_use_id: tool_use_id.to_owned(),
        tool: "terminal".to_owned(),
        command: "rm -r build".to_owned(),
        description: "deletes directories with all that is in them".to_owned(),
        pattern_keys: vec!["recursive_delete".to_owned()],
    }
}

fn pre_gateway_dispatch() -> Arguments {
    let source = ChatSource {
        platform: "telegram".to_owned(),
        chat_id: "7".to_owned(),
        chat_type: "dm".to_owned(),
        user_id: "7".to_owned(),
        ..ChatSource::default()
    };
    let (text, message_id) = ("hello".to_owned(), "1".to_owned());
    received(&Incoming { text, source, message_id, internal: false }, &["telegram".to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_the_arguments_of_a_real_one() {
        for event in HookEvent::ALL {
            assert!(!firing(event, None, Map::new()).arguments.is_empty(), "{event}");
        }
        let told = |event| firing(event, None, Map::new()).arguments;
        assert!(told(HookEvent::OnSessionEnd).contains_key("turn_id"));
        assert!(told(HookEvent::PreLlmCall).contains_key("sender_id"));
        assert!(told(HookEvent::SubagentStop).contains_key("child_session_id"));
        assert_eq!(told(HookEvent::PreToolCall)["session_id"], SESSION);
        assert_eq!(told(HookEvent::PreApprovalRequest)["pattern_key"], "recursive_delete");
    }
}
