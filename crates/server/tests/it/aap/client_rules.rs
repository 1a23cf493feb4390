//! What the protocol's own client relies on: streams that it cannot rebuild are streams that lose answers.

use petasos_net::Method;
use petasos_testkit::Reply;
use serde_json::json;

use super::{App, says};

const NAMES: [&str; 8] = [
    "turn_start",
    "text_delta",
    "thinking_delta",
    "text",
    "thinking",
    "tool_call",
    "tool_result",
    "turn_stop",
];

#[tokio::test]
async fn a_stream_has_one_start_one_stop_and_no_names_of_ours() {
    let app = App::start().await;
    for mode in ["message", "delta"] {
        let session = app.session_with_tools(true).await;
        app.server.model.script([
            Reply::thinking("hm").and_text("Let me see. ").and_tool_call("web_search", json!({})),
            Reply::text("Cloudy."),
        ]);
        let shown = app.stream(&session, mode, says("go")).await;
        let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.iter().all(|name| NAMES.contains(name)), "{names:?}");
        assert_eq!((names[0], *names.last().unwrap()), ("turn_start", "turn_stop"));
        assert_eq!(names.iter().filter(|name| name.starts_with("turn_")).count(), 2, "{names:?}");
        let other = if mode == "delta" { ["text", "thinking"] } else { ["text_delta", "thinking_delta"] };
        assert!(names.iter().all(|name| !other.contains(name)), "{names:?}");
    }
}

#[tokio::test]
async fn a_failure_in_the_middle_still_stops_once() {
    let app = App::start().await;
    let session = app.session().await;
    // Every attempt of the call is cut.
    app.server.model.script(std::iter::repeat_n(Reply::text("one two three four").cut_after_chunks(3), 12));
    let shown = app.stream(&session, "delta", says("go")).await;
    let stops: Vec<_> = shown.iter().filter(|(name, _)| name == "turn_stop").collect();
    assert_eq!(stops.len(), 1, "{shown:?}");
    assert_eq!(stops[0].1["stopReason"], "error");
    let text: String = shown.iter().filter_map(|(_, data)| data["delta"].as_str()).collect();
    assert!("one two three four".starts_with(&text), "attempts that say the same are shown once: {text:?}");
}

#[tokio::test]
async fn a_model_that_starts_over_is_not_heard_twice() {
    let app = App::start().await;
    let session = app.session().await;
    let answer = "one two three four five";
    app.server.model.script([Reply::text(answer).cut_after_chunks(3), Reply::text(answer)]);
    let shown = app.stream(&session, "delta", says("go")).await;
    let text: String = shown.iter().filter_map(|(_, data)| data["delta"].as_str()).collect();
    assert_eq!(text, answer);
}

#[tokio::test]
async fn ids_need_no_escaping_and_extra_fields_do_no_harm() {
    let app = App::start().await;
    let body = json!({ "agent": { "name": app.agent, "colour": "red" }, "mood": "good" });
    let id = app.post_session(body).await.expect(201)["sessionId"].as_str().unwrap().to_owned();
    assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'), "{id}");
}

#[tokio::test]
async fn errors_have_the_protocols_shape_whoever_makes_them() {
    let app = App::start().await;
    let client = &app.server.client;
    let stranger = app.server.client_with("pk_wrong");
    for (answer, status) in [
        (stranger.get("/aap/meta").await, 401),
        (client.get("/aap/sessions/session_none").await, 404),
        (client.get("/aap/nothing").await, 404),
        (client.patch("/aap/meta", json!({})).await, 405),
        (client.send(Method::Post, "/aap/sessions", Some("{".into())).await, 400),
    ] {
        assert_eq!(answer.status, status, "{}", answer.body);
        let fields: Vec<&String> = answer.body.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["error"], "{}", answer.body);
        assert!(answer.body["error"].as_str().unwrap().contains(' '), "a sentence: {}", answer.body);
    }
    stranger.get("/v1/agents").await.expect_error(401, "unauthorized");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a preflight is written by hand")]
async fn a_page_of_another_origin_may_call() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let app = App::start().await;
    let address = app.server.url.trim_start_matches("http://").to_owned();
    let mut connection = tokio::net::TcpStream::connect(&address).await.unwrap();
    let preflight = "OPTIONS /aap/sessions HTTP/1.1\r\nhost: x\r\norigin: https://play.example\r\n\
                     access-control-request-method: DELETE\r\n\
                     access-control-request-headers: authorization,content-type\r\nconnection: close\r\n\r\n";
    connection.write_all(preflight.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let answer = answer.to_lowercase();
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    for allowed in ["access-control-allow-origin: *", "authorization,content-type", "delete"] {
        assert!(answer.contains(allowed), "{allowed} is missing in {answer}");
    }
}
