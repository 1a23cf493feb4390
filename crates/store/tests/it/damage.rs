//! What changed on the disk is never served as the truth.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use petasos_core::event::Payload;
use petasos_core::event::{Event, Scope, ToolConfirmation, Verdict};
use petasos_core::key::KeyRecord;
use petasos_core::memory::{LearnedSkill, Memories, SkillSummary, UserScope};
use petasos_core::session::SessionRecord;
use petasos_store::sqlite::SqliteStore;
use petasos_store::suite::{agent, append, session, tenant, user_message};
use petasos_store::{
    AgentStore, Checkpoint, Error, EventLog, EventQuery, GrantStore, KeyStore, MemoryStore, Order,
    PageRequest, Result, SessionFilter, SessionStore, SkillStore, SkillWrite,
};
use serde_json::json;
use tempfile::TempDir;

use crate::{database, open, raw};

const ALL: EventQuery = EventQuery {
    after: None,
    before: None,
    types: Vec::new(),
    order: Order::Ascending,
    limit: 1000,
    max_bytes: usize::MAX,
};

/// Everything that a store serves, as it says it.
#[derive(Debug, PartialEq)]
struct Served {
    sessions: Vec<SessionRecord>,
    logs: Vec<Vec<Event>>,
    checkpoints: Vec<Option<Checkpoint>>,
    agents: Vec<petasos_core::agent::AgentVersion>,
    keys: Vec<KeyRecord>,
    key: Option<KeyRecord>,
    grants: Vec<String>,
    memories: Memories,
    skills: Vec<SkillSummary>,
    skill: Option<LearnedSkill>,
    skill_file: Option<String>,
}

const HASH: &str = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";
const IDS: [&str; 3] = ["one", "two", "three"];

fn key() -> KeyRecord {
    let key = json!({ "id": "key_1", "tenant": "default", "name": "laptop", "scopes": [], "hash": HASH,
        "created_at": "2026-01-02T03:04:05Z", "revoked_at": null });
    serde_json::from_value(key).unwrap()
}

/// A database with some of everything.
async fn filled(directory: &TempDir) -> Served {
    let store = open(&database(directory)).unwrap();
    store.create_agent(agent("default", "helper", 0)).await.unwrap();
    store
        .add_agent_version(petasos_core::agent::AgentVersion { version: 2, ..agent("default", "helper", 0) })
        .await
        .unwrap();
    store.create_key(key()).await.unwrap();
    store.revoke_key(&"key_1".parse().unwrap(), Timestamp::UNIX_EPOCH).await.unwrap();
    for (created, id) in (0..).zip(IDS) {
        let mut session = session(id, created);
        session.header.user_id = Some("anna".into());
        store.create_session(session).await.unwrap();
        let allowed = Payload::UserToolConfirmation(ToolConfirmation {
            tool_use_id: "toolu_1".parse().unwrap(),
            result: Verdict::Allow,
            scope: Scope::Always,
            reason: None,
            tool: Some("terminal".into()),
            pattern: None,
            also: Vec::new(),
        });
        let mut log = append(id, 0, vec![user_message("first"), user_message(&"text ".repeat(40)), allowed]);
        log.checkpoint = Some(format!("a fold of {id}").into_bytes());
        store.append(log).await.unwrap();
        let taken = json!({ "call": 1, "takes_up": [1] });
        let taken = Payload::ModelStarted(serde_json::from_value(taken).unwrap());
        store.append(append(id, 3, vec![taken])).await.unwrap();
    }
    keep(&store).await;
    let served = served(&store).await.unwrap();
    store.close().await.unwrap();
    served
}

fn scope() -> UserScope {
    UserScope { tenant: tenant("default"), agent_id: "helper".parse().unwrap(), user_id: "anna".into() }
}

/// Has the agent note something, and learn a skill.
async fn keep(store: &SqliteStore) {
    let note = json!([{ "id": "mem_1", "target": "user", "content": "likes tea", "source": "agent",
        "created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:05Z" }]);
    store.replace_memories(&scope(), 0, serde_json::from_value(note).unwrap()).await.unwrap();
    for expected_revision in [None, Some(1)] {
        let write = SkillWrite {
            name: "brewing".into(),
            description: "How tea is made.".into(),
            content: "Boil water.".repeat(20),
            expected_revision,
            files: vec![("cups.md".into(), Some("Two of them.".repeat(20)))],
            at: Timestamp::UNIX_EPOCH,
        };
        store.write_skill(&scope(), write).await.unwrap();
    }
}

