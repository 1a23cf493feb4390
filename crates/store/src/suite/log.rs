//! Checks of [`EventLog`](crate::EventLog): what is read back.

use petasos_core::event::{Payload, StatusIdle, StopReason};
use petasos_core::ids::TenantId;
use petasos_core::session::{SessionView, Status};
use serde_json::{Value, json};

use super::make::{agent, agent_message, append, at, session, session_id, tagged, user_message, whole};
use crate::{Asleep, Checkpoint, EventBatch, EventQuery, Order, Store};

/// A payload in its stored shape, which changes less than the Rust one.
fn payload(value: Value) -> Payload {
    serde_json::from_value(value).unwrap()
}

fn model_started(takes_up: &[u64]) -> Payload {
    payload(json!({ "type": "span.model_started", "call": 1, "takes_up": takes_up }))
}

fn sequences(events: &[petasos_core::Event]) -> Vec<u64> {
    events.iter().map(|event| event.sequence).collect()
}

pub async fn appended_events_are_read_as_they_were_given(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    let input = json!({ "path": "a\"b\n\u{0}\u{1f600}", "tenth": 0.1, "tiny": 5e-324, "third": 1.0 / 3.0,
        "large": 18446744073709551615u64, "deep": [[{}]], "none": null });
    let tool_use = payload(json!({ "type": "agent.tool_use", "id": "toolu_1", "tool": "read_file",
        "input": input, "effect": "read_only", "requires_action": true }));
    let long = "ü".repeat(200_000);
    let payloads = vec![user_message("hello"), Payload::StatusRunning {}, tool_use, agent_message(&long)];
    let given = append("one", 0, payloads);
    store.append(given.clone()).await.unwrap();
    assert_eq!(store.events(&session_id("one"), whole()).await.unwrap().events, given.events);
}

pub async fn a_log_has_no_gaps(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    let mut last = 0;
    for count in [1, 3, 2, 5] {
        store.append(append("one", last, vec![agent_message("text"); count])).await.unwrap();
        last += u64::try_from(count).unwrap();
    }
    let events = store.events(&session_id("one"), whole()).await.unwrap().events;
    assert_eq!(sequences(&events), (1..=last).collect::<Vec<_>>());
}

pub async fn the_view_is_replaced(store: &impl Store) {
    let mut record = tagged("one", 0, json!({ "old": 1 }));
    record.view.title = Some("Old".into());
    store.create_session(record.clone()).await.unwrap();
    let mut append = append("one", 0, vec![agent_message("text")]);
    append.view = SessionView {
        title: None,
        metadata: serde_json::from_value(json!({ "new": [2] })).unwrap(),
        status: Status::Running,
        stop_reason: Some(StopReason::Error { code: "c".into(), message: "m".into() }),
        usage: petasos_core::model::Usage {
            input_tokens: 1,
            output_tokens: 2,
            cached_input_tokens: 3,
            ..Default::default()
        },
        model_calls: 4,
        updated_at: at(5),
        archived_at: Some(at(6)),
        last_sequence: 1,
    };
    record.view = append.view.clone();
    store.append(append).await.unwrap();
    let found = store.session(&record.header.tenant, &record.header.id).await.unwrap();
    assert_eq!(found, Some(record));
}

