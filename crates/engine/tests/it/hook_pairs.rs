//! Each call that hooks hear of ends for them, once, and nothing ends that they never heard of.

use petasos_core::event::{Block, CustomToolResult, ToolEffect, UserInterrupt};
use petasos_core::ids::RoutineId;
use petasos_core::model::Stop;
use petasos_core::step::UserEvent;
use petasos_engine::{Observation, Start, Trigger};
use petasos_testkit::Reply;
use petasos_testkit::tools::CountingTool;
use serde_json::{Value, json};

use crate::hooks::{Do, Recorder};
use crate::world::{Setup, World, tenant};

/// The tools whose calls have ended, in the order in which hooks were told.
fn ended(hooks: &Recorder) -> Vec<String> {
    let tools = hooks.fired().into_iter().filter_map(|fired| match fired.observation {
        Some(Observation::PostToolCall { tool, .. }) => Some(tool),
        _ => None,
    });
    tools.collect()
}

/// A run in which the model makes these calls at once. It fails with a tool.
async fn run(world: &World, hooks: &Recorder, calls: Vec<(&str, Value)>) {
    let id: RoutineId = "kyc".parse().unwrap();
    let definition = json!({ "agent": { "model": "openai/scripted" }, "on_tool_error": "fail" });
    let definition = serde_json::from_value(definition).unwrap();
    world.engine.put_routine(&tenant(), &id, definition).await.unwrap();
    world.model.script([Reply::tool_calls(calls)]);
    let before = hooks.order(&["on_session_end"]).len();
    world.engine.trigger(&tenant(), &id, Trigger::default()).await.unwrap();
    hooks.wait_for("on_session_end", before + 1).await;
}

#[tokio::test]
async fn calls_that_a_run_leaves_behind_when_it_is_settled_have_ended() {
    let hooks = Recorder::new();
    let tool = CountingTool::new("read_note", ToolEffect::ReadOnly);
    let world = World::with(Setup::default().with_tool(&tool).with_hooks(&hooks)).await;
    let note = || ("read_note", json!({}));
    run(&world, &hooks, vec![note(), ("emit_output", json!({ "output": {} }))]).await;
    assert_eq!(hooks.order(&["pre_tool_call"]).len(), 2);
    assert_eq!(ended(&hooks), ["emit_output", "read_note"]);
    // Nobody has such a tool, so the run fails before the other one starts.
    run(&world, &hooks, vec![("no_such_tool", json!({})), note()]).await;
    assert_eq!(hooks.order(&["pre_tool_call"]).len(), 4);
    assert_eq!(ended(&hooks)[2..], ["no_such_tool", "read_note"]);
    assert_eq!(tool.runs(), 0);
}

#[tokio::test]
async fn a_call_that_is_refused_unread_neither_begins_nor_ends() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_hooks(&hooks)).await;
    let id = world.session().await;
    let unreadable = Reply::tool_call("todo", Value::String("{\"todos\":".to_owned()));
    world.model.script([unreadable, Reply::text("Done.")]);
    world.turn(&id, "go").await;
    hooks.wait_for("on_session_end", 1).await;
    assert_eq!(hooks.order(&["pre_tool_call", "post_tool_call"]), [""; 0]);
}

#[tokio::test]
async fn hooks_do_not_hear_of_calls_that_were_cut_or_declined() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_hooks(&hooks)).await;
    let id = world.session().await;
    let call = |arguments| Reply::text("Let me see.").and_tool_call("todo", arguments);
    let cut = [json!({}), json!("{\"todos\": [")].map(|arguments| call(arguments).stop(Stop::MaxTokens));
    world.model.script(cut.into_iter().chain([Reply::text("Done.")]));
    world.turn(&id, "go").await;
    world.model.script([call(json!({ "todos": [] })).stop(Stop::Refusal)]);
    world.turn(&id, "go on").await;
    hooks.wait_for("on_session_end", 2).await;
    assert_eq!(hooks.order(&["pre_tool_call", "post_tool_call"]), [""; 0]);
}

#[tokio::test]
async fn an_interrupt_while_ends_are_told_loses_none_of_them() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_hooks(&hooks)).await;
    let custom = |name: &str| json!({ "type": "custom_tool", "name": name });
    let id = world.session_with(json!({ "tools": [custom("one"), custom("two"), custom("three")] })).await;
    let calls = ["one", "two", "three"].map(|name| (name, json!({})));
    world.model.script([Reply::tool_calls(calls)]);
    let mut follower = world.follow(&id, Start::Now).await;
    world.message(&id, "go").await.unwrap();
    follower.until_idle().await;
    hooks.on("post_tool_call", Do::Hang);
    let pending = world.pending(&id).await.into_iter();
    let answers = pending.map(|call| {
        let (tool_use_id, content) = (call.parse().unwrap(), vec![Block::text("done")]);
        UserEvent::CustomToolResult(CustomToolResult { tool_use_id, content, is_error: false })
    });
    world.engine.send(&tenant(), &id, answers.collect()).await.unwrap();
    hooks.wait_for("post_tool_call", 1).await;
    hooks.behave();
    world.send(&id, UserEvent::Interrupt(UserInterrupt { message: None })).await.unwrap();
    hooks.wait_for("on_session_end", 1).await;
    assert_eq!(ended(&hooks), ["one", "two", "three"]);
}

#[tokio::test]
async fn what_comes_in_place_of_an_answer_denies_nothing_that_nobody_was_asked_to_allow() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_hooks(&hooks)).await;
    let id = world.session().await;
    let question = ("clarify", json!({ "question": "Which?" }));
    let secret = ("request_secret", json!({ "name": "TOKEN", "prompt": "Please." }));
    world.model.script([Reply::tool_calls([question, secret]), Reply::text("Done.")]);
    let mut follower = world.follow(&id, Start::Now).await;
    world.message(&id, "go").await.unwrap();
    follower.until_idle().await;
    let pending = world.pending(&id).await.into_iter();
    let answers = pending.map(|call| {
        let (tool_use_id, content) = (call.parse().unwrap(), vec![Block::text("no")]);
        UserEvent::ToolResult(CustomToolResult { tool_use_id, content, is_error: false })
    });
    world.engine.send(&tenant(), &id, answers.collect()).await.unwrap();
    follower.until_idle().await;
    hooks.wait_for("on_session_end", 1).await;
    assert_eq!(ended(&hooks), ["clarify", "request_secret"]);
    assert_eq!(hooks.order(&["pre_approval_request", "post_approval_response"]), [""; 0]);
}