async fn served(store: &SqliteStore) -> Result<Served> {
    let mut served = Served {
        sessions: store.sessions(&tenant("default"), SessionFilter::default(), page()).await?.items,
        logs: Vec::new(),
        checkpoints: Vec::new(),
        agents: store.agents(&tenant("default"), page()).await?.items,
        keys: store.keys(None).await?,
        key: store.key_by_hash(HASH).await?,
        grants: store.grants(&tenant("default"), &"helper".parse().unwrap(), "anna").await?,
        memories: store.memories(&scope()).await?,
        skills: store.skills(&scope()).await?,
        skill: store.skill(&scope(), "brewing").await?,
        skill_file: store.skill_file(&scope(), "brewing", "cups.md").await?,
    };
    for id in IDS {
        let id = id.parse().unwrap();
        served.sessions.extend(store.session(&tenant("default"), &id).await?);
        served.logs.push(store.events(&id, ALL).await?.events);
        served
            .logs
            .push(store.events(&id, EventQuery { order: Order::Descending, limit: 2, ..ALL }).await?.events);
        let types = vec!["user.message".to_owned()];
        served.logs.push(store.events(&id, EventQuery { types, ..ALL }).await?.events);
        served.checkpoints.push(store.checkpoint(&id).await?);
    }
    Ok(served)
}

fn page() -> PageRequest {
    PageRequest { after: None, limit: 100 }
}

fn change(path: &Path, sql: &str) {
    let database = raw(path);
    let changed = database.execute(sql, []).unwrap();
    assert!(changed > 0, "{sql}");
}

#[tokio::test]
async fn rows_that_changed_are_refused_by_name() {
    let changes = [
        (
            "UPDATE events SET payload = replace(payload, 'text', 'tent') WHERE session = 2 AND sequence = 2",
            "the log of session two",
        ),
        (
            "UPDATE events SET type = 'user.massage' WHERE session = 2 AND sequence = 2",
            "the log of session two",
        ),
        (
            "UPDATE events SET created_at = created_at + 1 WHERE session = 2 AND sequence = 4",
            "the log of session two",
        ),
        ("UPDATE events SET processed_at = 5 WHERE session = 2 AND sequence = 1", "the log of session two"),
        (
            "UPDATE events SET processed_at = NULL WHERE session = 2 AND sequence = 1",
            "the log of session two",
        ),
        ("DELETE FROM events WHERE session = 2 AND sequence = 3", "event 3 is missing"),
        ("DELETE FROM events WHERE session = 2 AND sequence = 4", "event 4 is missing"),
        ("UPDATE sessions SET last_sequence = 3 WHERE id = 'two'", "session two"),
        ("UPDATE sessions SET title = 'x' WHERE id = 'two'", "session two"),
        ("UPDATE sessions SET platform = 'x' WHERE id = 'two'", "session two"),
        ("UPDATE events SET session = 99 WHERE session = 2", "event 1 is missing"),
        ("UPDATE agents SET version = 1", "agent"),
        ("UPDATE agents SET version = 3", "agent"),
        (
            "UPDATE agent_versions SET definition = replace(definition, 'kind', 'kine') WHERE version = 2",
            "agent",
        ),
        ("UPDATE keys SET revoked_at = NULL", "key"),
        ("UPDATE keys SET scopes = '[\"admin\"]'", "key"),
        ("UPDATE grants SET tool = 'terminator'", "a grant of anna"),
        ("UPDATE memories SET entries = replace(entries, 'tea', 'pea')", "the memories of agent helper"),
        ("UPDATE memories SET revision = 7", "the memories of agent helper"),
        ("UPDATE skills SET description = 'How coffee is made.'", "the skills of agent helper"),
        ("UPDATE skills SET content = replace(content, 'Boil', 'Soil')", "skill brewing"),
        ("UPDATE skills SET revision = 1", "the skills of agent helper"),
        ("UPDATE skill_files SET content = replace(content, 'Two', 'Too')", "cups.md of skill brewing"),
        ("UPDATE skill_files SET path = 'cups.mp'", "skill brewing"),
    ];
    for (sql, expected) in changes {
        let directory = TempDir::new().unwrap();
        filled(&directory).await;
        change(&database(&directory), sql);
        let store = open(&database(&directory)).unwrap();
        let error = match served(&store).await {
            Err(error @ Error::Damaged { .. }) => error.to_string(),
            other => panic!("{sql}: {other:?}"),
        };
        assert!(error.contains(expected) && error.contains("petasos.db"), "{sql}: {error}");
        assert_eq!(store.events(&"one".parse().unwrap(), ALL).await.unwrap().events.len(), 4, "others go on");
        store.append(append("one", 4, vec![user_message("more")])).await.unwrap();
    }
}

