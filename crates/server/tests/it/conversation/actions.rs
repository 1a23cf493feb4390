//! Answering what a conversation waits for, without another surface.

use petasos_testkit::{Answer, Reply, Setup};
use serde_json::{Value, json};

use super::{Talk, story};

/// A conversation whose turn waits because of one tool call.
async fn waiting(tools: Value, call: (&str, Value)) -> (Talk, u64) {
    let talk = Talk::with(Setup::default(), json!({ "tools": tools })).await;
    talk.server.model.script([Reply::tool_call(call.0, call.1), Reply::text("Done.")]);
    talk.say("go").await;
    let seen = talk.until_waiting(0).await;
    (talk, seen)
}

async fn pending(talk: &Talk) -> Value {
    talk.server.client.get(&talk.path()).await.expect(200)["pending_actions"].clone()
}

async fn answer(talk: &Talk, action: &str, body: Value) -> Answer {
    talk.server.client.post(&format!("{}/actions/{action}", talk.path()), body).await
}

fn refused(answer: Answer, status: u16, code: &str) -> Value {
    assert_eq!((answer.status, answer.body["code"].as_str()), (status, Some(code)), "{}", answer.body);
    answer.body
}

fn toolset() -> Value {
    json!([{ "type": "agent_toolset" }])
}

#[tokio::test]
async fn a_tool_is_confirmed_once() {
    let call = ("write_file", json!({ "path": "a.txt", "content": "x" }));
    let (talk, seen) = Box::pin(waiting(toolset(), call)).await;
    let actions = pending(&talk).await;
    let action = &actions[0];
    assert_eq!((&action["type"], &action["tool"]), (&json!("tool_confirmation"), &json!("write_file")));
    assert_eq!(action["input"], json!({ "path": "a.txt", "content": "x" }));
    // The same as on the other surface, but for the spelling of the times.
    let herm = talk.server.client.get(&format!("/v1/sessions/{}", talk.session)).await.expect(200);
    let herm = &herm["pendingActions"][0];
    assert_eq!((&action["id"], &action["created_at"]), (&herm["id"], &herm["createdAt"]));
    let id = action["id"].as_str().unwrap();
    for (body, field) in [
        (json!({}), "result"),
        (json!({ "result": "perhaps" }), "result"),
        (json!({ "result": "allow", "scope": "for ever" }), "scope"),
        (json!({ "result": "allow", "pattern": "rm *" }), "pattern"),
        (json!({ "answer": "yes" }), "answer"),
        (json!({ "result": "allow", "value": "x" }), "value"),
    ] {
        let body = refused(answer(&talk, id, body).await, 422, "invalid_request");
        assert_eq!(body["details"]["field"], field, "{body}");
    }
    assert_eq!(pending(&talk).await, actions, "what was refused changed nothing");
    let session = answer(&talk, id, json!({ "result": "allow", "scope": "session" })).await.expect(200);
    assert_eq!((&session["id"], &session["pending_actions"]), (&json!(talk.session), &json!([])));
    let again = refused(answer(&talk, id, json!({ "result": "deny" })).await, 409, "conflict");
    assert_eq!(again["details"]["reason"], "action_not_pending");
    let told = ["status processing", "tool", "status typing", "assistant_message Done.", "status ready"];
    assert_eq!(story(&talk.until_over(seen).await), told);
    refused(answer(&talk, id, json!({ "result": "allow" })).await, 409, "conflict");
    assert_eq!(pending(&talk).await, json!([]));
}

#[tokio::test]
async fn a_question_is_answered() {
    let call = ("clarify", json!({ "question": "Which van?", "choices": ["red", "blue"] }));
    let (talk, seen) = Box::pin(waiting(toolset(), call)).await;
    let action = pending(&talk).await[0].clone();
    assert_eq!((&action["type"], &action["question"]), (&json!("clarify"), &json!("Which van?")));
    assert_eq!(action["choices"], json!(["red", "blue"]));
    let id = action["id"].as_str().unwrap();
    answer(&talk, id, json!({ "answer": "blue" })).await.expect(200);
    let events = talk.until_over(seen).await;
    let result = events.iter().find(|event| event["kind"] == "tool").unwrap();
    assert_eq!(result["tool_calls"][0]["result"], json!({ "text": "blue" }));
    refused(answer(&talk, id, json!({ "answer": "red" })).await, 409, "conflict");
}

#[tokio::test]
async fn a_custom_tool_is_answered_by_text_or_blocks() {
    let tools = json!([{ "type": "custom_tool", "name": "check_order", "description": "Looks up." }]);
    for (content, result) in [
        (json!("{\"state\":\"sent\"}"), json!({ "state": "sent" })),
        (json!([{ "type": "text", "text": "lost" }]), json!({ "error": "lost" })),
    ] {
        let (talk, seen) = Box::pin(waiting(tools.clone(), ("check_order", json!({ "id": 7 })))).await;
        let id = pending(&talk).await[0]["id"].as_str().unwrap().to_owned();
        for wrong in [json!([]), json!(7), json!([{ "type": "image", "url": "x" }])] {
            refused(answer(&talk, &id, json!({ "content": wrong })).await, 422, "invalid_request");
        }
        let is_error = result.get("error").is_some();
        answer(&talk, &id, json!({ "content": content, "is_error": is_error })).await.expect(200);
        let events = talk.until_over(seen).await;
        let tool = events.iter().find(|event| event["kind"] == "tool").unwrap();
        assert_eq!(tool["tool_calls"][0]["result"], result);
    }
}

#[tokio::test]
async fn a_secret_is_given_and_is_in_no_event() {
    let call = ("request_secret", json!({ "name": "TOKEN", "prompt": "Your token?" }));
    let (talk, seen) = Box::pin(waiting(toolset(), call)).await;
    let action = pending(&talk).await[0].clone();
    assert_eq!((&action["type"], &action["name"]), (&json!("secret"), &json!("TOKEN")));
    let id = action["id"].as_str().unwrap();
    answer(&talk, id, json!({ "value": "hush-hush" })).await.expect(200);
    talk.until_over(seen).await;
    let shown = format!("{:?}", talk.server.client.events(&talk.session).await);
    assert!(!shown.contains("hush-hush"), "{shown}");
}

#[tokio::test]
async fn unknown_sessions_and_actions_are_told() {
    let talk = Talk::start().await;
    let path = "/conversation/sessions/session_none/actions/toolu_1";
    refused(talk.server.client.post(path, json!({ "result": "allow" })).await, 404, "not_found");
    refused(answer(&talk, "toolu_none", json!({ "result": "allow" })).await, 409, "conflict");
    let reader = json!({ "name": "reader", "scopes": ["sessions:read"] });
    let key = talk.server.client.post("/v1/keys", reader).await.expect(201);
    let reader = talk.server.client_with(key["key"].as_str().unwrap());
    let answer = reader.post(&format!("{}/actions/toolu_none", talk.path()), json!({})).await;
    assert_eq!(answer.status, 403, "{}", answer.body);
}
