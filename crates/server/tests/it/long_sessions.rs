//! Sessions that outgrow what their model can read.

use petasos_core::model::Usage;
use petasos_models::{Catalog, ModelFacts};
use petasos_testkit::model_server::{Gate, RecordedRequest, Reply};
use petasos_testkit::{Setup, TestServer};
use serde_json::{Value, json};

/// A server whose models read 4,000 tokens, so that contexts are compacted at 3,000.
async fn server() -> TestServer {
    let facts = ModelFacts { context_window: Some(4_000), ..ModelFacts::default() };
    let catalog = Catalog { models: [("*".to_owned(), facts)].into(), ..Catalog::default() };
    TestServer::start_with(Setup { catalog, ..Setup::default() }).await
}

/// An answer to a request of so many tokens.
fn counted(text: &str, input_tokens: u64) -> Reply {
    Reply::text(text).usage(Usage { input_tokens, output_tokens: 5, ..Usage::default() })
}

/// About 2,500 tokens.
fn long_text() -> String {
    "Remember the blue door. ".repeat(420)
}

async fn turn(server: &TestServer, session: &str, text: &str) -> Option<String> {
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, text).await.expect(200);
    stream.until_idle().await.last().unwrap().stop().map(str::to_owned)
}

fn refused() -> Reply {
    Reply::status(400).message("This model's maximum context length is 1000 tokens.")
}

fn text_of(request: &RecordedRequest) -> String {
    request.body["messages"].to_string()
}

fn is_summary(request: &RecordedRequest) -> bool {
    text_of(request).contains("You write the notes with which an agent goes on")
}

#[tokio::test]
async fn a_context_is_summarised_before_it_overflows() {
    let server = server().await;
    let session = server.session().await;
    server.model.script([
        counted("Noted.", 3_200),
        counted("Goal: the blue door.", 2_600),
        counted("Blue.", 700),
    ]);
    assert_eq!(turn(&server, &session, &long_text()).await.as_deref(), Some("end_turn"));
    assert_eq!(turn(&server, &session, "What colour?").await.as_deref(), Some("end_turn"));
    let requests = server.model.requests();
    assert_eq!(requests.len(), 3, "one more call made the summary");
    assert!(is_summary(&requests[1]) && text_of(&requests[1]).contains("USER: Remember the blue door."));
    let read = text_of(&requests[2]);
    assert!(
        read.contains("Goal: the blue door.") && read.contains("Noted.") && read.contains("What colour?")
    );
    assert!(!read.contains("Remember the blue door. Remember"), "what was summarised is gone");
    // The log has all of it, and the summary was paid for.
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert_eq!(shown["messages"][0]["content"].as_str().unwrap().len(), long_text().len());
    assert_eq!(shown["usage"]["modelCalls"], 3);
    assert_eq!(shown["usage"]["inputTokens"], 6_500);

    // A session that is folded anew reads the same.
    server.wait_until_asleep().await;
    server.model.script([counted("Still blue.", 750)]);
    turn(&server, &session, "Sure?").await;
    let again = text_of(&server.model.requests()[3]);
    assert!(
        again.contains("Goal: the blue door.") && again.contains("What colour?") && again.contains("Sure?")
    );
}

#[tokio::test]
async fn old_tool_output_goes_first() {
    let server = server().await;
    let session = server.session_with_custom_tool().await;
    let output = format!("BEGIN {} END", "x".repeat(10_000));
    server.model.script([
        Reply::tool_call("check_order", json!({})).usage(Usage { input_tokens: 400, ..Usage::default() }),
        counted("It is on its way.", 2_950),
        counted("Yes.", 600),
    ]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "Where is it?").await.expect(200);
    stream.until_idle().await;
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    let id = shown["pendingActions"][0]["id"].clone();
    let content = json!([{ "type": "text", "text": output }]);
    let result = json!({ "type": "user.custom_tool_result", "tool_use_id": id, "content": content });
    server.client.event(&session, result).await.expect(200);
    stream.until_idle().await;
    assert_eq!(turn(&server, &session, &"And is it really? ".repeat(20)).await.as_deref(), Some("end_turn"));
    let requests = server.model.requests();
    assert_eq!(requests.len(), 3, "no summary was needed");
    let read = text_of(&requests[2]);
    assert!(read.contains("older output were removed") && read.contains("BEGIN") && read.contains("END"));
    assert!(read.len() < 5_000 && read.contains("Where is it?") && read.contains("It is on its way."));
}

