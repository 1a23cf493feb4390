//! When hooks fire, and what they are told.

use petasos_core::event::{Block, CustomToolResult, Payload, ToolEffect, UserInterrupt, Verdict};
use petasos_core::step::UserEvent;
use petasos_engine::{Observation, Start};
use petasos_hooks::CallStatus;
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Gate, Reply, within};
use serde_json::json;

use crate::hooks::{AWAITED, BESIDE, Do, Recorder};
use crate::world::{Setup, World, confirm};

fn note() -> CountingTool {
    CountingTool::new("write_note", ToolEffect::SideEffect)
}

#[tokio::test]
async fn a_turn_with_a_tool_and_an_approval() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_tool(&note()).with_hooks(&hooks)).await;
    let id = world.session().await;
    world.model.script([Reply::tool_call("write_note", json!({ "text": "milk" })), Reply::text("Noted.")]);
    world.turn_with_approval(&id, "go").await;
    hooks.wait_for("on_session_end", 1).await;
    let beside = [
        "on_session_start",
        "pre_api_request",
        "post_api_request",
        "pre_approval_request",
        "post_approval_response",
        "pre_api_request",
        "post_api_request",
        "post_llm_call",
        "on_session_end",
    ];
    assert_eq!(hooks.order(BESIDE), beside);
    let awaited =
        ["pre_llm_call", "pre_tool_call", "post_tool_call", "transform_tool_result", "transform_llm_output"];
    assert_eq!(hooks.order(AWAITED), awaited);

    let log = world.log(&id).await;
    let call = log.iter().find_map(|event| match &event.payload {
        Payload::ToolUse(call) => Some(call.id.to_string()),
        _ => None,
    });
    let call = call.unwrap();
    for fired in hooks.fired() {
        assert_eq!(fired.turn.turn_id, log[0].id().to_string(), "{fired:?}");
        assert_eq!((&fired.turn.session_id, fired.turn.model.as_str()), (&id, "openai/scripted"));
        match fired.observation {
            Some(Observation::PostToolCall { tool_use_id, result, status, .. }) => {
                assert_eq!((tool_use_id, result.as_str(), status), (call.clone(), "milk", CallStatus::Ok));
            }
            Some(Observation::PreApprovalRequest(asked)) => {
                assert_eq!(
                    (asked.tool_use_id, asked.pattern_keys),
                    (call.clone(), vec!["tool:write_note".to_owned()])
                );
            }
            Some(Observation::PostApprovalResponse { approval, choice }) => {
                assert_eq!((approval.tool_use_id, choice), (call.clone(), "once"));
            }
            Some(Observation::PostLlmCall { user_message, text, history }) => {
                assert_eq!((user_message.as_str(), text.as_str(), history.len()), ("go", "Noted.", 4));
            }
            Some(Observation::SessionEnd { completed, interrupted }) => assert!(completed && !interrupted),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn observers_are_told_in_order_over_many_turns() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_hooks(&hooks)).await;
    let id = world.session_with(json!({ "model": "demo/fast" })).await;
    for _ in 0..20 {
        world.turn(&id, "hello").await;
    }
    hooks.wait_for("on_session_end", 20).await;
    let turn = ["pre_api_request", "post_api_request", "post_llm_call", "on_session_end"];
    let expected: Vec<&str> = std::iter::once("on_session_start").chain(turn.repeat(20)).collect();
    assert_eq!(hooks.order(BESIDE), expected);
}

#[tokio::test]
async fn a_denied_call_ends_before_the_next_model_call() {
    let hooks = Recorder::new();
    let tool = note();
    let world = World::with(Setup::default().with_tool(&tool).with_hooks(&hooks)).await;
    let id = world.session().await;
    world.model.script([Reply::tool_call("write_note", json!({ "text": "milk" })), Reply::text("Fine.")]);
    let mut follower = world.follow(&id, Start::Now).await;
    world.message(&id, "go").await.unwrap();
    follower.until_idle().await;
    let call = world.pending(&id).await.remove(0);
    hooks.on("post_tool_call", Do::Hang);
    world.send(&id, confirm(&call, Verdict::Deny)).await.unwrap();
    hooks.wait_for("post_tool_call", 1).await;
    assert_eq!(world.model.requests().len(), 1, "the model is asked when the hook is done");
    hooks.behave();
    world.send(&id, UserEvent::Interrupt(UserInterrupt { message: None })).await.unwrap();
    follower.until_idle().await;
    assert_eq!(tool.runs(), 0);
    let ends = hooks.fired().into_iter().filter_map(|fired| match fired.observation {
        Some(Observation::PostToolCall { tool_use_id, result, status, .. }) => {
            Some((tool_use_id, result, status))
        }
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [(call, "Tool call denied".to_owned(), CallStatus::Error)]);
    assert_eq!(hooks.order(&["transform_tool_result"]), [""; 0]);
}

#[tokio::test]
async fn what_is_answered_from_outside_ends_too() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_hooks(&hooks)).await;
    let custom = json!({ "type": "custom_tool", "name": "check_order" });
    let id = world.session_with(json!({ "tools": [custom] })).await;
    world.model.script([Reply::tool_call("check_order", json!({ "order": 1 })), Reply::text("Tomorrow.")]);
    let mut follower = world.follow(&id, Start::Now).await;
    world.message(&id, "go").await.unwrap();
    follower.until_idle().await;
    let call = world.pending(&id).await.remove(0);
    let result = CustomToolResult {
        tool_use_id: call.parse().unwrap(),
        content: vec![Block::text("shipped")],
        is_error: false,
    };
    world.send(&id, UserEvent::CustomToolResult(result)).await.unwrap();
    follower.until_idle().await;
    let end = hooks.fired().into_iter().find(|fired| fired.point == "post_tool_call").unwrap();
    let Some(Observation::PostToolCall { tool_use_id, tool, input, result, .. }) = end.observation else {
        panic!("{end:?}")
    };
    assert_eq!((tool_use_id, tool.as_str(), result.as_str()), (call, "check_order", "shipped"));
    assert_eq!(input["order"], 1);
}

#[tokio::test]
async fn a_first_turn_that_is_interrupted_starts_the_session_once() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_hooks(&hooks)).await;
    let id = world.session().await;
    let gate = Gate::new();
    world.model.script([Reply::empty().gate(&gate), Reply::text("Yes?")]);
    world.message(&id, "go").await.unwrap();
    within("the model call", gate.reached()).await;
    world.send(&id, UserEvent::Interrupt(UserInterrupt { message: None })).await.unwrap();
    world.turn(&id, "again").await;
    hooks.wait_for("on_session_end", 2).await;
    assert_eq!(hooks.order(&["on_session_start"]).len(), 1);
    let ends = hooks.fired().into_iter().filter_map(|fired| match fired.observation {
        Some(Observation::SessionEnd { interrupted, .. }) => Some(interrupted),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [true, false]);
}

#[tokio::test]
async fn failed_attempts_are_told() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_hooks(&hooks)).await;
    let id = world.session().await;
    world.model.script([Reply::status(529), Reply::status(400)]);
    world.turn(&id, "go").await;
    hooks.wait_for("on_session_end", 1).await;
    let retrying = hooks.fired().into_iter().filter_map(|fired| match fired.observation {
        Some(Observation::ApiRequestError { retrying, .. }) => Some(retrying),
        _ => None,
    });
    assert_eq!(retrying.collect::<Vec<_>>(), [true, false]);
    assert_eq!(hooks.order(&["post_llm_call"]), [""; 0], "there is no final text");
}
