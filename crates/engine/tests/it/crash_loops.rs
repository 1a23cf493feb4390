//! Work that is under way each time that the process dies.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use petasos_core::delivery::DeliveryStatus;
use petasos_core::event::{Payload, StopReason, ToolEffect, UserInterrupt};
use petasos_core::ids::{RoutineId, SessionId};
use petasos_core::recovery::WorkKind;
use petasos_core::routine::RoutineRecord;
use petasos_core::session::Status;
use petasos_core::step::UserEvent;
use petasos_engine::{RecoveryTimes, Start};
use petasos_store::{DeliveryFilter, PageRequest, RoutineStore};
use petasos_testkit::receiver::{Receiver, Reception};
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Gate, Reply, within};
use petasos_tools::{SessionWorkspace, Workspaces};
use serde_json::json;

use crate::world::{Setup, World, last_stop, message, results, said, tenant};

/// A server that has not been up for long enough to try anything.
const NOT_YET: RecoveryTimes =
    RecoveryTimes { proven: Duration::from_secs(3600), settled: Duration::from_secs(3600) };
/// A server that tries at once what was set aside.
const AT_ONCE: RecoveryTimes =
    RecoveryTimes { proven: Duration::from_secs(3600), settled: Duration::from_millis(1) };

/// An engine that has recorded its start.
async fn started(setup: Setup) -> World {
    let world = World::with(setup).await;
    world.engine.recover().await.unwrap();
    world
}

fn kinds(world: &World) -> Vec<WorkKind> {
    world.engine.set_aside().iter().map(|work| work.kind).collect()
}

