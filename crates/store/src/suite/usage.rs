//! Checks of [`UsageStore`](crate::UsageStore) and of how usage is counted.

use jiff::ToSpan;
use jiff::civil::Date;
use petasos_core::event::{ModelFinished, Payload};
use petasos_core::model::Usage;
use petasos_core::spending::{DailyUsage, day_of};

use super::make::{agent_id, append, at, session, tenant};
use crate::Store;

fn finished(input_tokens: u64, cost_nanos: Option<u64>) -> Payload {
    let usage = Usage { input_tokens, output_tokens: 1, cost_nanos, ..Usage::default() };
    Payload::ModelFinished(ModelFinished { usage, ..ModelFinished::default() })
}

async fn used(store: &impl Store, agent: &str, from: Date, to: Date) -> Vec<DailyUsage> {
    store.agent_usage(&tenant("default"), &agent_id(agent), from, to).await.unwrap()
}

pub async fn model_calls_are_counted_by_day(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    store.append(append("one", 0, vec![finished(10, None), finished(5, Some(7))])).await.unwrap();
    let mut next_day = append("one", 2, vec![finished(3, Some(2))]);
    next_day.events[0].created_at += 24.hours();
    store.append(next_day).await.unwrap();
    let today = day_of(at(0));
    let tomorrow = today.tomorrow().unwrap();
    let days = used(store, "helper", today, tomorrow).await;
    let expected = [(today, 2, 15, Some(7)), (tomorrow, 1, 3, Some(2))];
    let shown: Vec<_> = days
        .iter()
        .map(|day| (day.day, day.model_calls, day.usage.input_tokens, day.usage.cost_nanos))
        .collect();
    assert_eq!(shown, expected);
    assert_eq!(used(store, "helper", tomorrow, tomorrow).await, days[1..]);
    assert!(used(store, "helper", tomorrow, today).await.is_empty());
}

pub async fn usage_belongs_to_one_agent_and_outlives_its_sessions(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    store.append(append("one", 0, vec![finished(10, None)])).await.unwrap();
    assert!(store.delete_session(&tenant("default"), &"one".parse().unwrap()).await.unwrap());
    let today = day_of(at(0));
    assert_eq!(used(store, "helper", today, today).await.len(), 1);
    assert!(used(store, "writer", today, today).await.is_empty());
    let elsewhere = store.agent_usage(&tenant("other"), &agent_id("helper"), today, today).await.unwrap();
    assert!(elsewhere.is_empty());
}

pub async fn an_imported_session_was_paid_for_elsewhere(store: &impl Store) {
    let log = append("one", 0, vec![finished(10, Some(1))]);
    store.import_session(session("one", 0), log).await.unwrap();
    let today = day_of(at(0));
    assert!(used(store, "helper", today, today).await.is_empty());
}
