//! Checks of [`GrantStore`](crate::GrantStore) and of how grants are made.

use petasos_core::event::{Payload, Scope, ToolConfirmation, Verdict};

use super::make::{agent_id, append, session, session_of, tenant};
use crate::Store;

/// An answer that allows or denies tools, by their names.
fn confirmation(result: Verdict, scope: Scope, tool: Option<&str>) -> Payload {
    let mut tools = tool.into_iter().flat_map(|tools| tools.split(' ')).map(str::to_owned);
    Payload::UserToolConfirmation(ToolConfirmation {
        tool_use_id: "toolu_1".parse().unwrap(),
        result,
        scope,
        reason: None,
        tool: tools.next(),
        pattern: None,
        also: tools.collect(),
    })
}

async fn grants_of(store: &impl Store, user_id: &str) -> Vec<String> {
    let mut grants = store.grants(&tenant("default"), &agent_id("helper"), user_id).await.unwrap();
    grants.sort();
    grants
}

pub async fn allowing_for_good_makes_a_grant(store: &impl Store) {
    store.create_session(session_of("one", "anna")).await.unwrap();
    let always = |tool| confirmation(Verdict::Allow, Scope::Always, Some(tool));
    store.append(append("one", 0, vec![always("terminal"), always("write_file")])).await.unwrap();
    store.append(append("one", 2, vec![always("terminal patch")])).await.unwrap();
    assert_eq!(grants_of(store, "anna").await, ["patch", "terminal", "write_file"]);
    assert!(grants_of(store, "ben").await.is_empty());
    assert!(store.grants(&tenant("other"), &agent_id("helper"), "anna").await.unwrap().is_empty());
    assert!(store.grants(&tenant("default"), &agent_id("writer"), "anna").await.unwrap().is_empty());
    // It outlives the session that it came from.
    store.delete_session(&tenant("default"), &"one".parse().unwrap()).await.unwrap();
    assert_eq!(grants_of(store, "anna").await, ["patch", "terminal", "write_file"]);
}

pub async fn nothing_else_makes_a_grant(store: &impl Store) {
    store.create_session(session_of("one", "anna")).await.unwrap();
    let payloads = vec![
        confirmation(Verdict::Deny, Scope::Always, Some("terminal")),
        confirmation(Verdict::Allow, Scope::Once, Some("terminal")),
        confirmation(Verdict::Allow, Scope::Session, Some("terminal")),
        confirmation(Verdict::Allow, Scope::Always, None),
    ];
    store.append(append("one", 0, payloads)).await.unwrap();
    let stale = vec![confirmation(Verdict::Allow, Scope::Always, Some("terminal"))];
    assert!(store.append(append("one", 2, stale)).await.is_err());
    assert!(grants_of(store, "anna").await.is_empty());
}

pub async fn a_session_without_a_user_makes_no_grant(store: &impl Store) {
    store.create_session(session("one", 0)).await.unwrap();
    let always = confirmation(Verdict::Allow, Scope::Always, Some("terminal"));
    store.append(append("one", 0, vec![always])).await.unwrap();
    assert!(grants_of(store, "").await.is_empty());
}

pub async fn a_grant_can_be_taken_back(store: &impl Store) {
    store.create_session(session_of("one", "anna")).await.unwrap();
    let always = |tool| confirmation(Verdict::Allow, Scope::Always, Some(tool));
    store.append(append("one", 0, vec![always("terminal"), always("write_file")])).await.unwrap();
    let (tenant, agent) = (tenant("default"), agent_id("helper"));
    assert!(store.revoke_grant(&tenant, &agent, "anna", "terminal").await.unwrap());
    assert!(!store.revoke_grant(&tenant, &agent, "anna", "terminal").await.unwrap());
    assert!(!store.revoke_grant(&tenant, &agent, "ben", "write_file").await.unwrap());
    assert_eq!(grants_of(store, "anna").await, ["write_file"]);
}

pub async fn grants_of_all_users_are_listed(store: &impl Store) {
    let always = |tool| confirmation(Verdict::Allow, Scope::Always, Some(tool));
    for (name, user) in [("one", "ben"), ("two", "anna")] {
        store.create_session(session_of(name, user)).await.unwrap();
        store.append(append(name, 0, vec![always("terminal")])).await.unwrap();
    }
    let listed = store.agent_grants(&tenant("default"), &agent_id("helper")).await.unwrap();
    let listed: Vec<(&str, &str)> =
        listed.iter().map(|(user, text)| (user.as_str(), text.as_str())).collect();
    assert_eq!(listed, [("anna", "terminal"), ("ben", "terminal")]);
    assert!(store.agent_grants(&tenant("other"), &agent_id("helper")).await.unwrap().is_empty());
}