#[tokio::test]
async fn the_log_of_another_session_is_not_taken_for_this_one() {
    let directory = TempDir::new().unwrap();
    filled(&directory).await;
    let swap = "UPDATE events SET session = 5 - session WHERE session = 2; UPDATE events SET session = 9 WHERE session = 1";
    raw(&database(&directory))
        .execute_batch(&format!("DELETE FROM events WHERE session = 3; {swap}"))
        .unwrap();
    let store = open(&database(&directory)).unwrap();
    let error = store.events(&"three".parse().unwrap(), ALL).await.unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
}

#[tokio::test]
async fn a_damaged_checkpoint_is_passed_over() {
    let directory = TempDir::new().unwrap();
    filled(&directory).await;
    change(&database(&directory), "UPDATE checkpoints SET state = x'00' WHERE session = 2");
    let store = open(&database(&directory)).unwrap();
    let (tenant, two) = (tenant("default"), "two".parse().unwrap());
    assert_eq!(store.checkpoint(&two).await.unwrap(), None);
    let asleep = store.asleep(&tenant, &two, 100).await.unwrap().unwrap();
    assert_eq!((asleep.checkpoint, asleep.events.events.len()), (None, 4), "the whole log is there instead");
}

#[tokio::test]
async fn a_damaged_name_of_a_removed_session_does_not_take_another_log() {
    let directory = TempDir::new().unwrap();
    filled(&directory).await;
    change(&database(&directory), "INSERT INTO removed_sessions (session) VALUES (2)");
    let store = open(&database(&directory)).unwrap();
    store.append(append("one", 4, vec![user_message("sweeps")])).await.unwrap();
    store.append(append("one", 5, vec![user_message("and again")])).await.unwrap();
    assert_eq!(store.events(&"two".parse().unwrap(), ALL).await.unwrap().events.len(), 4);
}

/// Changes single bytes all over the file. Each time everything that is served is right, or there is an error.
#[tokio::test]
async fn no_changed_byte_is_served() {
    let directory = TempDir::new().unwrap();
    let expected = filled(&directory).await;
    let whole = fs::read(database(&directory)).unwrap();
    let mut outcomes = [0; 3];
    for at in (0..whole.len()).step_by(211) {
        let damaged = TempDir::new().unwrap();
        let mut bytes = whole.clone();
        bytes[at] ^= u8::try_from(at % 255 + 1).unwrap();
        fs::write(database(&damaged), bytes).unwrap();
        let Ok(store) = open(&database(&damaged)) else {
            outcomes[0] += 1;
            continue;
        };
        match served(&store).await {
            Err(_) => outcomes[1] += 1,
            Ok(mut served) => {
                // A fold that is damaged is passed over.
                for (now, then) in served.checkpoints.iter_mut().zip(&expected.checkpoints) {
                    *now = now.take().or(then.clone());
                }
                assert!(served == expected, "the change of byte {at} went unnoticed");
                outcomes[2] += 1;
            }
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "refused, noticed, harmless: {outcomes:?}");
}

#[tokio::test]
async fn rows_from_before_there_were_checksums_can_be_read() {
    let directory = TempDir::new().unwrap();
    let old = raw(&database(&directory));
    let schema = include_str!("../../src/sqlite/migrations/001_start.sql");
    old.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA application_id = {}; PRAGMA user_version = 1; {schema}
        INSERT INTO sessions VALUES (1, 'one', 'default', 'helper', 1, NULL, 'api', 0, NULL, '{{}}', 'idle', NULL,
            '{}', 0, 0, NULL, 1);
        INSERT INTO events VALUES (1, 1, 'user.message', 0, NULL, '{}');",
        0x5065_7461,
        r#"{"input_tokens":0,"output_tokens":0,"cached_input_tokens":0}"#,
        serde_json::to_string(&user_message("old")).unwrap(),
    ))
    .unwrap();
    old.close().unwrap();
    let store = open(&database(&directory)).unwrap();
    let id = "one".parse().unwrap();
    let taken = Payload::ModelStarted(serde_json::from_value(json!({ "call": 1, "takes_up": [1] })).unwrap());
    store.append(append("one", 1, vec![taken])).await.unwrap();
    let events = store.events(&id, ALL).await.unwrap().events;
    assert_eq!((events.len(), events[0].processed_at), (2, Some(events[1].created_at)));
    assert_eq!(store.session(&tenant("default"), &id).await.unwrap().unwrap().view.last_sequence, 2);
}