pub async fn a_part_of_a_log_is_read_in_either_order(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    store.append(append("one", 0, vec![agent_message("text"); 9])).await.unwrap();
    let check = async |after: Option<u64>, before: Option<u64>, limit: usize, expected: &[u64]| {
        let mut expected = expected.to_vec();
        let mut query = EventQuery { after, before, limit: 1000, ..whole() };
        let ascending = store.events(&session_id("one"), query.clone()).await.unwrap().events;
        assert_eq!(sequences(&ascending), expected, "{query:?}");
        query.limit = limit;
        let ascending = store.events(&session_id("one"), query.clone()).await.unwrap().events;
        assert_eq!(sequences(&ascending), expected[..limit.min(expected.len())], "{query:?}");
        expected.reverse();
        query.order = Order::Descending;
        let descending = store.events(&session_id("one"), query.clone()).await.unwrap().events;
        assert_eq!(sequences(&descending), expected[..limit.min(expected.len())], "{query:?}");
    };
    check(None, None, 3, &[1, 2, 3, 4, 5, 6, 7, 8, 9]).await;
    check(Some(0), Some(10), 9, &[1, 2, 3, 4, 5, 6, 7, 8, 9]).await;
    check(Some(4), None, 2, &[5, 6, 7, 8, 9]).await;
    check(None, Some(4), 2, &[1, 2, 3]).await;
    check(Some(2), Some(6), 10, &[3, 4, 5]).await;
    check(Some(5), Some(6), 10, &[]).await;
    check(Some(9), None, 10, &[]).await;
    check(None, Some(0), 10, &[]).await;
    check(Some(u64::MAX), Some(u64::MAX), 10, &[]).await;
    check(None, Some(u64::MAX), 0, &[1, 2, 3, 4, 5, 6, 7, 8, 9]).await;
}

pub async fn events_that_are_read_at_once_are_bounded_in_bytes(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    let texts = ["x".repeat(10), "x".repeat(2000), "x".repeat(10), "x".repeat(10)];
    store.append(append("one", 0, texts.iter().map(|text| agent_message(text)).collect())).await.unwrap();
    let read = async |after: u64, limit: usize, max_bytes: usize| {
        let query = EventQuery { after: Some(after), limit, max_bytes, ..whole() };
        let batch = store.events(&session_id("one"), query).await.unwrap();
        (sequences(&batch.events), batch.has_more)
    };
    assert_eq!(read(0, 9, 1000).await, (vec![1], true));
    assert_eq!(read(1, 9, 1000).await, (vec![2], true), "one is always read");
    assert_eq!(read(2, 9, 1000).await, (vec![3, 4], false));
    assert_eq!(read(2, 9, 0).await, (vec![3], true));
    assert_eq!(read(0, 2, usize::MAX).await, (vec![1, 2], true));
    assert_eq!(read(2, 2, usize::MAX).await, (vec![3, 4], false));
    assert_eq!(read(4, 2, usize::MAX).await, (vec![], false));
}

pub async fn events_are_found_by_type(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    let payloads = vec![
        user_message("a"),
        Payload::StatusRunning {},
        agent_message("b"),
        user_message("c"),
        agent_message("d"),
    ];
    store.append(append("one", 0, payloads)).await.unwrap();
    let find = async |types: &[&str], order: Order, limit: usize| {
        let types = types.iter().map(|name| (*name).to_owned()).collect();
        let query = EventQuery { types, order, limit, ..whole() };
        sequences(&store.events(&session_id("one"), query).await.unwrap().events)
    };
    assert_eq!(find(&["user.message"], Order::Ascending, 9).await, [1, 4]);
    assert_eq!(find(&["user.message", "agent.message"], Order::Ascending, 3).await, [1, 3, 4]);
    assert_eq!(find(&["agent.message"], Order::Descending, 1).await, [5]);
    assert!(find(&["no.such", "it's"], Order::Ascending, 9).await.is_empty());
}

pub async fn what_changes_other_events_is_found_by_itself(store: &impl Store) {
    for id in ["one", "two"] {
        store.create_session(session(id, 0)).await.unwrap();
    }
    assert!(store.amendments(&session_id("one")).await.unwrap().is_empty());
    let deleted = payload(json!({ "type": "session.events_deleted", "from": 1 }));
    let noted =
        payload(json!({ "type": "session.event_metadata_changed", "sequence": 3, "metadata": { "a": 1 } }));
    let given = append("one", 0, vec![user_message("x"), deleted, user_message("y"), noted]);
    store.append(given.clone()).await.unwrap();
    let found = store.amendments(&session_id("one")).await.unwrap();
    assert_eq!(found, [given.events[1].clone(), given.events[3].clone()]);
    assert!(store.amendments(&session_id("two")).await.unwrap().is_empty());
    assert!(store.amendments(&session_id("none")).await.unwrap().is_empty());
}

