//! MCP servers that hang, flood, lie and die: the model is told, and the turn goes on.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::response::IntoResponse;
use futures_util::StreamExt;
use petasos_testkit::{McpAnswers, McpServer, Reply, TestServer, within};
use petasos_tools::mcp::{Program, Reach, ServerDefinition, Settings, Tenants};
use serde_json::json;

use crate::mcp::{offered, program, result, session_with, settings, start, turn};

/// A turn without tools must end well.
async fn assert_goes_on(server: &TestServer, session: &str) {
    server.model.script([Reply::text("Hello.")]);
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, "hello").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
}

#[tokio::test]
async fn a_call_that_hangs_is_given_up() {
    let short = Settings { call_time: Duration::from_millis(200), ..settings() };
    let server = start([("py", program(&[]))], short, &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    let frames = turn(&server, &session, "mcp_py_hang", json!({})).await;
    let (text, is_error) = result(&frames);
    assert!(is_error && text.contains("did not answer within 0.2 s"), "{text}");
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    let frames = turn(&server, &session, "mcp_py_echo", json!({ "text": "alive" })).await;
    assert_eq!(result(&frames), ("alive".to_owned(), false));
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_an_error_result_and_started_again() {
    let server = start([("py", program(&[]))], settings(), &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    let frames = turn(&server, &session, "mcp_py_die", json!({})).await;
    let (text, is_error) = result(&frames);
    assert!(is_error && text.contains("was lost during the call"), "{text}");
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    let frames = turn(&server, &session, "mcp_py_echo", json!({ "text": "alive" })).await;
    assert_eq!(result(&frames), ("alive".to_owned(), false));
}

#[tokio::test]
async fn a_flood_is_dammed() {
    let short = Settings { call_time: Duration::from_secs(5), ..settings() };
    let server = start([("py", program(&[]))], short, &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    let frames = turn(&server, &session, "mcp_py_flood", json!({})).await;
    let (text, is_error) = result(&frames);
    assert!(is_error && text.len() < 2000, "{} bytes: {}", text.len(), &text[..100]);
    let frames = turn(&server, &session, "mcp_py_echo", json!({ "text": "alive" })).await;
    assert_eq!(result(&frames), ("alive".to_owned(), false));
}

#[tokio::test]
async fn an_endless_event_stream_is_dammed() {
    let remote = McpServer::start(McpAnswers::EndlessEvents).await;
    let definition = ServerDefinition {
        reach: Reach::Http { url: remote.url.clone(), headers: Default::default() },
        tenants: Tenants::All,
    };
    let short = Settings { call_time: Duration::from_secs(20), ..settings() };
    let server = start([("hub", definition)], short, &[]).await;
    let session = session_with(&server, "hub", json!({})).await;
    let frames = turn(&server, &session, "mcp_hub_echo", json!({})).await;
    assert!(result(&frames).1);
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
}

#[tokio::test]
async fn a_huge_body_is_not_read_and_a_call_without_answer_is_given_up() {
    let http = |url: &str| ServerDefinition {
        reach: Reach::Http { url: url.to_owned(), headers: Default::default() },
        tenants: Tenants::All,
    };
    let short = Settings { call_time: Duration::from_secs(1), ..settings() };
    for (answers, settings, words) in [
        (McpAnswers::HugeJson, settings(), "was lost during the call"),
        (McpAnswers::NoAnswer, short, "did not answer within 1 s"),
    ] {
        let remote = McpServer::start(answers).await;
        let server = start([("hub", http(&remote.url))], settings, &[]).await;
        let session = session_with(&server, "hub", json!({})).await;
        let frames = turn(&server, &session, "mcp_hub_echo", json!({})).await;
        let (text, is_error) = result(&frames);
        assert!(is_error && text.contains(words) && text.len() < 2000, "{text}");
        assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
        assert_goes_on(&server, &session).await;
    }
}

#[tokio::test]
async fn a_silent_server_is_not_waited_for_and_the_model_is_told() {
    let remote = McpServer::start(McpAnswers::Silence).await;
    let silent = ServerDefinition {
        reach: Reach::Http { url: remote.url, headers: Default::default() },
        tenants: Tenants::All,
    };
    let short = Settings { wait_time: Duration::from_millis(300), ..settings() };
    let server = start([("silent", silent), ("py", program(&[]))], short, &[]).await;
    let tools = json!([
        { "type": "mcp_toolset", "mcpServerName": "silent" },
        { "type": "mcp_toolset", "mcpServerName": "py" },
    ]);
    let agent = server.agent_with(json!({ "tools": tools })).await;
    let session = server.client.session(&agent).await;
    let began = std::time::Instant::now();
    let frames = turn(&server, &session, "mcp_silent_echo", json!({})).await;
    assert!(began.elapsed() < settings().connect_time / 2, "{:?}", began.elapsed());
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    let requests = server.model.requests();
    let missing = "The MCP server silent cannot be used now (it did not answer within 0.3 s)";
    assert!(requests[0].body["messages"].to_string().contains(missing), "{}", requests[0].body);
    let told = requests[1].body["messages"].to_string();
    assert!(told.contains("There is no tool mcp_silent_echo"), "{told}");
}

#[tokio::test]
async fn lies_are_left_out_or_told() {
    let server = start([("py", program(&[])), ("liar", program(&["lists-nonsense"]))], settings(), &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    let frames = turn(&server, &session, "mcp_py_lying", json!({})).await;
    let told = server.model.requests()[1].body["messages"].to_string();
    assert!(told.contains("There is no tool mcp_py_lying"), "{told}");
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    assert!(!offered(&server).contains(&"mcp_py_lying".to_owned()));

    let frames = turn(&server, &session, "mcp_py_nonsense", json!({})).await;
    assert!(result(&frames).1, "{:?}", result(&frames));
    let frames = turn(&server, &session, "mcp_py_fail", json!({})).await;
    assert_eq!(result(&frames), ("it cannot be done".to_owned(), true));

    let session = session_with(&server, "liar", json!({})).await;
    assert_goes_on(&server, &session).await;
    assert_eq!(offered(&server), [""; 0]);
}

#[tokio::test]
async fn a_server_that_cannot_be_used_costs_its_tools_and_nothing_else() {
    let missing = Program {
        command: "/no/such/program".to_owned(),
        args: Vec::new(),
        env: Default::default(),
        directory: "/".into(),
    };
    let missing = ServerDefinition { reach: Reach::Program(missing), tenants: Tenants::All };
    let short = Settings { connect_time: Duration::from_secs(2), ..settings() };
    let servers = [("dead", program(&["dies"])), ("silent", program(&["hang"])), ("missing", missing)];
    let server = start(servers, short, &[]).await;
    for name in ["dead", "silent", "missing"] {
        let session = session_with(&server, name, json!({})).await;
        assert_goes_on(&server, &session).await;
        assert_eq!(offered(&server), [""; 0], "{name}");
    }
}

#[tokio::test]
async fn programs_see_none_of_our_environment() {
    let server = start([("py", program(&[]))], settings(), &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    let (text, _) = result(&turn(&server, &session, "mcp_py_environment", json!({})).await);
    assert!(text.contains("PATH") && !text.contains("CARGO"), "{text}");
}

/// An MCP server whose stream of its own messages breaks as soon as it is opened. Says when it was.
async fn breaking() -> (String, tokio::sync::mpsc::UnboundedReceiver<Instant>) {
    let (opened, openings) = tokio::sync::mpsc::unbounded_channel();
    let stream = move || async move {
        let _ = opened.send(Instant::now());
        let begins = futures_util::stream::iter([Ok("id: 1\ndata: {}\n\n")]);
        // An answer that breaks before its beginning has gone out would be no stream at all.
        let breaks = futures_util::stream::once(async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Err(std::io::Error::other("broken"))
        });
        let body = axum::body::Body::from_stream(begins.chain(breaks));
        ([(axum::http::header::CONTENT_TYPE, "text/event-stream")], body)
    };
    let answer = |axum::Json(message): axum::Json<serde_json::Value>| async move {
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "breaking", "version": "1" },
            }),
            Some("tools/list") => {
                json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
            }
            _ => return StatusCode::ACCEPTED.into_response(),
        };
        let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        ([("mcp-session-id", "one")], axum::Json(reply)).into_response()
    };
    let router = axum::Router::new().route("/mcp", axum::routing::post(answer).get(stream));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, openings)
}

#[tokio::test]
async fn a_stream_that_breaks_at_once_is_opened_again_with_growing_pauses() {
    let (url, mut openings) = breaking().await;
    let reach = Reach::Http { url, headers: Default::default() };
    let server = start([("hub", ServerDefinition { reach, tenants: Tenants::All })], settings(), &[]).await;
    let session = session_with(&server, "hub", json!({})).await;
    assert_goes_on(&server, &session).await;
    assert!(offered(&server).contains(&"mcp_hub_echo".to_owned()));
    let mut times = Vec::new();
    for _ in 0..3 {
        times.push(within("the stream to be opened", openings.recv()).await.unwrap());
    }
    let pauses: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let at_least = [Duration::from_millis(900), Duration::from_millis(1900)];
    assert!(pauses.iter().zip(at_least).all(|(pause, least)| *pause >= least), "{pauses:?}");
}
