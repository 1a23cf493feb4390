//! What the log is as a conversation.

use petasos_testkit::{Gate, Reply, Setup};
use serde_json::{Value, json};

use super::{Talk, story};

const ALLOW: fn() -> Value = || json!({ "tools": [{ "type": "agent_toolset", "defaultConfig": { "permissionPolicy": { "type": "always_allow" } } }] });

#[tokio::test]
async fn a_message_is_answered() {
    let talk = Talk::start().await;
    talk.server.model.script([Reply::text("Yes, there is one.")]);
    let posted = talk.say("Can I rent a van?").await;
    assert_eq!((posted["kind"].as_str(), posted["offset"].as_u64()), (Some("user_message"), Some(0)));
    let events = talk.until_over(0).await;
    assert_eq!(events[0], posted);
    let told =
        ["user_message Can I rent a van?", "status acknowledged", "status processing", "status typing"];
    assert_eq!(
        story(&events),
        [&told[..], &["assistant_message Yes, there is one.", "status ready"]].concat()
    );
    assert!(posted["created_at"].as_str().unwrap().ends_with('Z'));
    let ready = events.last().unwrap();
    assert_eq!(
        ready.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["kind", "offset", "created_at", "status", "stage", "error_detail"]
    );
    assert!(ready["stage"].is_null() && ready["error_detail"].is_null());
}

#[tokio::test]
async fn what_is_said_before_tools_is_a_preamble_and_their_results_are_one_event() {
    let talk = Talk::with(Setup::default(), ALLOW()).await;
    let calls = [("todo", json!({ "todos": ["look"] })), ("fly", json!({ "to": "Mars" }))];
    talk.server.model.script([Reply::text("Let me check.").and_tool_calls(calls), Reply::text("Done.")]);
    talk.say("go").await;
    let events = talk.until_over(0).await;
    let told = ["user_message go", "status acknowledged", "status processing", "status typing"];
    let then = ["preamble Let me check.", "tool", "status typing", "assistant_message Done.", "status ready"];
    assert_eq!(story(&events), [&told[..], &then].concat());
    let calls = events[5]["tool_calls"].as_array().unwrap();
    assert_eq!(calls[0]["tool_id"], "built-in:todo");
    assert_eq!(calls[0]["arguments"], json!({ "todos": ["look"] }));
    assert!(calls[0]["result"].is_object() && calls[0]["result"]["error"].is_null(), "{calls:?}");
    assert_eq!(calls[1]["tool_id"], "built-in:fly");
    assert!(calls[1]["result"]["error"].as_str().unwrap().contains("no tool fly"), "{calls:?}");
    // A reader who comes in the middle of the turn is shown the same.
    for event in &events {
        let offset = event["offset"].as_u64().unwrap();
        assert_eq!(talk.read(&format!("min_offset={offset}")).await[0], *event);
    }
}

#[tokio::test]
async fn a_custom_tool_waits_and_its_own_json_is_the_result() {
    let tools = json!([{ "type": "custom_tool", "name": "check_order", "description": "Looks up." }]);
    let talk = Talk::with(Setup::default(), json!({ "tools": tools })).await;
    talk.server.model.script([Reply::tool_call("check_order", json!({ "id": 7 })), Reply::text("Sent.")]);
    talk.say("Where is it?").await;
    let waiting = talk.until_waiting(0).await;
    let pending = talk.server.client.get(&format!("/v1/sessions/{}", talk.session)).await.expect(200);
    let content = json!([{ "type": "text", "text": "{\"state\":\"sent\"}" }]);
    let result = json!({ "type": "user.custom_tool_result", "tool_use_id": pending["pendingActions"][0]["id"], "content": content });
    talk.server.client.event(&talk.session, result).await.expect(200);
    let events = talk.until_over(waiting).await;
    let told = ["tool", "status processing", "status typing", "assistant_message Sent.", "status ready"];
    assert_eq!(story(&events), told);
    let call =
        json!({ "tool_id": "custom:check_order", "arguments": { "id": 7 }, "result": { "state": "sent" } });
    assert_eq!(events[0]["tool_calls"], json!([call]));
}

#[tokio::test]
async fn what_ran_is_shown_although_the_turn_is_interrupted_before_all_is_answered() {
    let mut fields = ALLOW();
    let custom = json!({ "type": "custom_tool", "name": "check_order", "description": "Looks up." });
    fields["tools"].as_array_mut().unwrap().push(custom);
    let talk = Talk::with(Setup::default(), fields).await;
    let asked = ("check_order", json!({ "id": 7 }));
    let mut seen = 0;
    for (calls, shown) in [
        (vec![("todo", json!({ "todos": ["look"] })), asked.clone()], vec!["tool", "status cancelled"]),
        (vec![asked], vec!["status cancelled"]),
    ] {
        talk.server.model.script([Reply::tool_calls(calls)]);
        talk.say("go").await;
        let waiting = talk.until_waiting(seen).await;
        talk.server.client.event(&talk.session, json!({ "type": "user.interrupt" })).await.expect(200);
        let events = talk.until_over(waiting).await;
        seen = events.last().unwrap()["offset"].as_u64().unwrap() + 1;
        assert_eq!(story(&events), shown);
        if let Some(calls) = events[0]["tool_calls"].as_array() {
            assert!(calls[0]["result"]["error"].is_null(), "{calls:?}");
            assert!(calls[1]["result"]["error"].as_str().unwrap().contains("interrupted"), "{calls:?}");
        }
    }
}

