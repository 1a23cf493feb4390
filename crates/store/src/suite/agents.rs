//! Checks of [`AgentStore`](crate::AgentStore).

use petasos_core::agent::AgentVersion;

use super::make::{agent, agent_id, at, page, session, tenant};
use crate::{Error, SessionFilter, Store};

fn next(previous: &AgentVersion, updated: i64) -> AgentVersion {
    let mut agent = previous.clone();
    agent.version += 1;
    agent.definition.instructions = format!("Version {}.", agent.version);
    agent.updated_at = at(updated);
    agent
}

pub async fn a_new_agent_is_found_as_it_was_given(store: &impl Store) {
    let given = agent("default", "helper", 1);
    store.create_agent(given.clone()).await.unwrap();
    for version in [None, Some(1)] {
        let found = store.agent(&given.tenant, &given.id, version).await.unwrap();
        assert_eq!(found.as_ref(), Some(&given));
    }
    assert_eq!(store.agent(&given.tenant, &given.id, Some(2)).await.unwrap(), None);
    assert_eq!(store.agent(&given.tenant, &agent_id("other"), None).await.unwrap(), None);
}

pub async fn an_agent_exists_once_per_tenant(store: &impl Store) {
    let first = agent("default", "helper", 1);
    store.create_agent(first.clone()).await.unwrap();
    let error = store.create_agent(agent("default", "helper", 2)).await.unwrap_err();
    assert!(matches!(&error, Error::AlreadyExists { what } if what.contains("helper")), "{error:?}");
    assert_eq!(store.agent(&first.tenant, &first.id, None).await.unwrap(), Some(first));
    store.create_agent(agent("other", "helper", 3)).await.unwrap();
}

pub async fn versions_follow_each_other(store: &impl Store) {
    let first = agent("default", "helper", 1);
    store.create_agent(first.clone()).await.unwrap();
    store.archive_agent(&first.tenant, &first.id, Some(at(5))).await.unwrap();
    let mut second = next(&first, 9);
    second.created_at = at(77);
    store.add_agent_version(second.clone()).await.unwrap();
    // What belongs to the agent and not to the version stays as it was.
    second.created_at = first.created_at;
    second.archived_at = Some(at(5));
    assert_eq!(store.agent(&first.tenant, &first.id, None).await.unwrap(), Some(second));
    let old = store.agent(&first.tenant, &first.id, Some(1)).await.unwrap().unwrap();
    assert_eq!((old.definition, old.updated_at), (first.definition, first.updated_at));
}

pub async fn a_stale_version_is_refused(store: &impl Store) {
    let first = agent("default", "helper", 1);
    let missing = store.add_agent_version(next(&first, 2)).await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing:?}");
    store.create_agent(first.clone()).await.unwrap();
    let second = next(&first, 2);
    store.add_agent_version(second.clone()).await.unwrap();
    let mut late = next(&first, 3);
    late.definition.name = "Too late".into();
    for wrong in [late, next(&next(&second, 4), 5)] {
        let expected_version = u64::from(wrong.version) - 1;
        let error = store.add_agent_version(wrong).await.unwrap_err();
        assert!(
            matches!(&error, Error::Stale { expected, actual: 2, .. } if *expected == expected_version),
            "{error:?}"
        );
    }
    assert_eq!(store.agent(&first.tenant, &first.id, None).await.unwrap(), Some(second));
}

pub async fn archived_agents_are_left_out_and_can_come_back(store: &impl Store) {
    let helper = agent("default", "helper", 1);
    store.create_agent(helper.clone()).await.unwrap();
    store.archive_agent(&helper.tenant, &helper.id, Some(at(2))).await.unwrap();
    assert!(store.agents(&helper.tenant, page(10, None)).await.unwrap().items.is_empty());
    let found = store.agent(&helper.tenant, &helper.id, None).await.unwrap().unwrap();
    assert_eq!(found.archived_at, Some(at(2)));
    store.archive_agent(&helper.tenant, &helper.id, None).await.unwrap();
    assert_eq!(
        store.agents(&helper.tenant, page(10, None)).await.unwrap().items,
        std::slice::from_ref(&helper)
    );
    let error = store.archive_agent(&helper.tenant, &agent_id("other"), None).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
}