async fn until_nothing_is_set_aside(world: &World) {
    within("everything to succeed", async {
        while !world.engine.set_aside().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Others are served, whatever is set aside.
async fn serves_others(world: &World) {
    let id = world.session().await;
    world.model.when("somebody else", [Reply::text("Here you are.")]);
    world.message(&id, "somebody else").await.unwrap();
    let items = world.follow(&id, Start::After(0)).await.until_idle().await;
    assert_eq!(last_stop(&items), &StopReason::end_turn());
}

/// A session whose model call was under way at three crashes.
async fn model_call_of_three_crashes(gate: &Gate) -> (World, SessionId) {
    let mut world = started(Setup { recovery_times: NOT_YET, ..Setup::default() }).await;
    let id = world.session().await;
    for _ in 0..3 {
        world.model.when("go", [Reply::empty().gate(gate)]);
    }
    world.message(&id, "go").await.unwrap();
    for crash in 1..=3 {
        within("the model call", world.model.wait_for_requests(crash)).await;
        assert!(world.engine.set_aside().is_empty());
        world = world.crash().await;
    }
    (world, id)
}

#[tokio::test]
async fn a_read_only_call_is_not_made_after_three_crashes() {
    let read = CountingTool::new("read_note", ToolEffect::ReadOnly).held_up();
    let setup = Setup { recovery_times: NOT_YET, ..Setup::default() }.with_tool(&read);
    let mut world = started(setup).await;
    let id = world.trusting_session().await;
    world.model.script([Reply::tool_call("read_note", json!({})), Reply::text("Then not.")]);
    world.message(&id, "go").await.unwrap();
    for _ in 0..3 {
        read.wait_for_start().await;
        world = world.crash().await;
    }
    let items = world.follow(&id, Start::After(0)).await.until_idle().await;
    assert_eq!(last_stop(&items), &StopReason::end_turn());
    let log = world.log(&id).await;
    crate::world::check_log(&log);
    assert!(results(&log)[0].contains("outcome is unknown"), "{:?}", results(&log));
    assert_eq!((read.runs(), said(&log)), (3, vec!["Then not."]));
    let aside = world.engine.set_aside();
    let call = log.iter().find_map(|event| match &event.payload {
        Payload::ToolUse(call) => Some(call.id.to_string()),
        _ => None,
    });
    assert_eq!((aside.len(), aside[0].kind, &aside[0].id), (1, WorkKind::ToolCall, &call));
    assert_eq!(aside[0].session_id, Some(id));
    serves_others(&world).await;
}

#[tokio::test]
async fn a_model_call_waits_and_is_then_tried() {
    let gate = Gate::new();
    let (world, id) = model_call_of_three_crashes(&gate).await;
    assert_eq!(kinds(&world), [WorkKind::ModelCall]);
    serves_others(&world).await;
    let log = world.log(&id).await;
    assert!(log.iter().any(|event| matches!(event.payload, Payload::WorkSetAside(_))), "{log:#?}");
    assert_eq!(world.detail(&id).await.state.view.status, Status::Running);
    // A look at it, and a request that does not end the turn, do not start it.
    world.send(&id, crate::world::steer("please")).await.unwrap();
    world.asleep().await;
    assert_eq!(world.model.requests().len(), 4);

    // A clean stop forgets nothing that is set aside.
    let world = world.restart().await;
    assert_eq!(kinds(&world), [WorkKind::ModelCall]);
    world.model.script([Reply::text("At last."), Reply::text("And what you said.")]);
    let world = world.restart_with(|setup| setup.recovery_times = AT_ONCE).await;
    let items = world.follow(&id, Start::After(0)).await.until_idle().await;
    assert_eq!(last_stop(&items), &StopReason::end_turn());
    assert_eq!(said(&world.log(&id).await), ["At last.", "And what you said."]);
    until_nothing_is_set_aside(&world).await;
}

#[tokio::test]
async fn a_turn_that_is_interrupted_is_not_set_aside_any_more() {
    let (world, id) = model_call_of_three_crashes(&Gate::new()).await;
    let interrupt = UserInterrupt { message: None };
    world.send(&id, UserEvent::Interrupt(interrupt)).await.unwrap();
    assert_eq!(world.detail(&id).await.state.view.status, Status::Idle);
    until_nothing_is_set_aside(&world).await;
    let world = world.crash().await;
    assert!(world.engine.set_aside().is_empty());
}

#[tokio::test]
async fn a_turn_that_kills_the_process_alone_ends_with_an_error() {
    let gate = Gate::new();
    let (world, id) = model_call_of_three_crashes(&gate).await;
    world.model.when("go", [Reply::empty().gate(&gate)]);
    let world = world.restart_with(|setup| setup.recovery_times = AT_ONCE).await;
    within("the model call", world.model.wait_for_requests(4)).await;
    let world = world.crash().await;
    let items = world.follow(&id, Start::After(0)).await.until_idle().await;
    match last_stop(&items) {
        StopReason::Error { code, message } => {
            assert_eq!(code, "crash_loop");
            assert!(message.contains("given up"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert!(world.engine.set_aside()[0].given_up);
    // It is listed until the session works again.
    let world = world.restart().await;
    assert!(world.engine.set_aside()[0].given_up);
    world.model.when("again", [Reply::text("Fine.")]);
    world.message(&id, "again").await.unwrap();
    world.asleep().await;
    assert_eq!(said(&world.log(&id).await), ["Fine."]);
    until_nothing_is_set_aside(&world).await;
}

#[tokio::test]
async fn a_turn_whose_end_kills_the_process_is_ended_without_its_log() {
    let gate = Gate::new();
    let (world, id) = model_call_of_three_crashes(&gate).await;
    world.model.when("go", [Reply::empty().gate(&gate)]);
    let world = world.restart_with(|setup| setup.recovery_times = AT_ONCE).await;
    within("the model call", world.model.wait_for_requests(4)).await;
    world.store.lose_the_end();
    // The next process dies before it can write the end.
    let world = world.crash_before_its_first_append().await;
    let detail = world.detail(&id).await;
    assert_eq!(detail.state.view.status, Status::Idle);
    assert!(
        matches!(detail.state.view.stop_reason, Some(StopReason::Error { code, .. }) if code == "crash_loop")
    );
    world.model.when("again", [Reply::text("Fine.")]);
    world.message(&id, "again").await.unwrap();
    world.asleep().await;
    assert_eq!(said(&world.log(&id).await), ["Fine."]);
}

#[tokio::test]
async fn a_clean_stop_counts_from_the_beginning() {
    let gate = Gate::new();
    let mut world = started(Setup { recovery_times: NOT_YET, ..Setup::default() }).await;
    let id = world.session().await;
    world.model.script((0..6).map(|_| Reply::empty().gate(&gate)));
    world.message(&id, "go").await.unwrap();
    for (request, is_crash) in (1..).zip([true, true, false, true, true, true]) {
        within("the model call", world.model.wait_for_requests(request)).await;
        world = if is_crash { world.crash().await } else { world.restart().await };
    }
    assert_eq!(kinds(&world), [WorkKind::ModelCall]);
}

#[tokio::test]
async fn a_delivery_that_kills_the_process_alone_is_dead_and_can_be_replayed() {
    let receiver = Receiver::start().await;
    let url = Some(receiver.url.clone());
    let mut world =
        started(Setup { event_webhook_url: url, recovery_times: NOT_YET, ..Setup::default() }).await;
    let id = world.session().await;
    receiver.answer("/hook", Reception::Silence);
    world.model.when("go", [Reply::text("Done.")]);
    world.message(&id, "go").await.unwrap();
    for crash in 1..=3 {
        receiver.wait_for(crash).await;
        world.asleep().await;
        world = world.crash().await;
    }
    assert_eq!(kinds(&world), [WorkKind::Delivery]);
    // Deliveries of other sessions go on.
    let other = world.session().await;
    world.model.when("somebody else", [Reply::text("Here.")]);
    world.message(&other, "somebody else").await.unwrap();
    let of_other =
        |request: &petasos_testkit::receiver::Received| request.header("x-session-id") == other.as_str();
    receiver.wait_until(|received| received.iter().any(of_other)).await;
    world.asleep().await;

    let world = world.restart_with(|setup| setup.recovery_times = AT_ONCE).await;
    let of_it =
        |request: &&petasos_testkit::receiver::Received| request.header("x-session-id") == id.as_str();
    receiver.wait_until(|received| received.iter().filter(of_it).count() > 3).await;
    let world = world.crash().await;
    let filter = DeliveryFilter { status: Some(DeliveryStatus::Dead), ..DeliveryFilter::default() };
    let dead =
        world.engine.deliveries(&tenant(), filter, PageRequest { after: None, limit: 9 }).await.unwrap();
    assert_eq!(dead.items.len(), 1, "{dead:?}");
    assert!(world.engine.set_aside()[0].given_up);
    receiver.answer("/hook", Reception::Status(200));
    world.engine.replay_delivery(&tenant(), &dead.items[0].id).await.unwrap();
    until_nothing_is_set_aside(&world).await;
}

/// A routine that missed a due time which is made up for at each start.
async fn missed_schedule(world: &World) -> RoutineId {
    let schedule = json!({ "cron": "0 * * * *", "missed": "latest" });
    let definition = json!({ "agent": { "model": "openai/scripted" }, "schedule": schedule });
    let id: RoutineId = "hourly".parse().unwrap();
    let long_ago = Timestamp::now() - SignedDuration::from_hours(5);
    let routine = RoutineRecord {
        id: id.clone(),
        tenant: tenant(),
        definition: serde_json::from_value(definition.clone()).unwrap(),
        created_at: long_ago,
        updated_at: long_ago,
        scheduled_through: long_ago,
    };
    world.engine.put_routine(&tenant(), &id, serde_json::from_value(definition).unwrap()).await.unwrap();
    world.store.put_routine(routine).await.unwrap();
    id
}

#[tokio::test]
async fn a_schedule_waits_and_is_given_up_until_its_routine_changes() {
    let mut world = started(Setup { recovery_times: NOT_YET, ..Setup::default() }).await;
    let id = missed_schedule(&world).await;
    world = world.crash_with(|setup| setup.store_holds_runs = true).await;
    for _ in 0..2 {
        within("a run to be added", world.store.holds_a_run()).await;
        assert!(world.engine.set_aside().is_empty());
        world = world.crash().await;
    }
    assert_eq!(kinds(&world), [WorkKind::Schedule]);
    assert_eq!(world.engine.set_aside()[0].id.as_deref(), Some("hourly"));
    serves_others(&world).await;
    let world = world.restart_with(|setup| setup.recovery_times = AT_ONCE).await;
    within("a run to be added", world.store.holds_a_run()).await;
    let world = world.crash_with(|setup| setup.store_holds_runs = false).await;
    assert!(world.engine.set_aside()[0].given_up);
    let schedule = json!({ "cron": "0 0 1 1 *" });
    let definition = json!({ "agent": { "model": "openai/scripted" }, "schedule": schedule });
    world.engine.put_routine(&tenant(), &id, serde_json::from_value(definition).unwrap()).await.unwrap();
    until_nothing_is_set_aside(&world).await;
}

#[tokio::test]
async fn a_removal_waits_and_is_then_tried() {
    let directory = tempfile::tempdir().unwrap();
    let tools = petasos_testkit::tools::builtin(directory.path().to_owned());
    let workspaces = Workspaces::new(directory.path().to_owned());
    // Of a session that is gone.
    let own = SessionWorkspace {
        tenant: tenant(),
        agent_id: "agent_1".parse().unwrap(),
        session_id: "session_0000000000000000000000000000000f".parse().unwrap(),
    };
    let leave = || {
        std::fs::create_dir_all(workspaces.path_of(&own)).unwrap();
        workspaces.note_removal(&own).unwrap();
    };
    // What the first process removes shows that it has looked, and does not look again.
    leave();
    let mut world = started(Setup { tools, recovery_times: NOT_YET, ..Setup::default() }).await;
    for crash in 1..=3 {
        within("the files to be removed", async {
            while !workspaces.noted_removals().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        // As if the process had died before it got that far.
        leave();
        world = world.crash().await;
        assert_eq!(world.engine.set_aside().len(), usize::from(crash == 3), "{crash}");
    }
    assert_eq!(kinds(&world), [WorkKind::Removal]);
    serves_others(&world).await;
    let world = world.restart_with(|setup| setup.recovery_times = AT_ONCE).await;
    until_nothing_is_set_aside(&world).await;
    assert!(workspaces.noted_removals().is_empty() && !workspaces.path_of(&own).exists());
}

#[tokio::test]
async fn an_ordinary_start_reads_and_records_nothing_about_work() {
    let world = started(Setup::default()).await;
    let id = world.session().await;
    world.engine.send(&tenant(), &id, vec![message("hello")]).await.unwrap();
    let world = world.restart().await.restart().await.restart().await.restart().await;
    assert!(world.engine.set_aside().is_empty());
}