#[tokio::test]
async fn a_refused_context_is_compacted_once_and_tried_again() {
    let server = server().await;
    let session = server.session().await;
    server.model.script([Reply::text("Hm."), refused(), Reply::text("Goal: a door."), Reply::text("Here.")]);
    turn(&server, &session, "Where is it?").await;
    assert_eq!(turn(&server, &session, &long_text()).await.as_deref(), Some("end_turn"));
    let requests = server.model.requests();
    assert_eq!(requests.len(), 4);
    let read = text_of(&requests[3]);
    assert!(read.contains("Goal: a door.") && read.contains("[What the user asked for, word for word]"));

    server.model.script([refused(), Reply::text("Goal: still a door."), refused()]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go on").await.expect(200);
    let idle = stream.until_idle().await.last().unwrap().data.clone();
    assert_eq!(idle["payload"]["stop_reason"]["code"], "model_context_too_long");
    assert_eq!(server.model.requests().len(), 7, "and not tried for ever");
}

#[tokio::test]
async fn without_a_summary_the_task_is_not_lost() {
    let server = server().await;
    let session = server.session().await;
    server.model.script([counted("Noted.", 3_200), Reply::status(401), counted("Blue.", 700)]);
    turn(&server, &session, &long_text()).await;
    assert_eq!(turn(&server, &session, "What colour?").await.as_deref(), Some("end_turn"));
    let read = text_of(&server.model.requests()[2]);
    assert!(read.contains("No summary could be made") && read.contains("The user: Remember the blue door."));
    assert!(read.contains("What colour?"));
}

/// A message of so many characters, with a question at its end.
fn long_question(characters: usize) -> String {
    format!("{} What is that?", "x".repeat(characters))
}

#[tokio::test]
async fn a_message_that_has_no_room_is_sent_whole_or_the_turn_fails() {
    let server = server().await;
    let session = server.session().await;
    let question = long_question(14_000);
    server.model.script([counted("An x.", 3_900)]);
    assert_eq!(turn(&server, &session, &question).await.as_deref(), Some("end_turn"));
    let requests = server.model.requests();
    assert_eq!(requests.len(), 1, "there is nothing that notes could be made of");
    assert!(text_of(&requests[0]).contains(&question));

    let session = server.session().await;
    server.model.script([refused(), refused()]);
    assert_eq!(turn(&server, &session, &question).await.as_deref(), Some("error"));
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert_eq!(shown["stopReason"]["code"], "model_context_too_long");
}

#[tokio::test]
async fn a_long_message_stays_whole_when_what_was_said_before_it_is_summarised() {
    let server = server().await;
    let session = server.session().await;
    let question = long_question(9_000);
    server.model.script([counted("Noted.", 2_600), counted("Goal: a door.", 2_600), counted("An x.", 2_800)]);
    turn(&server, &session, &long_text()).await;
    assert_eq!(turn(&server, &session, &question).await.as_deref(), Some("end_turn"));
    let requests = server.model.requests();
    assert!(is_summary(&requests[1]));
    let read = text_of(&requests[2]);
    assert!(read.contains("Goal: a door.") && read.contains(&question));
}

#[tokio::test]
async fn a_compaction_survives_a_restart() {
    let server = server().await;
    let session = server.session().await;
    let gate = Gate::new();
    server.model.script([counted("Noted.", 3_200), Reply::empty().gate(&gate).and_text("lost")]);
    turn(&server, &session, &long_text()).await;
    server.client.message(&session, "What colour?").await.expect(200);
    server.model.wait_for_requests(2).await;
    server.model.script([counted("Goal: the door.", 2_600), counted("Blue.", 700)]);
    let server = server.restart().await;
    let mut stream = server.client.stream(&session, "?after=0").await;
    let frames = stream.until(|frame| !frame.is_delta() && frame.text() == "Blue.").await;
    assert!(!frames.is_empty());
    let read = text_of(server.model.requests().last().unwrap());
    assert!(read.contains("Goal: the door.") && read.contains("What colour?"));
}

/// Providers keep what a request begins with, so it must not change from call to call.
#[tokio::test]
async fn the_beginning_of_all_requests_of_a_session_is_the_same() {
    let server = server().await;
    let agent = server
        .agent_with(json!({ "model": "openai/x", "instructions": "Be brief.", "tools": [{ "type": "agent_toolset" }] }))
        .await;
    let session = server.client.session(&agent).await;
    let todo = Reply::tool_call("todo", json!({ "todos": ["paint the door"] }));
    server.model.script([
        todo,
        counted("Noted.", 3_200),
        counted("Goal: the door.", 2_600),
        counted("Blue.", 700),
    ]);
    turn(&server, &session, &long_text()).await;
    turn(&server, &session, "What colour?").await;
    let requests: Vec<RecordedRequest> =
        server.model.requests().into_iter().filter(|request| !is_summary(request)).collect();
    assert_eq!(requests.len(), 3);
    let prefix = |request: &RecordedRequest| -> String {
        let system: &Value = &request.body["messages"][0];
        format!("{system}{}", request.body["tools"])
    };
    assert!(requests.iter().all(|request| prefix(request) == prefix(&requests[0])));
    assert!(prefix(&requests[0]).contains("Be brief.") && prefix(&requests[0]).contains("todo"));
    assert!(text_of(&requests[2]).contains("[ ] paint the door"), "the list is still there");
}
