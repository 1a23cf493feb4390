//! Checks of [`DeliveryStore`](crate::DeliveryStore): which deliveries are due, and in which order.

use std::collections::HashSet;

use petasos_core::delivery::{DeliveryStatus, NewDelivery};

use super::deliveries::{append_with, attempted, callback, delivery, delivery_id, event};
use super::make::{append, at, session, user_message};
use crate::{AfterAttempt, Due, DueRequest, Outbox, Store, Undelivered};

/// Two sessions with three deliveries each: `one0`, `one1`, …
async fn two_sessions(store: &impl Store) {
    for id in ["one", "two"] {
        store.create_session(session(id, 0)).await.unwrap();
        let all = (0..3).map(|offset| event(&format!("{id}{offset}"), id, offset)).collect();
        append_with(store, id, 0, all).await;
    }
}

/// A request at a time that nothing was put off from for longer than a day.
pub(super) fn wanted(now: i64, first: usize, again: usize) -> DueRequest {
    let latest = at(now + 24 * 3600);
    DueRequest {
        now: at(now),
        first_latest: latest,
        again_latest: latest,
        first,
        again,
        busy: HashSet::new(),
    }
}

async fn due(store: &impl Store, now: i64) -> Due {
    store.due_deliveries(wanted(now, 9, 9)).await.unwrap()
}

fn ids(due: &Due) -> Vec<&str> {
    let mut ids: Vec<_> = due.deliveries.iter().map(|due| due.delivery.id.as_str()).collect();
    ids.sort_unstable();
    ids
}

pub async fn only_the_first_of_a_session_is_due(store: &impl Store) {
    two_sessions(store).await;
    let found = due(store, 9000).await;
    assert_eq!(ids(&found), ["one0", "two0"]);
    assert_eq!(found.deliveries[0].body, b"{\"offset\":0}");
    assert_eq!(delivery(store, "one1").await.next_attempt_at, None);
    store.record_attempt(attempted("one0", AfterAttempt::Delivered, 9001)).await.unwrap();
    assert_eq!(ids(&due(store, 9002).await), ["one1", "two0"]);
    store.record_attempt(attempted("one1", AfterAttempt::Delivered, 9003)).await.unwrap();
    store.record_attempt(attempted("one2", AfterAttempt::Delivered, 9004)).await.unwrap();
    assert_eq!(ids(&due(store, 9005).await), ["two0"]);
    append_with(store, "one", 1, vec![event("one3", "one", 3)]).await;
    assert_eq!(ids(&due(store, 9006).await), ["one3", "two0"]);
}

pub async fn a_failed_delivery_holds_up_its_session_and_nobody_else(store: &impl Store) {
    two_sessions(store).await;
    store.record_attempt(attempted("one0", AfterAttempt::Again(at(20_000)), 9000)).await.unwrap();
    let found = due(store, 9001).await;
    assert_eq!((ids(&found), found.next_at), (vec!["two0"], Some(at(20_000))));
    assert_eq!(ids(&due(store, 20_000).await), ["one0", "two0"]);
}

pub async fn what_a_clock_put_off_that_was_ahead_is_due(store: &impl Store) {
    two_sessions(store).await;
    store.record_attempt(attempted("one0", AfterAttempt::Again(at(500_000)), 490_000)).await.unwrap();
    assert_eq!(ids(&due(store, 499_000).await), ["two0"]);
    // The clock was set back by days.
    assert_eq!(ids(&due(store, 9000).await), ["one0", "two0"]);
    let found = store.due_deliveries(wanted(9000, 9, 0)).await.unwrap();
    assert_eq!(ids(&found), ["two0"], "there is no place for it");
}

pub async fn a_dead_delivery_lets_the_next_one_go(store: &impl Store) {
    two_sessions(store).await;
    store.record_attempt(attempted("one0", AfterAttempt::Dead, 9000)).await.unwrap();
    assert_eq!(ids(&due(store, 9001).await), ["one1", "two0"]);
}

pub async fn busy_lanes_are_left_out(store: &impl Store) {
    two_sessions(store).await;
    store.add_delivery(callback("d", "run_1", "one")).await.unwrap();
    let busy = HashSet::from(["one".to_owned()]);
    let request = DueRequest { busy, ..wanted(9000, 9, 9) };
    let found = store.due_deliveries(request).await.unwrap();
    assert_eq!(ids(&found), ["d", "two0"]);
}