pub async fn user_events_are_taken_up_once(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    store
        .append(append("one", 0, vec![user_message("a"), user_message("b"), user_message("c")]))
        .await
        .unwrap();
    let first = append("one", 3, vec![model_started(&[1, 3])]);
    store.append(first.clone()).await.unwrap();
    let idle = StatusIdle { stop_reason: StopReason::end_turn(), takes_up: vec![1] };
    store.append(append("one", 4, vec![Payload::StatusIdle(idle)])).await.unwrap();
    let events = store.events(&session_id("one"), whole()).await.unwrap().events;
    let taken_up = Some(first.events[0].created_at);
    let processed: Vec<_> = events.iter().map(|event| event.processed_at).collect();
    assert_eq!(processed[..3], [taken_up, None, taken_up]);
}

pub async fn an_event_may_take_up_another_of_the_same_append(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    let given = append("one", 0, vec![user_message("a"), model_started(&[1])]);
    store.append(given.clone()).await.unwrap();
    let events = store.events(&session_id("one"), whole()).await.unwrap().events;
    assert_eq!(events[0].processed_at, Some(given.events[1].created_at));
}

pub async fn the_newest_checkpoint_counts(store: &impl Store) {
    let id = session_id("one");
    store.create_session(session("one", 0)).await.unwrap();
    assert_eq!(store.checkpoint(&id).await.unwrap(), None);
    for (after, state) in [(0, Some(vec![1])), (2, Some(vec![0, 255, 2])), (4, None)] {
        let mut append = append("one", after, vec![agent_message("text"); 2]);
        append.checkpoint = state;
        store.append(append).await.unwrap();
    }
    let expected = Checkpoint { sequence: 4, state: vec![0, 255, 2] };
    assert_eq!(store.checkpoint(&id).await.unwrap(), Some(expected));
}

pub async fn a_session_is_woken_with_what_came_after_its_checkpoint(store: &impl Store) {
    let (id, tenant) = (session_id("one"), TenantId::default_tenant());
    let helper = agent("default", "helper", 0);
    store.create_session(session("one", 0)).await.unwrap();
    let fresh = store.asleep(&tenant, &id, 10).await.unwrap().unwrap();
    let nothing =
        Asleep { record: session("one", 0), agent: None, checkpoint: None, events: EventBatch::default() };
    assert_eq!(fresh, nothing);
    store.create_agent(helper.clone()).await.unwrap();
    for (after, state) in [(0, Some(vec![1])), (2, None)] {
        let mut append = append("one", after, vec![agent_message("text"); 2]);
        append.checkpoint = state;
        store.append(append).await.unwrap();
    }
    let woken = store.asleep(&tenant, &id, 10).await.unwrap().unwrap();
    assert_eq!(woken.record.view.last_sequence, 4);
    assert_eq!(woken.agent, Some(helper));
    assert_eq!(woken.checkpoint, Some(Checkpoint { sequence: 2, state: vec![1] }));
    assert_eq!((sequences(&woken.events.events), woken.events.has_more), (vec![3, 4], false));
    let woken = store.asleep(&tenant, &id, 1).await.unwrap().unwrap();
    assert_eq!((sequences(&woken.events.events), woken.events.has_more), (vec![3], true));
    assert_eq!(store.asleep(&super::make::tenant("other"), &id, 10).await.unwrap(), None);
}

pub async fn a_session_that_is_gone_has_no_events(store: &impl Store) {
    assert!(store.events(&session_id("none"), whole()).await.unwrap().events.is_empty());
    assert_eq!(store.checkpoint(&session_id("none")).await.unwrap(), None);
}
