//! Checks of [`MessageSearch`](crate::MessageSearch).

use petasos_core::event::Payload;
use petasos_core::memory::UserScope;

use super::make::{agent_message, append, scope, session, session_id, session_of, user_message};
use crate::{MessageHit, MessageOrder, MessageQuery, MessageRole, Store};

fn anna() -> UserScope {
    scope("default", "helper", "anna")
}

fn query(words: &str) -> MessageQuery {
    MessageQuery { words: words.into(), role: None, except: None, order: MessageOrder::Best, limit: 10 }
}

fn places(hits: &[MessageHit]) -> Vec<(&str, u64)> {
    hits.iter().map(|hit| (hit.session_id.as_str(), hit.sequence)).collect()
}

async fn found(store: &impl Store, words: &str) -> Vec<u64> {
    let mut found: Vec<u64> =
        store.search_messages(&anna(), query(words)).await.unwrap().iter().map(|hit| hit.sequence).collect();
    found.sort_unstable();
    found
}

async fn write(store: &impl Store, id: &str, user: &str, payloads: Vec<Payload>) {
    store.create_session(session_of(id, user)).await.unwrap();
    store.append(append(id, 0, payloads)).await.unwrap();
}

pub async fn a_message_is_found_as_soon_as_it_is_appended(store: &impl Store) {
    let said =
        vec![user_message("Where is the teapot?"), Payload::StatusRunning {}, agent_message("On the shelf.")];
    write(store, "one", "anna", said).await;
    let hits = store.search_messages(&anna(), query("teapot")).await.unwrap();
    assert_eq!(places(&hits), [("one", 1)]);
    assert_eq!((hits[0].role, hits[0].text.as_str()), (MessageRole::User, "Where is the teapot?"));
    assert_eq!(hits[0].created_at, append("one", 0, vec![user_message("")]).events[0].created_at);
    assert_eq!(found(store, "shelf").await, [3]);
    store.append(append("one", 3, vec![user_message("And the kettle?")])).await.unwrap();
    assert_eq!(found(store, "kettle").await, [4]);
    assert!(found(store, "status_running").await.is_empty());
    // What is deleted is not found any more, indexed or not.
    store.append(append("one", 4, vec![user_message("And the spoon?")])).await.unwrap();
    let deleted = serde_json::json!({ "type": "session.events_deleted", "from": 3 });
    let deleted = serde_json::from_value(deleted).unwrap();
    store.append(append("one", 5, vec![deleted])).await.unwrap();
    for gone in ["shelf", "kettle", "spoon"] {
        assert!(found(store, gone).await.is_empty(), "{gone}");
    }
    assert_eq!(found(store, "teapot").await, [1]);
}

pub async fn words_are_matched_by_what_they_mean(store: &impl Store) {
    let said =
        ["Deploying the café's website", "tea and coffee", "coffee, green tea", "一杯のお茶をください"];
    write(store, "one", "anna", said.map(user_message).to_vec()).await;
    assert_eq!(found(store, "CAFE deploy").await, [1]);
    assert_eq!(found(store, "tea coffee").await, [2, 3]);
    assert_eq!(found(store, "\"green tea\"").await, [3]);
    assert_eq!(found(store, "\"tea green\"").await, [] as [u64; 0]);
    assert_eq!(found(store, "café OR green").await, [1, 3]);
    assert_eq!(found(store, "web*").await, [1]);
    assert_eq!(found(store, "お茶").await, [4]);
    assert_eq!(found(store, "茶お").await, [] as [u64; 0]);
    for words in ["", " \" ", "(", "text:", "a NEAR(", "NULL'; --", "\u{0}", "*", "OR"] {
        assert!(found(store, words).await.is_empty(), "{words}");
    }
}

pub async fn a_search_sees_one_scope(store: &impl Store) {
    write(store, "one", "anna", vec![user_message("my teapot")]).await;
    write(store, "two", "ben", vec![user_message("ben's teapot")]).await;
    store.create_session(session("three", 0)).await.unwrap();
    store.append(append("three", 0, vec![user_message("nobody's teapot")])).await.unwrap();
    let mut elsewhere = session_of("four", "anna");
    elsewhere.header.agent_id = "writer".parse().unwrap();
    store.create_session(elsewhere).await.unwrap();
    store.append(append("four", 0, vec![user_message("another teapot")])).await.unwrap();
    let hits = store.search_messages(&anna(), query("teapot")).await.unwrap();
    assert_eq!(places(&hits), [("one", 1)]);
    let other = scope("other", "helper", "anna");
    assert!(store.search_messages(&other, query("teapot")).await.unwrap().is_empty());
    // Words of the scope's own name are no way in.
    assert!(found(store, "scope1 OR user OR label").await.is_empty());
}

pub async fn a_search_can_be_narrowed_and_ordered(store: &impl Store) {
    write(store, "one", "anna", vec![user_message("tea tea tea"), agent_message("tea")]).await;
    write(store, "two", "anna", vec![user_message("a long talk about many things and once about tea")]).await;
    let ask = async |change: &dyn Fn(&mut MessageQuery)| {
        let mut query = query("tea");
        change(&mut query);
        let hits = store.search_messages(&anna(), query).await.unwrap();
        places(&hits).into_iter().map(|(id, sequence)| (id.to_owned(), sequence)).collect::<Vec<_>>()
    };
    let at = |id: &str, sequence| (id.to_owned(), sequence);
    assert_eq!(
        ask(&|query| query.order = MessageOrder::Newest).await,
        [at("two", 1), at("one", 2), at("one", 1)]
    );
    assert_eq!(ask(&|_| {}).await.last(), Some(&at("two", 1)));
    assert_eq!(ask(&|query| query.role = Some(MessageRole::Agent)).await, [at("one", 2)]);
    assert_eq!(ask(&|query| query.except = Some(session_id("one"))).await, [at("two", 1)]);
    assert_eq!(ask(&|query| query.limit = 1).await.len(), 1);
}

pub async fn a_deleted_session_is_not_found(store: &impl Store) {
    write(store, "one", "anna", vec![user_message("a teapot")]).await;
    write(store, "two", "anna", vec![user_message("a teapot")]).await;
    assert_eq!(found(store, "teapot").await.len(), 2);
    store.delete_session(&anna().tenant, &session_id("one")).await.unwrap();
    let hits = store.search_messages(&anna(), query("teapot")).await.unwrap();
    assert_eq!(places(&hits), [("two", 1)]);
}

pub async fn very_many_messages_are_found(store: &impl Store) {
    let said = (0..1000).map(|number| user_message(&format!("number{number} of many"))).collect();
    write(store, "one", "anna", said).await;
    // The index may be made in steps, but whoever asks gets all.
    assert_eq!(found(store, "number999").await, [1000]);
    assert_eq!(found(store, "number0").await, [1]);
    let mut all = query("many");
    all.limit = 5000;
    assert_eq!(store.search_messages(&anna(), all).await.unwrap().len(), 1000);
}
