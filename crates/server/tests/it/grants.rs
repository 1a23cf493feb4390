//! Permissions that outlive one call: what an answer allows, patterns of commands, and grants that are revoked.

use petasos_testkit::{Reply, TestServer};
use serde_json::{Value, json};

const ASKS: &str = "always_ask";
const ALLOWS: &str = "always_allow";

struct Terminal {
    server: TestServer,
    agent: String,
}

impl Terminal {
    /// A server with an agent whose policy for `terminal` is this.
    async fn with(policy: &str) -> Self {
        let server = TestServer::start().await;
        let config = json!({ "name": "terminal", "permissionPolicy": { "type": policy } });
        let tools = json!([{ "type": "agent_toolset", "configs": [config] }]);
        let agent = server.agent_with(json!({ "tools": tools })).await;
        Terminal { server, agent }
    }

    async fn session(&self, user: &str) -> String {
        let path = format!("/v1/agents/{}/sessions", self.agent);
        let session = self.server.client.post(&path, json!({ "userId": user })).await.expect(201);
        session["id"].as_str().unwrap().to_owned()
    }

    /// Lets the model run a command and returns what the turn waits for afterwards.
    async fn command(&self, session: &str, command: &str) -> Option<Value> {
        let call = Reply::tool_call("terminal", json!({ "command": command }));
        self.server.model.script([call, Reply::text("Done.")]);
        let mut stream = self.server.client.stream(session, "").await;
        self.server.client.message(session, "go").await.expect(200);
        stream.until_idle().await;
        let shown = self.server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
        shown["pendingActions"].get(0).cloned()
    }

    /// Answers what the turn waits for and waits for its end.
    async fn answer(&self, session: &str, action: &Value, fields: Value) {
        let mut stream = self.server.client.stream(session, "").await;
        self.server.client.event(session, confirmation(action, fields)).await.expect(200);
        stream.until_idle().await;
    }

    fn grants(&self) -> String {
        format!("/v1/agents/{}/grants", self.agent)
    }
}

fn confirmation(action: &Value, fields: Value) -> Value {
    let mut event =
        json!({ "type": "user.tool_confirmation", "tool_use_id": action["id"], "result": "allow" });
    for (name, value) in fields.as_object().unwrap() {
        event[name] = value.clone();
    }
    event
}

