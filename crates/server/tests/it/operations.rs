//! What operators look at: metrics, CORS, the description of the API.

use petasos_server::RateLimit;
use petasos_testkit::{Reply, Setup, TestServer, within};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The whole answer to a raw request.
#[expect(clippy::disallowed_methods, reason = "this speaks raw HTTP")]
async fn raw(server: &TestServer, request: &str) -> String {
    let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within("an answer", stream.read_to_string(&mut answer)).await.unwrap();
    answer.to_lowercase()
}

async fn metrics_with(server: &TestServer, key: &str) -> String {
    raw(server, &format!("GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{key}\r\n")).await
}

/// What `/metrics` shows.
pub(crate) async fn metrics(server: &TestServer) -> String {
    metrics_with(server, KEY).await
}

const KEY: &str = "authorization: Bearer pk_admin_key_of_tests\r\n";

#[tokio::test]
async fn metrics_count_what_happens() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.model.script([Reply::tool_call("todo", serde_json::json!({ "todos": [] })), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    let shown = metrics(&server).await;
    for line in [
        "petasos_turns_total{outcome=\"end_turn\"} 1",
        "petasos_model_calls_total{provider=\"openai\",outcome=\"ok\"} 2",
        "petasos_tokens_total{provider=\"openai\",kind=\"output\"} 10",
        "petasos_tool_calls_total{outcome=\"ok\"} 1",
        "petasos_model_call_seconds_count{provider=\"openai\"} 2",
        "petasos_first_token_seconds_count{provider=\"openai\"} 1",
        "petasos_open_streams 1",
        "petasos_max_connections 20000",
        "petasos_connections_turned_away_total 0",
        "petasos_http_requests_total{method=\"post\",path=\"/v1/sessions/{sessionid}/events\",status=\"200\"} 1",
    ] {
        assert!(shown.contains(line), "{line} is missing in\n{shown}");
    }
    assert!(shown.contains("petasos_store_commits"));
    assert!(!shown.contains(&session), "ids are no labels");
    assert!(metrics_with(&server, "").await.starts_with("http/1.1 401"));
}

#[tokio::test]
async fn a_method_that_somebody_made_up_is_no_label() {
    let server = TestServer::start().await;
    for method in ["XTPIIIC", "GETX", "BREW", "get"] {
        let request = format!("{method} /nope HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert!(raw(&server, &request).await.starts_with("http/1.1 401"));
    }
    let shown = metrics(&server).await;
    let others = "petasos_http_requests_total{method=\"other\",path=\"none\",status=\"401\"} 4";
    assert!(shown.contains(others), "{shown}");
    assert!(!shown.contains("brew"), "{shown}");
}

#[tokio::test]
async fn a_provider_that_somebody_made_up_is_no_label() {
    let server = TestServer::start().await;
    let agent = server.agent_with(serde_json::json!({ "model": "made-up/model" })).await;
    let session = server.client.session(&agent).await;
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("error"));
    let shown = metrics(&server).await;
    assert!(shown.contains("petasos_model_calls_total{provider=\"unknown\",outcome=\"error\"} 1"), "{shown}");
    assert!(!shown.contains("made-up"), "{shown}");
}

#[tokio::test]
async fn metrics_are_for_administrators() {
    let server = TestServer::start().await;
    let scopes = ["agents:read", "agents:write", "sessions:read", "sessions:write"];
    for tenant in ["acme", "default"] {
        let key =
            server.client.post("/v1/keys", json!({ "tenant": tenant, "scopes": scopes })).await.expect(201);
        let client = server.client_with(key["key"].as_str().unwrap());
        client.get("/metrics").await.expect_error(403, "forbidden");
    }
    assert!(metrics(&server).await.starts_with("http/1.1 200"));
}

#[tokio::test]
async fn metrics_can_be_public() {
    let server = TestServer::start_with(Setup { metrics_public: true, ..Setup::default() }).await;
    assert!(metrics_with(&server, "").await.starts_with("http/1.1 200"));
}

#[tokio::test]
async fn web_pages_may_ask_without_a_key_whether_they_may_ask() {
    let server = TestServer::start().await;
    let preflight = "OPTIONS /v1/agents HTTP/1.1\r\nhost: x\r\nconnection: close\r\norigin: https://app.example\r\n\
                     access-control-request-method: POST\r\naccess-control-request-headers: authorization\r\n\r\n";
    let answer = raw(&server, preflight).await;
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    assert!(answer.contains("access-control-allow-origin: *"), "{answer}");
    assert!(answer.contains("access-control-allow-headers: authorization"), "{answer}");
    assert!(answer.contains("post"), "{answer}");
    let refused = raw(
        &server,
        "GET /v1/agents HTTP/1.1\r\nhost: x\r\nconnection: close\r\norigin: https://a.b\r\n\r\n",
    )
    .await;
    assert!(
        refused.starts_with("http/1.1 401") && refused.contains("access-control-allow-origin"),
        "{refused}"
    );
    assert!(
        refused.contains(
            "access-control-expose-headers: x-request-id,x-should-retry,x-petasos-ignored,retry-after"
        ),
        "{refused}"
    );
}

#[tokio::test]
async fn the_api_describes_itself() {
    let server = TestServer::start().await;
    let description = server.client.get("/openapi.json").await.expect(200);
    assert_eq!(description["openapi"], "3.1.0");
    assert!(description["paths"]["/v1/sessions/{sessionId}/events"]["post"].is_object());
    // Where nothing new is made, the answer is another one, and described as well.
    let responses = |path: &str, method: &str| description["paths"][path][method]["responses"].clone();
    assert!(responses("/routines/{routineId}", "put")["200"].is_object());
    assert!(responses("/routines/{routineId}", "put")["201"].is_object());
    assert!(responses("/routines/{routineId}/trigger", "post")["200"].is_object());
    assert!(responses("/routines/{routineId}/trigger", "post")["202"].is_object());
    server.client_with("").get("/openapi.json").await.expect_error(401, "unauthorized");
}

#[tokio::test]
async fn a_key_that_asks_too_often_is_told_when_to_come_back() {
    let one = std::num::NonZeroU32::MIN;
    let limit = RateLimit { per_second: one, burst: one.saturating_add(1) };
    let server = TestServer::start_with(Setup { rate_limit: Some(limit), ..Setup::default() }).await;
    let request = format!("GET /v1/agents HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{KEY}\r\n");
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(raw(&server, &request).await);
    }
    let refused = answers.iter().find(|answer| answer.starts_with("http/1.1 429")).expect("a limit");
    assert!(refused.contains("retry-after: 1") && refused.contains("rate_limited"), "{refused}");
    assert!(answers[0].starts_with("http/1.1 200"));
    server.client_with("").get("/health").await.expect(200);
}