#[tokio::test]
async fn a_turn_that_fails_says_so_without_secrets() {
    let talk = Talk::start().await;
    talk.server.model.script([Reply::status(401).message("the key sk-123 at http://10.0.0.1/v1 is wrong")]);
    talk.say("hello").await;
    let events = talk.until_over(0).await;
    let end = events.last().unwrap();
    assert_eq!(end["status"], "error");
    let detail = end["error_detail"].as_str().unwrap();
    assert!(!detail.contains("sk-123") && !detail.contains("10.0.0.1"), "{detail}");
    assert!(!story(&events).contains(&"status ready".to_owned()), "{events:?}");
}

#[tokio::test]
async fn a_second_message_ends_the_turn_under_way_and_both_are_answered() {
    let talk = Talk::start().await;
    let gate = Gate::new();
    talk.server.model.script([Reply::text("The bl").and_text("ue one").gate(&gate), Reply::text("Both.")]);
    talk.say("Which van?").await;
    let seen = talk.until_status(0, "typing").await;
    let second = talk.say("And which car?").await;
    assert!(second["offset"].as_u64().unwrap() >= seen);
    let events = talk.until_over(second["offset"].as_u64().unwrap()).await;
    gate.open();
    let before = talk.read("kinds=status,assistant_message&min_offset=0").await;
    assert_eq!(
        story(&before),
        [
            "status acknowledged",
            "status processing",
            "status typing",
            "status cancelled",
            "status acknowledged",
            "status processing",
            "status typing",
            "assistant_message Both.",
            "status ready"
        ]
    );
    assert_eq!(events.last().unwrap()["status"], "ready");
    let asked = talk.server.model.requests().last().unwrap().body.to_string();
    assert!(asked.contains("Which van?") && asked.contains("And which car?"), "{asked}");
}

#[tokio::test]
async fn a_message_takes_the_place_of_an_answer_that_a_turn_waits_for() {
    let tools = json!([{ "type": "custom_tool", "name": "check_order", "description": "Looks up." }]);
    let talk = Talk::with(Setup::default(), json!({ "tools": tools })).await;
    talk.server.model.script([Reply::tool_call("check_order", json!({ "id": 7 })), Reply::text("Fine.")]);
    talk.say("Where is it?").await;
    talk.until_waiting(0).await;
    let posted = talk.say("Never mind").await;
    let events = talk.until_over(posted["offset"].as_u64().unwrap()).await;
    assert_eq!(story(&events)[3..], ["status typing", "assistant_message Fine.", "status ready"]);
    // Herm keeps its own rule.
    let gate = Gate::new();
    talk.server.model.script([Reply::text("slow").gate(&gate)]);
    talk.say("again").await;
    talk.server.client.message(&talk.session, "too").await.expect_error(409, "turn_in_progress");
    gate.open();
}

#[tokio::test]
async fn a_person_answers_and_the_agent_stays_silent() {
    let talk = Talk::start().await;
    let mode = |mode: &str| json!({ "mode": mode });
    let session = talk.server.client.patch(&talk.path(), mode("manual")).await.expect(200);
    assert_eq!(session["mode"], "manual");
    talk.say("Is anybody there?").await;
    let said = json!({ "kind": "human_agent_message", "text": "I am.", "author": "Ann" });
    let said = talk.checked(talk.post(said).await.expect(201));
    assert_eq!((said["text"].as_str(), said["author"].as_str()), (Some("I am."), Some("Ann")));
    talk.server.client.message(&talk.session, "Good.").await.expect(200);
    talk.server.client.patch(&talk.path(), mode("auto")).await.expect(200);
    talk.server.wait_until_asleep().await;
    let told = ["user_message Is anybody there?", "human_agent_message I am.", "user_message Good."];
    assert_eq!(story(&talk.read("wait_for_data=0").await), told);
    assert!(talk.server.model.requests().is_empty());
    // The agent has heard it all.
    talk.server.model.script([Reply::text("Hello.")]);
    let posted = talk.say("And you?").await;
    talk.until_over(posted["offset"].as_u64().unwrap()).await;
    let asked = talk.server.model.requests()[0].body.to_string();
    for heard in ["Is anybody there?", "I am.", "Ann", "Good.", "And you?"] {
        assert!(asked.contains(heard), "{heard}: {asked}");
    }
}

#[tokio::test]
async fn a_person_who_takes_over_ends_the_turn() {
    let talk = Talk::start().await;
    let gate = Gate::new();
    talk.server.model.script([Reply::text("I").and_text(" think").gate(&gate)]);
    talk.say("Well?").await;
    gate.reached().await;
    talk.server.client.patch(&talk.path(), json!({ "mode": "manual" })).await.expect(200);
    assert_eq!(story(&talk.until_over(0).await).last().unwrap(), "status cancelled");
    gate.open();
}
