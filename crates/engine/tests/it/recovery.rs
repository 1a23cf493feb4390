//! Engines that are stopped at every point of a turn, and started again.

use petasos_core::event::{Block, ClarifyResult, CustomToolResult, Payload, StopReason, ToolEffect, Verdict};
use petasos_core::ids::SessionId;
use petasos_core::session::Status;
use petasos_core::state::ActionKind;
use petasos_core::step::UserEvent;
use petasos_engine::{Item, Start};
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Gate, Reply, within};
use serde_json::json;

use crate::store::Moment;
use crate::world::{Setup, World, check_log, confirm, last_stop, results, said, tenant};

/// Calls every kind of tool at once: one that runs, one that only reads, one that asks, the application's own, and
/// a question.
const MESSAGE: &str = "call write_note {\"text\": \"a\"}\ncall read_note {\"text\": \"b\"}\n\
    call ask_first {\"text\": \"c\"}\ncall check_order {}\nask me Which one? red | blue";

struct Tools {
    write: CountingTool,
    read: CountingTool,
    ask: CountingTool,
}

async fn world() -> (World, Tools, SessionId) {
    let tools = Tools {
        write: CountingTool::new("write_note", ToolEffect::SideEffect),
        read: CountingTool::new("read_note", ToolEffect::ReadOnly),
        ask: CountingTool::new("ask_first", ToolEffect::SideEffect),
    };
    let setup = Setup::default().with_tool(&tools.write).with_tool(&tools.read).with_tool(&tools.ask);
    let world = World::with(setup).await;
    let allow = json!({ "permissionPolicy": { "type": "always_allow" } });
    let ask = json!({ "name": "ask_first", "permissionPolicy": { "type": "always_ask" } });
    let toolset = json!({ "type": "agent_toolset", "defaultConfig": allow, "configs": [ask] });
    let custom = json!({ "type": "custom_tool", "name": "check_order" });
    let id = world.session_with(json!({ "model": "demo/fast", "tools": [toolset, custom] })).await;
    (world, tools, id)
}

/// What a patient user does next: looks at the session, and goes on from what is there.
async fn next_events(world: &World, id: &SessionId, turns: usize) -> Option<Vec<UserEvent>> {
    let detail = world.detail(id).await;
    if detail.state.turn.is_some() {
        let answers = detail.state.pending().map(|action| match action.kind {
            ActionKind::ToolConfirmation => confirm(action.id, Verdict::Allow),
            ActionKind::CustomTool => UserEvent::CustomToolResult(CustomToolResult {
                tool_use_id: action.id.parse().unwrap(),
                content: vec![Block::text("shipped")],
                is_error: false,
            }),
            _ => UserEvent::ClarifyResult(ClarifyResult {
                request_id: action.id.parse().unwrap(),
                answer: "red".to_owned(),
            }),
        });
        return Some(answers.collect());
    }
    let log = world.log(id).await;
    let messages = log.iter().filter(|event| matches!(event.payload, Payload::UserMessage(_))).count();
    (messages < turns).then(|| vec![crate::world::message(MESSAGE)])
}

/// Has two turns, over as many restarts as it takes. Says whether the store stopped it.
async fn two_turns(world: &World, id: &SessionId) -> bool {
    let talk = async {
        let mut reader = world.follow(id, Start::Now).await;
        loop {
            while world.detail(id).await.state.view.status == Status::Running {
                reader.next().await;
            }
            let Some(events) = next_events(world, id, 2).await else { return };
            // One at a time, so that there are more points to stop at.
            let events = events.into_iter().take(1).collect();
            world.engine.send(&tenant(), id, events).await.unwrap();
        }
    };
    tokio::select! {
        () = within("two turns", talk) => false,
        () = world.store.stopped() => true,
    }
}

async fn check(world: &World, tools: &Tools, id: &SessionId) {
    let log = world.log(id).await;
    check_log(&log);
    assert_eq!(world.detail(id).await.state.view.stop_reason, Some(StopReason::end_turn()));
    assert_eq!(said(&log).len(), 2, "each turn has its answer, once");
    for (tool, name) in [(&tools.write, "write_note"), (&tools.ask, "ask_first")] {
        let started = log.iter().filter(|event| match &event.payload {
            Payload::ToolUse(call) => call.tool == name,
            _ => false,
        });
        assert!(tool.runs() <= started.count(), "{name} never runs twice for one call");
    }
    let unknown = results(&log).iter().filter(|text| text.contains("unknown")).count();
    assert!(tools.write.runs() + tools.ask.runs() + unknown >= 4, "what did not run is said to be unknown");
    assert!(tools.read.runs() >= 2);
    world.asleep().await;
}

