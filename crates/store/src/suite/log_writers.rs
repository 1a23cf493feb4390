//! Checks of [`EventLog`](crate::EventLog): who may write, and what happens when many do.

use futures_util::future::join_all;

use super::make::{agent_message, append, session, session_id, tenant, user_message, whole};
use crate::{Error, Store};

pub async fn a_stale_writer_is_refused_and_leaves_nothing(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    store.append(append("one", 0, vec![agent_message("a"); 3])).await.unwrap();
    let before = store.session(&tenant("default"), &session_id("one")).await.unwrap();
    for after in [0, 2, 4] {
        let mut stale = append("one", after, vec![user_message("late"); 2]);
        stale.view.title = Some("Late".into());
        stale.checkpoint = Some(vec![9]);
        let error = store.append(stale).await.unwrap_err();
        assert!(
            matches!(&error, Error::Stale { expected, actual: 3, .. } if *expected == after),
            "{error:?}"
        );
    }
    assert_eq!(store.events(&session_id("one"), whole()).await.unwrap().events.len(), 3);
    assert_eq!(store.session(&tenant("default"), &session_id("one")).await.unwrap(), before);
    assert_eq!(store.checkpoint(&session_id("one")).await.unwrap(), None);
}

pub async fn a_session_that_is_gone_cannot_be_written(store: &impl Store) {
    let error = store.append(append("none", 0, vec![agent_message("a")])).await.unwrap_err();
    assert!(matches!(&error, Error::NotFound { what } if what.contains("none")), "{error:?}");
    assert!(store.events(&session_id("none"), whole()).await.unwrap().events.is_empty());
}

pub async fn misnumbered_events_are_refused(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    store.create_session(session("two", 0)).await.unwrap();
    let good = append("one", 0, vec![agent_message("a"); 3]);
    let mut gap = good.clone();
    gap.events[1].sequence = 7;
    let mut late = good.clone();
    late.events.remove(0);
    let mut foreign = good.clone();
    foreign.events[2].session_id = session_id("two");
    let mut view = good.clone();
    view.view.last_sequence = 2;
    for wrong in [gap, late, foreign, view] {
        let error = store.append(wrong).await.unwrap_err();
        assert!(matches!(error, Error::Failed { .. }), "{error:?}");
    }
    assert!(store.events(&session_id("one"), whole()).await.unwrap().events.is_empty());
    store.append(good).await.unwrap();
}

pub async fn many_sessions_are_written_at_the_same_time(store: &impl Store) {
    let ids: Vec<String> = (0..64).map(|number| format!("s{number}")).collect();
    join_all(ids.iter().map(|id| async move {
        store.create_session(session(id, 0)).await.unwrap();
        for after in 0..10 {
            let text = format!("{id} {after}");
            store.append(append(id, after, vec![user_message(&text)])).await.unwrap();
        }
    }))
    .await;
    for id in &ids {
        let events = store.events(&session_id(id), whole()).await.unwrap().events;
        let texts: Vec<_> = events.iter().map(|event| event.payload.clone()).collect();
        let expected: Vec<_> = (0..10).map(|after| user_message(&format!("{id} {after}"))).collect();
        assert_eq!(texts, expected);
    }
}

pub async fn of_two_writers_exactly_one_wins(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    for after in 0..20 {
        let write = |text| store.append(append("one", after, vec![user_message(text)]));
        let results = join_all(["a", "b", "c"].map(write)).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        let stale = results.iter().filter(|result| matches!(result, Err(Error::Stale { .. })));
        assert_eq!(stale.count(), 2, "{results:?}");
    }
    let events = store.events(&session_id("one"), whole()).await.unwrap().events;
    let sequences: Vec<u64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (1..=20).collect::<Vec<_>>());
}

pub async fn a_refused_write_does_not_touch_its_neighbours(store: &impl Store) {
    for number in 0..8 {
        store.create_session(session(&format!("s{number}"), 0)).await.unwrap();
    }
    // Every second writer is stale; all of them are queued together.
    let writes = (0..8u64)
        .map(|number| store.append(append(&format!("s{number}"), number % 2, vec![user_message("text"); 3])));
    let results = join_all(writes).await;
    for (number, result) in results.iter().enumerate() {
        let events = store.events(&session_id(&format!("s{number}")), whole()).await.unwrap().events;
        if number % 2 == 0 {
            assert!(result.is_ok(), "{result:?}");
            assert_eq!(events.len(), 3);
        } else {
            assert!(matches!(result, Err(Error::Stale { .. })), "{result:?}");
            assert!(events.is_empty());
        }
    }
}
