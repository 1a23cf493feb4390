//! Checks of [`DeliveryStore`](crate::DeliveryStore): what is kept and listed.

use petasos_core::delivery::{Attempt, Delivery, DeliveryStatus, NewDelivery, Subject};
use petasos_core::ids::DeliveryId;

use super::make::{append, at, page, session, session_id, tenant, user_message};
use crate::{AfterAttempt, Attempted, DeliveryFilter, Error, Outbox, Store};

/// A delivery of an event of a session.
pub(super) fn event(id: &str, session: &str, offset: u64) -> NewDelivery {
    NewDelivery {
        id: id.parse().unwrap(),
        tenant: tenant("default"),
        subject: Subject::Event { session_id: session_id(session), offset },
        url: "https://example.com/hook".into(),
        webhook_id: format!("evt_{session}_{offset}"),
        body: format!("{{\"offset\":{offset}}}").into_bytes(),
        created_at: at(1000 * i64::try_from(offset).unwrap()),
        replay_of: None,
    }
}

/// A delivery of the end of a run.
pub(super) fn callback(id: &str, run: &str, session: &str) -> NewDelivery {
    let subject = Subject::Callback { run_id: run.parse().unwrap(), session_id: session_id(session) };
    NewDelivery { subject, webhook_id: run.into(), ..event(id, session, 0) }
}

/// Appends one event with these deliveries.
pub(super) async fn append_with(store: &impl Store, session: &str, after: u64, new: Vec<NewDelivery>) {
    let mut append = append(session, after, vec![user_message("text")]);
    append.outbox = Outbox { undelivered: None, new };
    store.append(append).await.unwrap();
}

pub(super) async fn delivery(store: &impl Store, id: &str) -> Delivery {
    store.delivery(&tenant("default"), &delivery_id(id)).await.unwrap().unwrap()
}

pub(super) fn delivery_id(id: &str) -> DeliveryId {
    id.parse().unwrap()
}

/// What came of an attempt to deliver it where it goes first.
pub(super) fn attempted(id: &str, then: AfterAttempt, now: i64) -> Attempted {
    let error = (then != AfterAttempt::Delivered).then(|| "refused".to_owned());
    let attempt = Attempt { at: at(now), status_code: Some(500), error, duration_ms: 3 };
    Attempted { id: delivery_id(id), url: "https://example.com/hook".into(), attempt, then, now: at(now) }
}

async fn list(store: &impl Store, filter: DeliveryFilter) -> Vec<String> {
    let found = store.deliveries(&tenant("default"), filter, page(100, None)).await.unwrap();
    found.items.iter().map(|delivery| delivery.id.to_string()).collect()
}

pub async fn a_delivery_comes_with_its_event_or_not_at_all(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    let new = event("d1", "one", 0);
    append_with(store, "one", 0, vec![new.clone()]).await;
    let expected = Delivery {
        id: new.id.clone(),
        tenant: new.tenant.clone(),
        subject: new.subject.clone(),
        url: new.url.clone(),
        webhook_id: new.webhook_id.clone(),
        status: DeliveryStatus::Pending,
        attempts: Vec::new(),
        tries: 0,
        next_attempt_at: Some(new.created_at),
        created_at: new.created_at,
        replay_of: None,
    };
    assert_eq!(delivery(store, "d1").await, expected);
    let body = store.delivery_body(&new.tenant, &new.id).await.unwrap();
    assert_eq!(body, Some(new.body));
    let mut stale = append("one", 0, vec![user_message("text")]);
    stale.outbox.new = vec![event("d2", "one", 1)];
    assert!(matches!(store.append(stale).await, Err(Error::Stale { .. })));
    assert_eq!(list(store, DeliveryFilter::default()).await, ["d1"]);
    let again = store.add_delivery(event("d1", "one", 5)).await;
    assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
    assert_eq!(store.pending_deliveries().await.unwrap(), 1);
}

pub async fn deliveries_are_listed_newest_first(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    let all = (0..5).map(|offset| event(&format!("d{offset}"), "one", offset)).collect();
    append_with(store, "one", 0, all).await;
    let first = store.deliveries(&tenant("default"), DeliveryFilter::default(), page(2, None)).await.unwrap();
    let ids = |items: &[Delivery]| items.iter().map(|found| found.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(&first.items), ["d4", "d3"]);
    append_with(store, "one", 1, vec![event("d9", "one", 9)]).await;
    let rest =
        store.deliveries(&tenant("default"), DeliveryFilter::default(), page(9, first.next)).await.unwrap();
    assert_eq!((ids(&rest.items), rest.next), (vec!["d2".into(), "d1".into(), "d0".into()], None));
    let invented = page(1, Some(crate::Cursor("73".into())));
    let refused = store.deliveries(&tenant("default"), DeliveryFilter::default(), invented).await;
    assert!(matches!(refused, Err(Error::InvalidCursor)));
}

