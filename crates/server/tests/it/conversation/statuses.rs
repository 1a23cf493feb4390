//! How far a turn is: taken up, at the model, with a reply on its way.

use petasos_testkit::{Gate, Reply, Setup};
use serde_json::json;

use super::{Talk, story};

fn count(story: &[String], status: &str) -> usize {
    story.iter().filter(|told| **told == format!("status {status}")).count()
}

#[tokio::test]
async fn typing_is_shown_while_the_reply_is_on_its_way() {
    let talk = Talk::start().await;
    let gate = Gate::new();
    talk.server.model.script([Reply::text("The blue").gate(&gate).and_text(" one.")]);
    let mut stream = talk.server.client.stream(&talk.session, "").await;
    talk.say("Which van?").await;
    talk.until_status(0, "typing").await;
    let begun = story(&talk.read("wait_for_data=0").await);
    assert_eq!(begun[1..], ["status acknowledged", "status processing", "status typing"]);
    // Other surfaces have the text itself, and nothing that says that it is on its way.
    let shown = stream.until(|frame| frame.is_delta() && frame.text().contains("The")).await;
    assert!(shown.iter().all(|frame| !frame.event.contains("typing")), "{shown:?}");
    gate.open();
    let events = talk.until_over(0).await;
    assert_eq!(story(&events)[3..], ["status typing", "assistant_message The blue one.", "status ready"]);
    for event in talk.server.client.events(&talk.session).await {
        assert_ne!(event["payload"]["type"], "session.typing");
    }
}

#[tokio::test]
async fn text_that_comes_after_reasoning_and_in_one_piece_is_announced_once() {
    let talk = Talk::start().await;
    talk.server.model.script([Reply::thinking("Hm.").and_text("Yes."), Reply::tool_call("todo", json!({}))]);
    talk.say("Well?").await;
    let told = story(&talk.until_over(0).await);
    for status in ["acknowledged", "processing", "typing", "ready"] {
        assert_eq!(count(&told, status), 1, "{told:?}");
    }
}

#[tokio::test]
async fn a_step_without_text_is_not_announced() {
    let talk = Talk::start().await;
    talk.server.model.script([Reply::tool_call("todo", json!({ "todos": ["x"] })), Reply::text("Done.")]);
    talk.say("go").await;
    let told = story(&talk.until_over(0).await);
    let expected = ["status acknowledged", "status processing", "tool", "status typing"];
    assert_eq!(told[1..], [&expected[..], &["assistant_message Done.", "status ready"]].concat());
}

#[tokio::test]
async fn a_reply_that_is_asked_for_again_after_a_restart_is_announced_once() {
    let mut talk = Talk::start().await;
    let gate = Gate::new();
    talk.server
        .model
        .script([Reply::text("Half").gate(&gate).and_text(" a reply"), Reply::text("All of it.")]);
    talk.say("Well?").await;
    talk.until_status(0, "typing").await;
    talk.server = talk.server.restart().await;
    let events = talk.until_over(0).await;
    gate.open();
    let told = story(&events);
    assert_eq!(told[told.len() - 2..], ["assistant_message All of it.", "status ready"]);
    for status in ["acknowledged", "processing", "typing"] {
        assert_eq!(count(&told, status), 1, "{told:?}");
    }
}

#[tokio::test]
async fn typing_belongs_to_sessions_that_were_opened_as_conversations() {
    let mut talk = Talk::start().await;
    let gate = Gate::new();
    talk.session = talk.server.client.session("interactiveAgent").await;
    talk.server.model.script([Reply::text("A").gate(&gate).and_text("B")]);
    talk.server.client.message(&talk.session, "hello").await.expect(200);
    gate.reached().await;
    gate.open();
    let told = story(&talk.until_over(0).await);
    assert_eq!(
        told[1..],
        ["status acknowledged", "status processing", "assistant_message AB", "status ready"]
    );
    // A conversation that Parlant's clients opened is one.
    let opened = json!({ "agent_id": "interactiveAgent" });
    let opened = talk.server.client.post("/parlant/sessions", opened).await.expect(201);
    talk.session = opened["id"].as_str().unwrap().to_owned();
    talk.server.model.script([Reply::text("Hi.")]);
    talk.say("hello").await;
    assert_eq!(count(&story(&talk.until_over(0).await), "typing"), 1);
}

#[tokio::test]
async fn a_turn_that_fails_ends_with_the_error() {
    let talk = Talk::with(Setup::default(), json!({})).await;
    talk.server.model.script([Reply::status(401)]);
    talk.say("hello").await;
    let told = story(&talk.until_over(0).await);
    assert_eq!(told[1..], ["status acknowledged", "status processing", "status error"]);
}