pub async fn agents_of_another_tenant_do_not_exist(store: &impl Store) {
    let ours = agent("ours", "helper", 1);
    let theirs = tenant("theirs");
    store.create_agent(ours.clone()).await.unwrap();
    assert_eq!(store.agent(&theirs, &ours.id, None).await.unwrap(), None);
    assert!(store.agents(&theirs, page(10, None)).await.unwrap().items.is_empty());
    assert!(store.agent_versions(&theirs, &ours.id, page(10, None)).await.unwrap().items.is_empty());
    let mut second = next(&ours, 2);
    second.tenant = theirs.clone();
    assert!(matches!(store.add_agent_version(second).await.unwrap_err(), Error::NotFound { .. }));
    let archived = store.archive_agent(&theirs, &ours.id, Some(at(3))).await;
    assert!(matches!(archived.unwrap_err(), Error::NotFound { .. }));
    assert_eq!(store.agent(&ours.tenant, &ours.id, None).await.unwrap(), Some(ours));
}

pub async fn pages_are_stable_while_agents_are_added(store: &impl Store) {
    let tenant = tenant("default");
    for number in 0..7 {
        // Two of each moment, so that the id decides as well.
        store.create_agent(agent("default", &format!("agent-{number}"), number / 2)).await.unwrap();
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let got = store.agents(&tenant, page(3, after)).await.unwrap();
        assert!(got.items.len() <= 3);
        seen.extend(got.items.iter().map(|agent| agent.id.to_string()));
        let newer = agent("default", &format!("newer-{}", seen.len()), 100);
        store.create_agent(newer).await.unwrap();
        after = got.next;
        if after.is_none() {
            break;
        }
    }
    let expected: Vec<String> = (0..7).rev().map(|number| format!("agent-{number}")).collect();
    assert_eq!(seen, expected);
}

pub async fn versions_are_listed_in_pages(store: &impl Store) {
    let mut newest = agent("default", "helper", 1);
    store.create_agent(newest.clone()).await.unwrap();
    for updated in 2..=5 {
        newest = next(&newest, updated);
        store.add_agent_version(newest.clone()).await.unwrap();
    }
    let first = store.agent_versions(&newest.tenant, &newest.id, page(2, None)).await.unwrap();
    store.add_agent_version(next(&newest, 6)).await.unwrap();
    let rest = store.agent_versions(&newest.tenant, &newest.id, page(3, first.next)).await.unwrap();
    let numbers: Vec<u32> = first.items.iter().chain(&rest.items).map(|agent| agent.version).collect();
    assert_eq!(numbers, [5, 4, 3, 2, 1]);
    assert_eq!(first.items[0], newest);
    assert_eq!(rest.next, None);
}

pub async fn cursors_of_other_listings_are_refused(store: &impl Store) {
    let tenant = tenant("default");
    for number in 0..2 {
        store.create_agent(agent("default", &format!("agent-{number}"), number)).await.unwrap();
        store.create_session(session(&format!("session-{number}"), number)).await.unwrap();
    }
    let of_agents = store.agents(&tenant, page(1, None)).await.unwrap().next;
    let of_sessions = store.sessions(&tenant, SessionFilter::default(), page(1, None)).await.unwrap().next;
    assert!(of_agents.is_some() && of_sessions.is_some());
    let id = agent_id("agent-0");
    let wrong = [
        store.agents(&tenant, page(1, of_sessions)).await.map(drop),
        store.agent_versions(&tenant, &id, page(1, of_agents.clone())).await.map(drop),
        store.sessions(&tenant, SessionFilter::default(), page(1, of_agents)).await.map(drop),
    ];
    for result in wrong {
        assert!(matches!(result, Err(Error::InvalidCursor)), "{result:?}");
    }
}
