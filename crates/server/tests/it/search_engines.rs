//! The engines of `web_search`: what each is asked, what becomes of its answer, and of its faults.
//!
//! The shapes of requests and answers are those of the vendors' published Python clients: `tavily-python` 0.8.5
//! (`TavilyClient._search`: `POST /search`, a bearer key, `query` and `max_results`; `results` with `title`, `url` and
//! `content`; 401, 403, 429, 432 and 433 as `_handle_error_response` sorts them) and `exa-py` 2.27.0 (`Exa.search`:
//! `POST /search`, `x-api-key`, `query`, `numResults` and `contents`; `results` with `title`, `url` and `highlights`).

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use petasos_net::{Client, Egress, Guard, Options};
use petasos_testkit::{Reply, Setup, TestServer};
use petasos_tools::web_search::{Brave, Exa, SearchEngine, Searxng, Tavily};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::net::TcpListener;

const KEY: &str = "key-that-nobody-may-see";

/// A request as an engine saw it.
struct Seen {
    path: String,
    headers: HeaderMap,
    body: Value,
}

/// An engine that answers every request with what `answer` makes.
#[derive(Clone)]
struct Vendor {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Vendor {
    async fn start(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> Vendor {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let vendor = Vendor { url, seen: Arc::default() };
        let of_router = vendor.clone();
        let router = Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: Bytes| async move {
            let body = serde_json::from_slice(&body).unwrap_or_default();
            of_router.seen.lock().unwrap().push(Seen { path: uri.to_string(), headers, body });
            answer()
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        vendor
    }

    async fn answering(answer: Value) -> Vendor {
        Vendor::start(move || axum::Json(answer.clone()).into_response()).await
    }

    /// Every engine, at this address.
    fn engines(&self) -> [(&'static str, Arc<dyn SearchEngine>); 4] {
        let key = || SecretString::from(KEY);
        [
            ("brave", Arc::new(Brave::new(client(), &self.url, key()).unwrap())),
            ("searxng", Arc::new(Searxng::new(client(), &self.url).unwrap())),
            ("tavily", Arc::new(Tavily::new(client(), &self.url, key()).unwrap())),
            ("exa", Arc::new(Exa::new(client(), &self.url, key()).unwrap())),
        ]
    }
}

fn client() -> Client {
    let guard = Guard::new(Egress { allow: vec!["127.0.0.1".parse().unwrap()], only_hosts: Vec::new() });
    Client::guarded(&Options::default(), guard)
}

/// The text of a call of `web_search` as a model reads it.
async fn searched(engine: Arc<dyn SearchEngine>, input: Value) -> String {
    let mut setup = Setup::default();
    setup.tools = setup.tools.with_web(client(), Some(engine));
    let server = TestServer::start_with(setup).await;
    let session = server.session().await;
    server.model.script([Reply::tool_call("web_search", input), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    let request = server.model.requests().pop().unwrap();
    let messages = request.body["messages"].as_array().unwrap().clone();
    messages.last().unwrap()["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn tavily_is_asked_with_a_bearer_key_and_a_number_of_results() {
    let vendor = Vendor::answering(json!({
        "query": "hats", "response_time": 0.5, "images": [],
        "results": [{ "title": "Hats", "url": "https://a/", "content": "About\n hats.", "score": 0.9 }],
    }))
    .await;
    let engine = Tavily::new(client(), &format!("{}/", vendor.url), SecretString::from(KEY)).unwrap();
    let text = searched(Arc::new(engine), json!({ "query": "hats", "limit": 3 })).await;
    assert_eq!(text, "1. Hats\n   https://a/\n   About hats.");
    let seen = &vendor.seen.lock().unwrap()[0];
    assert_eq!(seen.path, "/search");
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(seen.body, json!({ "query": "hats", "max_results": 3 }));
}

#[tokio::test]
async fn exa_is_asked_with_its_own_header_and_for_highlights() {
    let vendor = Vendor::answering(json!({
        "requestId": "r", "costDollars": { "total": 0.005 },
        "results": [
            { "id": "i", "title": "Hats", "url": "https://a/", "highlights": ["About hats.", "More."] },
            { "id": "j", "title": null, "url": "https://b/", "text": "The text." },
        ],
    }))
    .await;
    let engine = Exa::new(client(), &vendor.url, SecretString::from(KEY)).unwrap();
    let text = searched(Arc::new(engine), json!({ "query": "hats" })).await;
    let expected = "1. Hats\n   https://a/\n   About hats. … More.\n2. \n   https://b/\n   The text.";
    assert_eq!(text, expected);
    let seen = &vendor.seen.lock().unwrap()[0];
    assert_eq!(seen.path, "/search");
    assert_eq!(seen.headers["x-api-key"], KEY);
    let expected = json!({ "query": "hats", "numResults": 8, "contents": { "highlights": true } });
    assert_eq!(seen.body, expected);
}

#[tokio::test]
async fn faults_of_engines_are_clear_errors_without_the_key() {
    let endless = || {
        let pieces = futures_util::stream::repeat(Ok::<_, std::convert::Infallible>("[".repeat(65_536)));
        Body::from_stream(pieces).into_response()
    };
    let with_status = |status: u16| {
        move || {
            // An engine may repeat the key that it was sent.
            let mut answer = format!("{{\"detail\":{{\"error\":\"{KEY}\"}}}}").into_response();
            *answer.status_mut() = status.try_into().unwrap();
            answer.headers_mut().insert("retry-after", "7".parse().unwrap());
            answer
        }
    };
    let faults = [
        (Vendor::start(with_status(401)).await, "401: it refuses the key"),
        (Vendor::start(with_status(429)).await, "429: it was asked too often; try again later, after 7 s"),
        (Vendor::start(with_status(432)).await, "432: the plan of the key is used up"),
        (Vendor::start(with_status(503)).await, "503: it has a problem"),
        (Vendor::start(|| "<html>".into_response()).await, "did not answer with JSON"),
        (Vendor::start(endless).await, "more than 2097152 bytes"),
    ];
    for (vendor, words) in faults {
        for (name, engine) in vendor.engines() {
            let problem = engine.search("hats", 8).await.unwrap_err();
            assert!(problem.contains(name) && problem.contains(words), "{words}: {problem}");
            assert!(!problem.contains(KEY), "{problem}");
        }
    }
    let vendor = Vendor::answering(json!({ "results": "none" })).await;
    for (name, engine) in vendor.engines().into_iter().skip(1) {
        let problem = engine.search("hats", 8).await.unwrap_err();
        assert!(problem.contains(name) && problem.contains("without a list of results"), "{problem}");
    }
}
