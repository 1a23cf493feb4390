//! Checks of listings of sessions.

use petasos_core::session::{SessionRecord, Status};
use serde_json::{Value, json};

use super::make::{agent_id, append_with_status, at, page, session, session_of, tagged, tenant};
use crate::{Cursor, Error, SessionFilter, Store};

async fn ids(store: &impl Store, filter: SessionFilter) -> Vec<String> {
    let found = store.sessions(&tenant("default"), filter, page(100, None)).await.unwrap();
    assert_eq!(found.next, None);
    names(&found.items)
}

fn names(sessions: &[SessionRecord]) -> Vec<String> {
    sessions.iter().map(|session| session.header.id.to_string()).collect()
}

fn with_metadata(pairs: &[(&str, &str)]) -> SessionFilter {
    let metadata = pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    SessionFilter { metadata, ..SessionFilter::default() }
}

pub async fn sessions_are_listed_newest_first(store: &impl Store) {
    let mut other = session("other", 9);
    other.header.tenant = tenant("other");
    store.create_session(other).await.unwrap();
    for (id, created) in [("b", 2), ("c", 3), ("a", 1), ("d", 3)] {
        store.create_session(session(id, created)).await.unwrap();
    }
    let listed = ids(store, SessionFilter::default()).await;
    let (newest, rest) = listed.split_at(2);
    assert!(newest.contains(&"c".into()) && newest.contains(&"d".into()), "{listed:?}");
    assert_eq!(rest, ["b", "a"]);
}

pub async fn sessions_are_listed_oldest_first_and_counted(store: &impl Store) {
    for (id, created) in [("b", 2), ("d", 3), ("a", 1), ("c", 3)] {
        store.create_session(session(id, created)).await.unwrap();
    }
    let filter = SessionFilter { oldest_first: true, ..SessionFilter::default() };
    assert_eq!(ids(store, filter.clone()).await, ["a", "b", "c", "d"]);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let found = store.sessions(&tenant("default"), filter.clone(), page(3, after)).await.unwrap();
        seen.extend(names(&found.items));
        after = found.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["a", "b", "c", "d"]);
    let count = async |filter| store.count_sessions(&tenant("default"), filter).await.unwrap();
    assert_eq!(count(filter).await, 4);
    assert_eq!(count(SessionFilter { user_id: Some("nobody".into()), ..SessionFilter::default() }).await, 0);
    assert_eq!(store.count_sessions(&tenant("other"), SessionFilter::default()).await.unwrap(), 0);
}

pub async fn filters_narrow_the_list(store: &impl Store) {
    let mut writer = session_of("writer-anna", "anna");
    writer.header.agent_id = agent_id("writer");
    for session in
        [session("helper", 0), session_of("helper-anna", "anna"), session_of("helper-ben", "ben"), writer]
    {
        store.create_session(session).await.unwrap();
    }
    store.append(append_with_status("helper-anna", 0, Status::Running)).await.unwrap();
    let all = SessionFilter::default;
    let helper = || Some(agent_id("helper"));
    let anna = || Some("anna".to_owned());
    let check = async |filter: SessionFilter, expected: &[&str]| {
        let mut found = ids(store, filter.clone()).await;
        found.sort();
        assert_eq!(found, expected, "{filter:?}");
    };
    check(SessionFilter { agent_id: helper(), ..all() }, &["helper", "helper-anna", "helper-ben"]).await;
    check(SessionFilter { user_id: anna(), ..all() }, &["helper-anna", "writer-anna"]).await;
    check(SessionFilter { agent_id: helper(), user_id: anna(), ..all() }, &["helper-anna"]).await;
    check(SessionFilter { status: Some(Status::Running), ..all() }, &["helper-anna"]).await;
    let idle = SessionFilter { status: Some(Status::Idle), user_id: anna(), ..all() };
    check(idle, &["writer-anna"]).await;
    check(SessionFilter { user_id: Some("nobody".into()), ..all() }, &[]).await;
    check(SessionFilter { without_user: true, ..all() }, &["helper"]).await;
}

