//! Context that a hook adds.

use petasos_testkit::Reply;
use serde_json::{Value, json};

use super::world::{Scripts, free_session, runs, turn};

fn user_text(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    let user = messages.iter().rfind(|message| message["role"] == "user").unwrap();
    match &user["content"] {
        Value::String(text) => text.clone(),
        parts => parts.as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect(),
    }
}

#[tokio::test]
async fn it_follows_the_users_text_in_every_call_of_the_turn_and_is_gone_in_the_next() {
    let scripts = Scripts::new();
    // It speaks in the first turn only.
    let body = r#"cat > /dev/null
if [ ! -e $HERE/spoke ]; then touch $HERE/spoke; echo '{"context": "It rains in Paris."}'; fi"#;
    let (first, second) = (scripts.script("first.sh", body), r#"{"context": "Bring an umbrella."}"#);
    let second = scripts.script(
        "second.sh",
        &format!("cat > /dev/null; if [ ! -e $HERE/too ]; then touch $HERE/too; echo '{second}'; fi"),
    );
    let hooks = json!({ "pre_llm_call": [{ "command": first }, { "command": second }] });
    let server = scripts.server(hooks).await;
    let session = free_session(&server).await;
    server.model.script(runs("true"));
    server.model.script([Reply::text("Again.")]);
    turn(&server, &session, "Weather?").await;
    turn(&server, &session, "And now?").await;
    let requests = server.model.requests();
    let expected = "Weather?\n\nIt rains in Paris.\n\nBring an umbrella.";
    assert_eq!(user_text(&requests[0].body), expected);
    assert_eq!(user_text(&requests[1].body), expected, "in every call of the turn");
    assert_eq!(user_text(&requests[2].body), "And now?");
    assert!(!requests[2].body.to_string().contains("umbrella"), "gone in the next turn");
    let messages = requests[0].body["messages"].as_array().unwrap();
    let elsewhere = messages.iter().filter(|message| message["role"] != "user");
    assert!(
        !json!(elsewhere.collect::<Vec<_>>()).to_string().contains("umbrella"),
        "never in the system prompt"
    );
    let stored = json!(server.client.events(&session).await).to_string();
    assert!(!stored.contains("umbrella"), "never stored");
}

#[tokio::test]
async fn what_is_no_context_adds_nothing() {
    for answer in [r#"{"context": ""}"#, r#"{"context": "  "}"#, r#"{"context": 7}"#, r#""text""#, "{}"] {
        let scripts = Scripts::new();
        let hook = scripts.script("context.sh", &format!("cat > /dev/null; echo '{answer}'"));
        let server = scripts.server(json!({ "pre_llm_call": [{ "command": hook }] })).await;
        let session = free_session(&server).await;
        server.model.script([Reply::text("Hello.")]);
        turn(&server, &session, "Hi").await;
        assert_eq!(user_text(&server.model.requests()[0].body), "Hi", "{answer}");
    }
}