/// Stops at the first append after each restart that is in `stops`, then lets everything end.
async fn survives(stops: &[(usize, Moment)]) -> bool {
    let (mut world, tools, id) = world().await;
    let mut stopped = true;
    for (number, moment) in stops {
        world.store.stop_at(*number, *moment);
        if stopped {
            stopped = two_turns(&world, &id).await;
            world = world.restart().await;
        }
    }
    assert!(!two_turns(&world, &id).await);
    check(&world, &tools, &id).await;
    stopped
}

#[tokio::test]
async fn stopped_at_every_append() {
    for moment in [Moment::Before, Moment::After] {
        let mut number = 1;
        while survives(&[(number, moment)]).await {
            number += 1;
        }
        assert!(number > 12, "a script of two turns has more appends than {number}");
    }
}

#[tokio::test]
async fn stopped_again_and_again() {
    for number in 1..=6 {
        survives(&[(number, Moment::After), (1, Moment::Before), (2, Moment::After), (1, Moment::After)])
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stopped_in_full_flight() {
    for stops in [[1, 4], [2, 3], [3, 5], [4, 2], [5, 1], [7, 3], [9, 2], [11, 1]] {
        let (mut world, tools, id) = world().await;
        for appends in stops {
            tokio::select! {
                _ = two_turns(&world, &id) => {}
                // Wherever everything else is just then.
                () = world.store.wait_for_appends(appends) => {}
            }
            world = world.restart().await;
        }
        assert!(!two_turns(&world, &id).await);
        check(&world, &tools, &id).await;
    }
}

#[tokio::test]
async fn stopped_after_every_word() {
    for words in 0..6 {
        let world = World::new().await;
        let id = world.session().await;
        let gate = Gate::new();
        let half =
            Reply::text("one two three four five ".split_inclusive(' ').take(words).collect::<String>());
        world.model.script([half.gate(&gate), Reply::text("All of it.")]);
        world.message(&id, "go").await.unwrap();
        within("the model call", gate.reached()).await;
        let world = world.restart().await;
        let mut reader = world.follow(&id, Start::After(0)).await;
        let items = reader.until_idle().await;
        assert_eq!(last_stop(&items), &StopReason::end_turn());
        let log = world.log(&id).await;
        check_log(&log);
        assert_eq!(said(&log), ["All of it."]);
        let first = items.iter().find_map(|item| match item {
            Item::Live(live) => Some(live.reset),
            Item::Durable(_) => None,
        });
        assert!(first.unwrap_or(true), "what an earlier reader was shown is taken back");
    }
}

#[tokio::test]
async fn stopped_between_start_and_end_of_tools() {
    let write = CountingTool::new("write_note", ToolEffect::SideEffect).held_up();
    let read = CountingTool::new("read_note", ToolEffect::ReadOnly).held_up();
    let mut world = World::with(Setup::default().with_tool(&write).with_tool(&read)).await;
    let id = world.trusting_session().await;
    let calls = [("write_note", json!({})), ("read_note", json!({ "text": "milk" }))];
    world.model.script([Reply::tool_calls(calls), Reply::text("Done.")]);
    world.message(&id, "go").await.unwrap();
    write.wait_for_start().await;
    for _ in 0..3 {
        read.wait_for_start().await;
        world = world.restart().await;
    }
    read.wait_for_start().await;
    read.let_one_finish();
    let items = world.follow(&id, Start::After(0)).await.until_idle().await;
    assert_eq!(last_stop(&items), &StopReason::end_turn());
    let log = world.log(&id).await;
    check_log(&log);
    assert_eq!((write.runs(), read.runs()), (1, 4));
    assert!(results(&log)[0].contains("outcome is unknown"));
    assert_eq!(results(&log)[1], "milk");
}

#[tokio::test]
async fn time_in_which_nothing_ran_does_not_count_against_a_turn() {
    let mut setup = Setup::default();
    setup.limits.turn_time = std::time::Duration::from_secs(600);
    let world = World::with(setup).await;
    let id = world.session().await;
    crate::writers::open_turn_long_ago(&world, &id).await;
    world.model.script([Reply::text("Better late than never.")]);
    let world = world.restart().await;
    let items = world.follow(&id, Start::After(0)).await.until_idle().await;
    assert_eq!(last_stop(&items), &StopReason::end_turn());
}