pub async fn metadata_is_matched_by_its_text(store: &impl Store) {
    let values: [(&str, Value); 12] = [
        ("text", json!("blue")),
        ("text-true", json!("true")),
        ("true", json!(true)),
        ("false", json!(false)),
        ("null", json!(null)),
        ("three", json!(3)),
        ("text-three", json!("3")),
        ("tenth", json!(0.1)),
        ("large", json!(1.5e300)),
        ("whole", json!(2.0)),
        ("list", json!([1, "a"])),
        ("object", json!({ "a": true })),
    ];
    for (id, value) in values {
        store.create_session(tagged(id, 0, json!({ "key": value, "other": "blue" }))).await.unwrap();
    }
    let expected: [(&str, &[&str]); 14] = [
        ("blue", &["text"]),
        ("true", &["text-true", "true"]),
        ("false", &["false"]),
        ("null", &["null"]),
        ("3", &["text-three", "three"]),
        ("3.0", &[]),
        ("0.1", &["tenth"]),
        ("0.10", &[]),
        (r#"[1,"a"]"#, &["list"]),
        (r#"{"a":true}"#, &["object"]),
        ("2.0", &["whole"]),
        ("2", &[]),
        ("", &[]),
        ("\"blue\"", &[]),
    ];
    for (value, expected) in expected {
        let mut found = ids(store, with_metadata(&[("key", value)])).await;
        found.sort();
        assert_eq!(found, expected, "{value:?}");
    }
    let large = json!(1.5e300).to_string();
    assert_eq!(ids(store, with_metadata(&[("key", &large)])).await, ["large"]);
    assert_eq!(ids(store, with_metadata(&[("key", "blue"), ("other", "blue")])).await, ["text"]);
    assert!(ids(store, with_metadata(&[("key", "blue"), ("other", "red")])).await.is_empty());
    assert!(ids(store, with_metadata(&[("missing", "blue")])).await.is_empty());
}

pub async fn metadata_keys_may_contain_anything(store: &impl Store) {
    let keys = ["a.b", "a\"b", "a'b", "$", "$.a", "[0]", "", "a b", "ü", "%", "a\\b", "a", "A"];
    for (number, key) in keys.iter().enumerate() {
        let metadata = json!({ *key: format!("it's \"{number}\"") });
        store.create_session(tagged(&format!("s{number}"), 0, metadata)).await.unwrap();
    }
    for (number, key) in keys.iter().enumerate() {
        let found = ids(store, with_metadata(&[(key, &format!("it's \"{number}\""))])).await;
        assert_eq!(found, [format!("s{number}")], "{key:?}");
    }
    store.create_session(tagged("nested", 0, json!({ "outer": { "inner": "x" } }))).await.unwrap();
    assert!(ids(store, with_metadata(&[("inner", "x")])).await.is_empty());
    assert!(ids(store, with_metadata(&[("outer.inner", "x")])).await.is_empty());
}

pub async fn archived_sessions_are_listed_on_request(store: &impl Store) {
    let mut archived = session("archived", 1);
    archived.view.archived_at = Some(at(5));
    store.create_session(archived).await.unwrap();
    store.create_session(session("open", 2)).await.unwrap();
    let filter = |include_archived, only_archived| SessionFilter {
        include_archived,
        only_archived,
        ..SessionFilter::default()
    };
    assert_eq!(ids(store, filter(false, false)).await, ["open"]);
    assert_eq!(ids(store, filter(true, false)).await, ["open", "archived"]);
    assert_eq!(ids(store, filter(false, true)).await, ["archived"]);
    assert_eq!(ids(store, filter(true, true)).await, ["archived"]);
}

/// Reads page after page, adding a newer session before each next one.
async fn read_while_adding(store: &impl Store, filter: SessionFilter, limit: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let got = store.sessions(&tenant("default"), filter.clone(), page(limit, after)).await.unwrap();
        assert!(got.items.len() <= limit);
        seen.extend(names(&got.items));
        store.create_session(session_of_anna(&format!("newer-{}", seen.len()), 1_000_000)).await.unwrap();
        match got.next {
            Some(next) => after = Some(next),
            None => return seen,
        }
    }
}

fn session_of_anna(id: &str, created: i64) -> SessionRecord {
    let mut session = session(id, created);
    session.header.user_id = Some("anna".into());
    session
}

pub async fn pages_are_stable_while_sessions_are_added(store: &impl Store) {
    for number in 10..31 {
        store.create_session(session_of_anna(&format!("s{number}"), number)).await.unwrap();
    }
    let seen = read_while_adding(store, SessionFilter::default(), 4).await;
    let expected: Vec<String> = (10..31).rev().map(|number| format!("s{number}")).collect();
    assert_eq!(seen, expected);
}

pub async fn pages_split_sessions_of_the_same_moment(store: &impl Store) {
    for number in 0..9 {
        store.create_session(session(&format!("s{number}"), 0)).await.unwrap();
    }
    let mut seen = read_while_adding(store, SessionFilter::default(), 2).await;
    seen.sort();
    let expected: Vec<String> = (0..9).map(|number| format!("s{number}")).collect();
    assert_eq!(seen, expected);
}

pub async fn filters_hold_on_every_page(store: &impl Store) {
    for number in 10..20 {
        let user = if number % 2 == 0 { "anna" } else { "ben" };
        let mut session = session(&format!("s{number}"), number);
        session.header.user_id = Some(user.into());
        store.create_session(session).await.unwrap();
    }
    let filter = SessionFilter { user_id: Some("anna".into()), ..SessionFilter::default() };
    let seen = read_while_adding(store, filter, 2).await;
    assert_eq!(seen, ["s18", "s16", "s14", "s12", "s10"]);
}

pub async fn invented_cursors_are_refused(store: &impl Store) {
    for number in 0..2 {
        store.create_session(session(&format!("s{number}"), number)).await.unwrap();
    }
    let list = async |cursor: String| {
        let after = Some(Cursor(cursor));
        store.sessions(&tenant("default"), SessionFilter::default(), page(1, after)).await
    };
    let real = list_first(store).await;
    assert!(list(real.clone()).await.is_ok());
    for text in ["", "0", "zz", "ü", "' OR 1=1", &real[1..], &format!("{real}x"), &"0".repeat(100_000)] {
        let result = list(text.to_owned()).await;
        assert!(matches!(result, Err(Error::InvalidCursor)), "{text:?}: {result:?}");
    }
}

async fn list_first(store: &impl Store) -> String {
    let first = store.sessions(&tenant("default"), SessionFilter::default(), page(1, None)).await.unwrap();
    first.next.unwrap().0
}
