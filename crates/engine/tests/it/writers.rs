//! One writer per session: whoever is stale is refused, and the session goes on.

use petasos_core::event::{Payload, StopReason, TitleSource, Titled, ToolEffect};
use petasos_core::ids::SessionId;
use petasos_core::step::{Change, Input, Opening, step};
use petasos_engine::{Error, Start};
use petasos_store::{Append, EventLog, Outbox};
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Gate, Reply, within};
use serde_json::json;

use crate::world::{Setup, World, check_log, last_stop, message, said, steer, tenant};

/// Appends what comes of an input behind the actor's back.
async fn append_behind(world: &World, id: &SessionId, input: Input, now: jiff::Timestamp) {
    let mut state = world.detail(id).await.state;
    let expected_sequence = state.view.last_sequence;
    let events = step(&state, input, &world.setup.limits, now).unwrap();
    events.iter().for_each(|event| state.apply(event));
    let append = Append {
        session_id: id.clone(),
        expected_sequence,
        events,
        view: state.view,
        checkpoint: None,
        outbox: Outbox::default(),
    };
    world.store.append(append).await.unwrap();
}

/// Appends a title behind the actor's back.
async fn write_behind(world: &World, id: &SessionId) {
    let titled = Titled { title: Some("Behind".to_owned()), source: TitleSource::User };
    let change = Input::Change(Change { title: Some(titled), ..Change::default() });
    append_behind(world, id, change, jiff::Timestamp::now()).await;
}

/// Appends the opening of a turn as it was hours ago.
pub(crate) async fn open_turn_long_ago(world: &World, id: &SessionId) {
    let now = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(5);
    let input =
        Input::User { events: vec![message("go")], said_so_far: String::new(), opening: Opening::default() };
    append_behind(world, id, input, now).await;
}

#[tokio::test]
async fn a_stale_actor_refuses_one_send_and_the_next_one_works() {
    let world = World::new().await;
    let id = world.session().await;
    let gate = Gate::new();
    world.model.script([Reply::text("Never heard").gate(&gate), Reply::text("Hello.")]);
    let mut reader = world.follow(&id, Start::After(0)).await;
    world.message(&id, "go").await.unwrap();
    within("the model call", gate.reached()).await;
    write_behind(&world, &id).await;
    let refused = world.send(&id, steer("one")).await;
    assert!(matches!(refused, Err(Error::Store(petasos_store::Error::Stale { .. }))), "{refused:?}");
    world.send(&id, steer("two")).await.unwrap();
    let items = reader.until_idle().await;
    assert_eq!(last_stop(&items), &StopReason::end_turn());
    let log = world.log(&id).await;
    check_log(&log);
    let durable = items.iter().filter(|item| matches!(item, petasos_engine::Item::Durable(_))).count();
    assert_eq!(durable, log.len(), "the reader saw what was written behind the actor too");
    assert!(!said(&log).contains(&"Never heard"), "an answer to a stale call is not kept");
    assert_eq!(log.iter().filter(|event| matches!(event.payload, Payload::UserSteer(_))).count(), 1);
}

#[tokio::test]
async fn a_stale_answer_is_refused_and_the_turn_goes_on() {
    let tool = CountingTool::new("write_note", ToolEffect::SideEffect).held_up();
    let world = World::with(Setup::default().with_tool(&tool)).await;
    let id = world.trusting_session().await;
    world.model.script([Reply::tool_call("write_note", json!({})), Reply::text("I will check.")]);
    let mut reader = world.follow(&id, Start::Now).await;
    world.message(&id, "go").await.unwrap();
    tool.wait_for_start().await;
    write_behind(&world, &id).await;
    tool.let_one_finish();
    world.store.wait_for_failures(1).await;
    // Whoever comes first wakes the session again: this, or the engine by itself.
    world.asleep().await;
    world.send(&id, steer("go on")).await.unwrap();
    assert_eq!(last_stop(&reader.until_idle().await), &StopReason::end_turn());
    let log = world.log(&id).await;
    check_log(&log);
    assert_eq!(tool.runs(), 1, "its outcome is unknown, and it is not run again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_engines_on_one_session_never_fork_its_log() {
    let tool = CountingTool::new("write_note", ToolEffect::SideEffect);
    let world = World::with(Setup::default().with_tool(&tool)).await;
    let other = world.second_engine();
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
    let id = world.session_with(json!({ "model": "demo/fast", "tools": tools })).await;
    let mut accepted = 0;
    for turn in 0..20 {
        let text = format!("call write_note {{\"text\": \"{turn}\"}}");
        let tenant = tenant();
        let (one, two) = tokio::join!(
            world.engine.send(&tenant, &id, vec![message(&text)]),
            other.send(&tenant, &id, vec![message(&text)]),
        );
        accepted += usize::from(one.is_ok()) + usize::from(two.is_ok());
        // Either engine can end the turn; wake both until it is over.
        within("the turn to end", async {
            while world.detail(&id).await.state.turn.is_some() {
                for engine in [&world.engine, &other] {
                    drop(engine.send(&tenant, &id, vec![steer("go on")]).await);
                }
            }
        })
        .await;
    }
    other.shutdown(petasos_engine::Grace::NONE).await;
    let log = world.log(&id).await;
    check_log(&log);
    let messages = log.iter().filter(|event| matches!(event.payload, Payload::UserMessage(_))).count();
    assert_eq!(messages, accepted, "what was accepted is in the log, once");
    let uses = log.iter().filter(|event| matches!(event.payload, Payload::ToolUse(_))).count();
    assert!(tool.runs() <= uses, "no call runs twice: {} runs of {uses}", tool.runs());
}