pub async fn failed_deliveries_do_not_take_the_places_of_new_ones(store: &impl Store) {
    two_sessions(store).await;
    store.record_attempt(attempted("one0", AfterAttempt::Again(at(1)), 0)).await.unwrap();
    let request = |first, again| wanted(9000, first, again);
    for (first, again, expected) in
        [(1, 1, vec!["one0", "two0"]), (1, 0, vec!["two0"]), (0, 1, vec!["one0"]), (0, 0, vec![])]
    {
        let found = store.due_deliveries(request(first, again)).await.unwrap();
        assert_eq!(ids(&found), expected);
    }
}

pub async fn callbacks_and_repeated_deliveries_wait_for_nothing(store: &impl Store) {
    two_sessions(store).await;
    store.record_attempt(attempted("one0", AfterAttempt::Dead, 9000)).await.unwrap();
    store.record_attempt(attempted("one1", AfterAttempt::Again(at(90_000)), 9001)).await.unwrap();
    let again = NewDelivery { replay_of: Some(delivery_id("one0")), ..event("one0b", "one", 0) };
    store.add_delivery(again).await.unwrap();
    store.add_delivery(callback("d", "run_1", "one")).await.unwrap();
    assert_eq!(ids(&due(store, 9002).await), ["d", "one0b", "two0"]);
    // And nothing waits for them.
    store.record_attempt(attempted("one0b", AfterAttempt::Again(at(99_000)), 9003)).await.unwrap();
    assert_eq!(ids(&due(store, 90_000).await), ["d", "one1", "two0"]);
    assert_eq!(delivery(store, "one0b").await.replay_of, Some(delivery_id("one0")));
}

async fn change(store: &impl Store, undelivered: Undelivered) {
    let mut append = append("one", 1, vec![user_message("text")]);
    append.outbox = Outbox { undelivered: Some(undelivered), new: vec![event("one3", "one", 3)] };
    append.view.updated_at = at(50_000);
    store.append(append).await.unwrap();
}

pub async fn undelivered_events_can_be_moved(store: &impl Store) {
    two_sessions(store).await;
    store.record_attempt(attempted("one0", AfterAttempt::Delivered, 9000)).await.unwrap();
    store.record_attempt(attempted("one1", AfterAttempt::Again(at(90_000)), 9001)).await.unwrap();
    change(store, Undelivered::Move("https://new.example/".into())).await;
    for (id, url) in [
        ("one0", "https://example.com/hook"),
        ("one1", "https://new.example/"),
        ("one2", "https://new.example/"),
        ("one3", "https://example.com/hook"),
        ("two0", "https://example.com/hook"),
    ] {
        assert_eq!(delivery(store, id).await.url, url, "{id}");
    }
    let moved = delivery(store, "one1").await;
    assert_eq!((moved.tries, moved.attempts.len(), moved.next_attempt_at), (0, 1, Some(at(50_000))));
    assert_eq!(ids(&due(store, 50_000).await), ["one1", "two0"]);
}

pub async fn undelivered_events_can_be_cancelled(store: &impl Store) {
    two_sessions(store).await;
    store.add_delivery(callback("d", "run_1", "one")).await.unwrap();
    change(store, Undelivered::Cancel).await;
    for id in ["one0", "one1", "one2"] {
        assert_eq!(delivery(store, id).await.status, DeliveryStatus::Cancelled);
    }
    assert_eq!(ids(&due(store, 9000).await), ["d", "one3", "two0"]);
    // What comes of an attempt that was under way is kept, and changes nothing.
    store.record_attempt(attempted("one0", AfterAttempt::Again(at(1)), 9000)).await.unwrap();
    let found = delivery(store, "one0").await;
    assert_eq!((found.status, found.attempts.len()), (DeliveryStatus::Cancelled, 1));
    assert_eq!(ids(&due(store, 9000).await), ["d", "one3", "two0"]);
}

pub async fn what_was_moved_is_not_given_up_for_the_old_place(store: &impl Store) {
    two_sessions(store).await;
    change(store, Undelivered::Move("https://new.example/".into())).await;
    store.record_attempt(attempted("one0", AfterAttempt::Dead, 60_000)).await.unwrap();
    let found = delivery(store, "one0").await;
    assert_eq!((found.status, found.tries), (DeliveryStatus::Pending, 0));
    assert_eq!(found.next_attempt_at, Some(at(50_000)));
    store.record_attempt(attempted("one0", AfterAttempt::Delivered, 60_001)).await.unwrap();
    assert_eq!(ids(&due(store, 60_002).await), ["one1", "two0"]);
}