#[tokio::test]
async fn a_pending_confirmation_says_why_it_asks_and_what_each_answer_allows() {
    let terminal = Terminal::with(ALLOWS).await;
    let session = terminal.session("ada").await;
    let action = terminal.command(&session, "git push --force origin main").await.unwrap();
    assert_eq!(action["reasons"][0]["key"], "git_force_push", "{action}");
    assert!(action["reasons"][0]["text"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(action["patterns"], json!(["git push *", "git *"]));
    let allows = |scope: &str| action["scopes"][scope].as_str().unwrap().to_owned();
    assert!(allows("once").contains("`terminal`"), "{action}");
    for scope in ["session", "always"] {
        assert!(allows(scope).contains("(git_force_push), whichever tool makes them"), "{action}");
    }
    terminal.answer(&session, &action, json!({ "result": "deny" })).await;

    let asks = Terminal::with(ASKS).await;
    let session = asks.session("ada").await;
    let action = asks.command(&session, "echo hello | cat").await.unwrap();
    assert_eq!((&action["reasons"], &action["patterns"]), (&json!([]), &json!([])), "{action}");
}

#[tokio::test]
async fn a_pattern_allows_matching_commands_for_the_session_and_nothing_else() {
    let terminal = Terminal::with(ASKS).await;
    let session = terminal.session("ada").await;
    let action = terminal.command(&session, "echo one").await.unwrap();
    let other = confirmation(&action, json!({ "scope": "session", "pattern": "rm *" }));
    let refused = terminal.server.client.event(&session, other).await;
    assert_eq!(refused.expect_error(400, "validation_error")["field"], "pattern");
    terminal.answer(&session, &action, json!({ "scope": "session", "pattern": "echo *" })).await;

    assert_eq!(terminal.command(&session, "echo two three").await, None);
    for command in ["printf x", "echo a; printf b", "echo $(printf b)", "echo a > file", "HOME=. echo a"] {
        let action = terminal.command(&session, command).await;
        let action = action.unwrap_or_else(|| panic!("{command} did not ask"));
        terminal.answer(&session, &action, json!({ "result": "deny" })).await;
    }
    let elsewhere = terminal.session("ada").await;
    assert!(terminal.command(&elsewhere, "echo two").await.is_some(), "it was allowed for one session");
}

#[tokio::test]
async fn a_pattern_does_not_cover_dangers_that_the_person_did_not_see() {
    let terminal = Terminal::with(ALLOWS).await;
    let session = terminal.session("ada").await;
    let action = terminal.command(&session, "git push --force nowhere main").await.unwrap();
    terminal.answer(&session, &action, json!({ "scope": "session", "pattern": "git *" })).await;
    assert_eq!(terminal.command(&session, "git push -f nowhere other").await, None);
    let action = terminal.command(&session, "git reset --hard").await.unwrap();
    assert_eq!(action["reasons"][0]["key"], "git_discard", "{action}");
}

#[tokio::test]
async fn a_danger_that_was_allowed_for_good_does_not_ask_where_the_policy_does() {
    let terminal = Terminal::with(ASKS).await;
    let session = terminal.session("ada").await;
    let action = terminal.command(&session, "rm -r nothing").await.unwrap();
    terminal.answer(&session, &action, json!({ "scope": "always" })).await;
    let later = terminal.session("ada").await;
    assert_eq!(terminal.command(&later, "rm -r nothing").await, None);
    let action = terminal.command(&later, "echo hello").await;
    assert!(action.is_some(), "what has no danger was not allowed");
}

#[tokio::test]
async fn revoking_a_tool_revokes_its_patterns() {
    let terminal = Terminal::with(ASKS).await;
    let session = terminal.session("ada").await;
    let action = terminal.command(&session, "echo one").await.unwrap();
    terminal.answer(&session, &action, json!({ "scope": "always", "pattern": "echo *" })).await;
    let of_tool = format!("{}/terminal?userId=ada", terminal.grants());
    terminal.server.client.delete(&of_tool).await.expect(200);
    let later = terminal.session("ada").await;
    assert!(terminal.command(&later, "echo two").await.is_some());
}

#[tokio::test]
async fn grants_by_pattern_outlive_the_session_until_they_are_revoked() {
    let terminal = Terminal::with(ASKS).await;
    let session = terminal.session("ada").await;
    let action = terminal.command(&session, "echo one").await.unwrap();
    terminal.answer(&session, &action, json!({ "scope": "always", "pattern": "echo *" })).await;
    let terminal = Terminal { server: terminal.server.restart().await, ..terminal };
    let later = terminal.session("ada").await;
    assert_eq!(terminal.command(&later, "echo two").await, None);
    let of_ben = terminal.session("ben").await;
    let asked = terminal.command(&of_ben, "echo two").await.expect("grants belong to one user");
    terminal.answer(&of_ben, &asked, json!({ "result": "deny" })).await;

    let client = &terminal.server.client;
    let listed = client.get(&terminal.grants()).await.expect(200)["data"].clone();
    let expected =
        json!([{ "id": listed[0]["id"], "userId": "ada", "tool": "terminal", "pattern": "echo *" }]);
    assert_eq!(listed, expected);
    let named = format!("{}/{}", terminal.grants(), listed[0]["id"].as_str().unwrap());
    client.delete(&format!("{named}?userId=ben")).await.expect_error(404, "not_found");
    client.delete(&format!("{named}?userId=ada")).await.expect(200);
    client.delete(&format!("{named}?userId=ada")).await.expect_error(404, "not_found");
    let after = terminal.session("ada").await;
    assert!(terminal.command(&after, "echo three").await.is_some());
}