pub async fn filters_narrow_the_list_of_deliveries(store: &impl Store) {
    for id in ["one", "two"] {
        store.create_session(session(id, 0)).await.unwrap();
    }
    append_with(store, "one", 0, vec![event("a", "one", 0), event("b", "one", 1)]).await;
    append_with(store, "two", 0, vec![event("c", "two", 2)]).await;
    store.add_delivery(callback("d", "run_1", "two")).await.unwrap();
    store.record_attempt(attempted("a", AfterAttempt::Delivered, 5)).await.unwrap();
    store.record_attempt(attempted("c", AfterAttempt::Dead, 5)).await.unwrap();
    let status = |status| DeliveryFilter { status: Some(status), ..DeliveryFilter::default() };
    assert_eq!(list(store, status(DeliveryStatus::Delivered)).await, ["a"]);
    assert_eq!(list(store, status(DeliveryStatus::Dead)).await, ["c"]);
    assert_eq!(list(store, status(DeliveryStatus::Pending)).await, ["b", "d"]);
    assert!(list(store, status(DeliveryStatus::Cancelled)).await.is_empty());
    let of_session = DeliveryFilter { session_id: Some(session_id("two")), ..DeliveryFilter::default() };
    assert_eq!(list(store, of_session).await, ["c", "d"]);
    let of_run = DeliveryFilter { run_id: Some("run_1".parse().unwrap()), ..DeliveryFilter::default() };
    assert_eq!(list(store, of_run).await, ["d"]);
}

pub async fn deliveries_of_another_tenant_do_not_exist(store: &impl Store) {
    let new = NewDelivery { tenant: tenant("acme"), ..callback("d", "run_1", "one") };
    store.add_delivery(new).await.unwrap();
    let (mine, id) = (tenant("default"), delivery_id("d"));
    assert_eq!(store.delivery(&mine, &id).await.unwrap(), None);
    assert_eq!(store.delivery_body(&mine, &id).await.unwrap(), None);
    assert!(list(store, DeliveryFilter::default()).await.is_empty());
    assert!(store.delivery(&tenant("acme"), &id).await.unwrap().is_some());
}

pub async fn attempts_are_recorded(store: &impl Store) {
    store.add_delivery(callback("d", "run_1", "one")).await.unwrap();
    let first = attempted("d", AfterAttempt::Again(at(9)), 1);
    let second = attempted("d", AfterAttempt::Delivered, 10);
    store.record_attempt(first.clone()).await.unwrap();
    let found = delivery(store, "d").await;
    assert_eq!((found.tries, found.next_attempt_at), (1, Some(at(9))));
    store.record_attempt(second.clone()).await.unwrap();
    let found = delivery(store, "d").await;
    assert_eq!(found.attempts, [first.attempt, second.attempt]);
    assert_eq!((found.status, found.next_attempt_at), (DeliveryStatus::Delivered, None));
    assert_eq!(store.pending_deliveries().await.unwrap(), 0);
    // One that is gone is nobody's mistake.
    store.record_attempt(attempted("gone", AfterAttempt::Dead, 1)).await.unwrap();
}

pub async fn settled_deliveries_can_be_forgotten(store: &impl Store) {
    for (new, then) in [
        (callback("a", "run_1", "one"), AfterAttempt::Delivered),
        (event("b", "one", 0), AfterAttempt::Dead),
        (callback("c", "run_1", "one"), AfterAttempt::Again(at(9))),
    ] {
        let id = new.id.to_string();
        store.add_delivery(new).await.unwrap();
        store.record_attempt(attempted(&id, then, 1)).await.unwrap();
    }
    assert_eq!(store.forget_deliveries(at(0), 9).await.unwrap(), 0);
    assert_eq!(store.forget_deliveries(at(1), 1).await.unwrap(), 1);
    assert_eq!(store.forget_deliveries(at(1), 9).await.unwrap(), 1);
    assert_eq!(list(store, DeliveryFilter::default()).await, ["c"]);
}

pub async fn a_dead_callback_is_kept_while_it_is_the_newest_of_its_run(store: &impl Store) {
    let dead = callback("a", "run_1", "one");
    let again =
        NewDelivery { created_at: at(1), replay_of: Some(dead.id.clone()), ..callback("b", "run_1", "one") };
    store.add_delivery(dead).await.unwrap();
    store.record_attempt(attempted("a", AfterAttempt::Dead, 1)).await.unwrap();
    assert_eq!(store.forget_deliveries(at(9), 9).await.unwrap(), 0);
    store.add_delivery(again).await.unwrap();
    store.record_attempt(attempted("b", AfterAttempt::Delivered, 2)).await.unwrap();
    // The older one goes first, so that a run never looks dead again.
    assert_eq!(store.forget_deliveries(at(9), 1).await.unwrap(), 1);
    assert_eq!(list(store, DeliveryFilter::default()).await, ["b"]);
    assert_eq!(store.forget_deliveries(at(9), 1).await.unwrap(), 1);
}

pub async fn deliveries_outlive_their_session(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    append_with(store, "one", 0, vec![event("d", "one", 0)]).await;
    assert!(store.delete_session(&tenant("default"), &session_id("one")).await.unwrap());
    let request = super::delivery_order::wanted(9, 9, 9);
    assert_eq!(store.due_deliveries(request).await.unwrap().deliveries.len(), 1);
}
