//! A model server that says what a test tells it to.
//!
//! It speaks the three wire formats on one port and knows nothing of our own client: what it sends is written
//! down here once more, from the vendors' descriptions. Time plays no role in it; a test that needs a moment
//! in the middle of an answer puts a [`Gate`] there.
//!
//! ```no_run
//! # async fn example() {
//! use petasos_testkit::model_server::{ModelServer, Reply};
//! use serde_json::json;
//!
//! let model = ModelServer::start().await;
//! model.script([Reply::tool_call("read_file", json!({"path": "a"})), Reply::text("Done.")]);
//! // … point a provider at model.openai_base_url() and run a turn …
//! model.wait_for_requests(2).await;
//! assert_eq!(model.requests()[1].body["messages"][2]["role"], "tool");
//! # }
//! ```

mod encode;
mod gate;
mod playback;
mod providers;
mod reply;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use self::encode::Format;
pub use self::gate::Gate;
use self::playback::Playback;
pub use self::providers::quick_retries;
pub use self::reply::Reply;

const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// The path, with `/v1`.
    pub path: String,
    /// The headers; names are in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body; null if it was not JSON.
    pub body: Value,
}

impl RecordedRequest {
    /// The text of the last user message that has any.
    pub fn last_user_text(&self) -> String {
        let messages = self.body["messages"].as_array().or_else(|| self.body["input"].as_array());
        let users = messages.into_iter().flatten().rev().filter(|message| message["role"] == "user");
        users.map(|message| text_of(&message["content"])).find(|text| !text.is_empty()).unwrap_or_default()
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// The server. It stops listening when it is dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Shared {
    inner: Mutex<Inner>,
    requests: watch::Sender<usize>,
    disconnects: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Inner {
    script: VecDeque<Reply>,
    keyed: Vec<(String, VecDeque<Reply>)>,
    requests: Vec<RecordedRequest>,
    responder: Option<Responder>,
}

/// Makes the reply to a request.
struct Responder(Box<dyn Fn(&RecordedRequest) -> Reply + Send>);

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Responder")
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A test that panicked elsewhere should not hide its message behind ours.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelServer {
    /// Starts a server on a free port of this machine.
    #[expect(clippy::expect_used, reason = "a test without its server can only fail")]
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free local port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::default());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        ModelServer { address, shared, task: task.abort_handle() }
    }

    /// The base URL for providers of kind `openai` and `openai-responses`.
    pub fn openai_base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The base URL for providers of kind `anthropic`.
    pub fn anthropic_base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Appends replies to the script: one for each request, in order.
    pub fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.lock().script.extend(replies);
    }

    /// Replies to requests whose last user message contains `needle`. They go before the script until they
    /// are used up.
    pub fn when(&self, needle: &str, replies: impl IntoIterator<Item = Reply>) {
        self.shared.lock().keyed.push((needle.to_owned(), replies.into_iter().collect()));
    }

    /// Replies to every request as this function says, in place of any script. Requests are no longer kept.
    pub fn respond(&self, responder: impl Fn(&RecordedRequest) -> Reply + Send + 'static) {
        self.shared.lock().responder = Some(Responder(Box::new(responder)));
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.lock().requests.clone()
    }

    /// Waits until there were at least `count` requests.
    pub async fn wait_for_requests(&self, count: usize) {
        let _ = self.shared.requests.subscribe().wait_for(|seen| *seen >= count).await;
    }

    /// How many clients left before their reply was complete.
    pub fn disconnects(&self) -> usize {
        *self.shared.disconnects.borrow()
    }

    /// Waits until at least `count` clients have left before their reply was complete.
    pub async fn wait_for_disconnects(&self, count: usize) {
        let _ = self.shared.disconnects.subscribe().wait_for(|seen| *seen >= count).await;
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let headers = request.headers().iter();
    let headers = headers
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let body = to_bytes(request.into_body(), MAX_REQUEST_BYTES).await.unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let recorded = RecordedRequest { path, headers, body };
    let format = Format::of_path(&recorded.path);
    let reply = take(&shared, recorded);
    match format {
        Some(format) => Playback::new(reply, format, Arc::clone(&shared)).into_response(),
        None => not_found(),
    }
}

/// Records a request and takes the reply to it, in one step so that the two orders are the same.
fn take(shared: &Shared, request: RecordedRequest) -> Reply {
    let text = request.last_user_text();
    let mut inner = shared.lock();
    if let Some(responder) = &inner.responder {
        return responder.0(&request);
    }
    inner.requests.push(request);
    let count = inner.requests.len();
    let keyed = inner.keyed.iter_mut().find(|(needle, replies)| !replies.is_empty() && text.contains(needle));
    let reply = match keyed {
        Some((_, replies)) => replies.pop_front(),
        None => inner.script.pop_front(),
    };
    drop(inner);
    shared.requests.send_replace(count);
    reply.unwrap_or_else(|| Reply::text("The script of the model server is empty."))
}

fn not_found() -> Response {
    let mut response = Response::new(Body::from("the model server has no such path"));
    *response.status_mut() = axum::http::StatusCode::NOT_FOUND;
    response
}
