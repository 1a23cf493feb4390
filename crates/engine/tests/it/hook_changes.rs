//! What hooks can change.

use petasos_core::event::{Payload, ToolEffect, Verdict};
use petasos_engine::{Observation, Start};
use petasos_hooks::CallStatus;
use petasos_testkit::Reply;
use petasos_testkit::tools::CountingTool;
use serde_json::json;

use crate::hooks::{Do, Recorder};
use crate::world::{Setup, World, check_log, confirm, results, said, steer};

#[tokio::test]
async fn a_call_can_be_blocked() {
    let (hooks, tool) = (Recorder::new(), CountingTool::new("write_note", ToolEffect::SideEffect));
    let world = World::with(Setup::default().with_tool(&tool).with_hooks(&hooks)).await;
    let id = world.session().await;
    hooks.on("pre_tool_call", Do::Say("Not on a Sunday."));
    world.model.script([Reply::tool_call("write_note", json!({})), Reply::text("Tomorrow, then.")]);
    world.turn(&id, "go").await;
    let log = world.log(&id).await;
    check_log(&log);
    assert_eq!((tool.runs(), results(&log)), (0, vec!["Not on a Sunday.".to_owned()]));
    assert!(world.model.requests()[1].body["messages"].to_string().contains("Not on a Sunday."));
    let call = log.iter().find_map(|event| match &event.payload {
        Payload::ToolUse(call) => Some(call),
        _ => None,
    });
    let call = call.unwrap();
    assert!(!call.requires_action, "nobody is asked about a call that never runs");
    let end = hooks.fired().into_iter().find(|fired| fired.point == "post_tool_call").unwrap();
    let Some(Observation::PostToolCall { tool_use_id, status, .. }) = end.observation else { panic!() };
    assert_eq!((tool_use_id, status), (call.id.to_string(), CallStatus::Blocked));
    assert_eq!(hooks.order(&["transform_tool_result"]), [""; 0]);
}

#[tokio::test]
async fn arguments_can_be_changed() {
    let (hooks, tool) = (Recorder::new(), CountingTool::new("read_note", ToolEffect::ReadOnly));
    let world = World::with(Setup::default().with_tool(&tool).with_hooks(&hooks)).await;
    let id = world.session().await;
    hooks.on("pre_tool_call", Do::Set("text", "eggs"));
    world.model.script([Reply::tool_call("read_note", json!({ "text": "milk" })), Reply::text("Done.")]);
    world.turn(&id, "go").await;
    let log = world.log(&id).await;
    assert_eq!(results(&log), ["eggs"]);
    let input = log.iter().find_map(|event| match &event.payload {
        Payload::ToolUse(call) => Some(call.input.clone()),
        _ => None,
    });
    assert_eq!(input.unwrap()["text"], "eggs", "the log says what was run");
}

#[tokio::test]
async fn injected_text_follows_the_users_in_every_call_of_its_turn_only() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_hooks(&hooks)).await;
    let id = world.session().await;
    hooks.on("pre_llm_call", Do::Say("It is raining."));
    let todo =
        || Reply::tool_call("todo", json!({ "todos": [{ "id": "1", "content": "x", "status": "pending" }] }));
    world.model.script([todo(), todo(), Reply::text("Take a hat."), Reply::text("You are welcome.")]);
    world.turn(&id, "What now?").await;
    hooks.behave();
    world.turn(&id, "Thanks.").await;
    let requests = world.model.requests();
    assert_eq!(requests.len(), 4);
    for request in &requests[..3] {
        assert_eq!(request.last_user_text(), "What now?\n\nIt is raining.");
    }
    assert_eq!(requests[3].last_user_text(), "Thanks.");
    assert!(!requests[3].body.to_string().contains("raining"));
    assert_eq!(hooks.order(&["pre_llm_call"]).len(), 2, "once per turn");
    let log = serde_json::to_string(&world.log(&id).await).unwrap();
    assert!(!log.contains("raining"));
}

#[tokio::test]
async fn injected_text_outlasts_a_pause() {
    let (hooks, tool) = (Recorder::new(), CountingTool::new("write_note", ToolEffect::SideEffect));
    let world = World::with(Setup::default().with_tool(&tool).with_hooks(&hooks)).await;
    let id = world.session().await;
    hooks.on("pre_llm_call", Do::Say("It is raining."));
    world.model.script([Reply::tool_call("write_note", json!({})), Reply::text("Done.")]);
    let mut follower = world.follow(&id, Start::Now).await;
    world.message(&id, "go").await.unwrap();
    follower.until_idle().await;
    world.asleep().await;
    hooks.on("pre_llm_call", Do::Say("The sun shines."));
    // Whatever else happens in the pause, the turn keeps its text.
    world.send(&id, steer("be quick")).await.unwrap();
    world.asleep().await;
    let call = world.pending(&id).await.remove(0);
    world.send(&id, confirm(&call, Verdict::Allow)).await.unwrap();
    follower.until_idle().await;
    let requests = world.model.requests();
    assert!(
        requests[1].body.to_string().contains("raining") && !requests[1].body.to_string().contains("sun")
    );
    assert_eq!(hooks.order(&["pre_llm_call"]).len(), 1);
}

#[tokio::test]
async fn a_turn_that_goes_on_after_a_restart_asks_for_its_text_again() {
    let (hooks, tool) = (Recorder::new(), CountingTool::new("read_note", ToolEffect::ReadOnly).held_up());
    let world = World::with(Setup::default().with_tool(&tool).with_hooks(&hooks)).await;
    let id = world.session().await;
    hooks.on("pre_llm_call", Do::Say("It is raining."));
    world.model.script([Reply::tool_call("read_note", json!({})), Reply::text("Done.")]);
    world.message(&id, "go").await.unwrap();
    tool.wait_for_start().await;
    let world = world.restart().await;
    tool.let_one_finish();
    hooks.wait_for("on_session_end", 1).await;
    let requests = world.model.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| request.last_user_text() == "go\n\nIt is raining."));
}

#[tokio::test]
async fn results_and_answers_can_be_replaced() {
    let (hooks, tool) = (Recorder::new(), CountingTool::new("read_note", ToolEffect::ReadOnly));
    let world = World::with(Setup::default().with_tool(&tool).with_hooks(&hooks)).await;
    let id = world.session().await;
    hooks.on("transform_tool_result", Do::Say("[secret]"));
    hooks.on("transform_llm_output", Do::Say("I may not say."));
    let call = Reply::text("Let me look.").and_tool_call("read_note", json!({ "text": "the code is 1234" }));
    world.model.script([call, Reply::text("It is 1234.")]);
    world.turn(&id, "go").await;
    let log = world.log(&id).await;
    assert_eq!(results(&log), ["[secret]"]);
    assert_eq!(said(&log), ["Let me look.", "I may not say."], "only the final text is transformed");
    assert!(world.model.requests()[1].body["messages"].to_string().contains("[secret]"));
    hooks.wait_for("post_llm_call", 1).await;
    let end = hooks.fired().into_iter().find(|fired| fired.point == "post_llm_call").unwrap();
    let Some(Observation::PostLlmCall { text, .. }) = end.observation else { panic!("{end:?}") };
    assert_eq!(text, "I may not say.");
}
