//! Tools that look into the web.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Query;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::response::Html;
use axum::routing::get;
use bytes::Bytes;
use petasos_net::{Client, Egress, Guard, Options};
use petasos_testkit::{Reply, Setup, TestServer};
use petasos_tools::web_search::{SearchEngine, Searxng};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Some pages and a search engine.
async fn web() -> String {
    let search = |Query(query): Query<Value>| async move {
        assert_eq!(query["format"], "json");
        let pages =
            json!([{ "title": format!("About {}", query["q"]), "url": "https://a/", "content": "words" }]);
        axum::Json(json!({ "results": pages }))
    };
    let endless = || async {
        // Few elements: reading them must not take long, however slow the machine is.
        let chunk = Bytes::from(format!("<p>{}</p>", "again ".repeat(20_000)));
        let chunks = futures_util::stream::repeat(Ok::<_, std::convert::Infallible>(chunk));
        ([(CONTENT_TYPE, "text/html")], Body::from_stream(chunks))
    };
    let slow = || async {
        let attributes: String = (0..250_000).map(|number| format!(" a{number}")).collect();
        Html(format!("<p>before<a{attributes}>after"))
    };
    let router = Router::new()
        .route("/slow", get(slow))
        .route("/page", get(|| async { Html("<h1>Hello</h1><script>no()</script><p>world") }))
        .route("/endless", get(endless))
        .route("/picture", get(|| async { ([(CONTENT_TYPE, "image/png")], "\u{0}") }))
        .route(
            "/away",
            get(|| async { (axum::http::StatusCode::FOUND, [(LOCATION, "http://127.0.0.2:1/")]) }),
        )
        .route("/search", get(search));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

fn client(allow: &[&str]) -> Client {
    let allow = allow.iter().map(|text| text.parse().unwrap()).collect();
    let guard = Guard::new(Egress { allow, only_hosts: Vec::new() });
    Client::guarded(&Options::default(), guard)
}

async fn start(allow: &[&str], engine: Option<Arc<dyn SearchEngine>>) -> TestServer {
    let mut setup = Setup::default();
    setup.tools = setup.tools.with_web(client(allow), engine);
    TestServer::start_with(setup).await
}

/// What a call comes to: its text, and whether it failed.
async fn call(server: &TestServer, tool: &str, input: Value) -> (String, bool) {
    let session = server.session().await;
    result(server, &session, Reply::tool_call(tool, input)).await
}

/// What the only call of a turn comes to.
async fn result(server: &TestServer, session: &str, call: Reply) -> (String, bool) {
    server.model.script([call, Reply::text("Done.")]);
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
    let blocks = result.data["payload"]["content"].as_array().unwrap().iter();
    let text = blocks.map(|block| block["text"].as_str().unwrap()).collect();
    (text, result.data["payload"]["is_error"] == true)
}

#[tokio::test]
async fn pages_are_read_as_markdown_and_no_further_than_they_may_be() {
    let web = web().await;
    let server = start(&["127.0.0.1"], None).await;
    let (text, is_error) = call(&server, "web_extract", json!({ "url": format!("{web}/page") })).await;
    assert!(!is_error && text.contains("# Hello\n\nworld") && !text.contains("no()"), "{text}");
    let (text, is_error) = call(&server, "web_extract", json!({ "url": format!("{web}/endless") })).await;
    assert!(!is_error && text.contains("more characters") && text.contains("longer than 2 MB"));
    assert!(text.chars().count() < 100_000);
    for (path, words) in [("picture", "image/png"), ("none", "404"), ("away", "127.0.0.2")] {
        let (text, is_error) = call(&server, "web_extract", json!({ "url": format!("{web}/{path}") })).await;
        assert!(is_error && text.contains(words), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_page_made_to_take_long_holds_nobody_up() {
    let web = web().await;
    let server = start(&["127.0.0.1"], None).await;
    let reading = call(&server, "web_extract", json!({ "url": format!("{web}/slow") }));
    tokio::pin!(reading);
    let mut answered = 0;
    let (text, is_error) = loop {
        tokio::select! {
            result = &mut reading => break result,
            _ = server.client.get("/health") => answered += 1,
        }
    };
    assert!(!is_error && text.contains("before\n[The page takes too long"), "{text}");
    // This test has one thread. If that one had read the page, few would have had an answer meanwhile.
    assert!(answered > 100, "{answered}");
}

#[tokio::test]
async fn a_script_reads_pages_too() {
    let web = web().await;
    let server = start(&["127.0.0.1"], None).await;
    let policy = json!({ "name": "execute_code", "permissionPolicy": { "type": "always_allow" } });
    let agent =
        server.agent_with(json!({ "tools": [{ "type": "agent_toolset", "configs": [policy] }] })).await;
    let session = server.client.session(&agent).await;
    let code = format!("from petasos_tools import web_extract\nprint(web_extract('{web}/page'))");
    let script = Reply::tool_call("execute_code", json!({ "code": code }));
    let (text, is_error) = result(&server, &session, script).await;
    assert!(!is_error && text.contains("# Hello"), "{text}");
}

#[tokio::test]
async fn private_addresses_are_refused() {
    let web = web().await;
    let server = start(&[], None).await;
    for url in [format!("{web}/page"), "http://169.254.169.254/latest/meta-data/".to_owned()] {
        let (text, is_error) = call(&server, "web_extract", json!({ "url": url })).await;
        assert!(is_error && text.contains("egress.allow"), "{text}");
    }
    let (text, is_error) = call(&server, "web_extract", json!({ "url": "file:///etc/passwd" })).await;
    assert!(is_error && text.contains("http or https"), "{text}");
}

#[tokio::test]
async fn a_search_engine_is_asked_if_there_is_one() {
    let web = web().await;
    let engine = Searxng::new(client(&["127.0.0.1"]), &web).unwrap();
    let server = start(&[], Some(Arc::new(engine))).await;
    let (text, is_error) = call(&server, "web_search", json!({ "query": "hats & wings" })).await;
    assert_eq!((text.as_str(), is_error), ("1. About \"hats & wings\"\n   https://a/\n   words", false));

    let server = start(&[], None).await;
    let (text, is_error) = call(&server, "web_search", json!({ "query": "hats" })).await;
    assert!(is_error && text.contains("There is no tool web_search"), "{text}");
    let told = server.model.requests()[0].body["tools"].clone();
    let names: Vec<&str> =
        told.as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert!(!names.contains(&"web_search") && names.contains(&"web_extract"), "{names:?}");
}

#[tokio::test]
async fn a_page_is_read_when_a_person_says_so_if_the_server_asks() {
    let web = web().await;
    let mut setup = Setup::default();
    let pages = client(&["127.0.0.1"]);
    setup.tools = setup.tools.with_web(pages.clone(), None).asking_before_web_extract(pages);
    let server = TestServer::start_with(setup).await;
    let page = Reply::tool_call("web_extract", json!({ "url": format!("{web}/page") }));
    let session = server.session().await;
    server.model.script([page.clone(), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("requires_action"));
    let detail = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    let action = &detail["pendingActions"][0];
    assert_eq!((&action["type"], &action["tool"]), (&json!("tool_confirmation"), &json!("web_extract")));
    let allow = json!({ "type": "user.tool_confirmation", "tool_use_id": action["id"], "result": "allow" });
    server.client.event(&session, allow).await.expect(200);
    let frames = stream.until_idle().await;
    let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
    assert!(result.text().contains("# Hello"), "{}", result.text());
    // An agent whose policy allows it is not asked.
    let policy = json!({ "name": "web_extract", "permissionPolicy": { "type": "always_allow" } });
    let agent =
        server.agent_with(json!({ "tools": [{ "type": "agent_toolset", "configs": [policy] }] })).await;
    let session = server.client.session(&agent).await;
    let (text, is_error) = self::result(&server, &session, page).await;
    assert!(!is_error && text.contains("# Hello"), "{text}");
}
