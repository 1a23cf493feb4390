//! An HTTP client as an application would have one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::collections::VecDeque;

use bytes::Bytes;
use petasos_net::{Client as HttpClient, Error, Method, Options, Response};
use serde_json::{Value, json};

use crate::within;

const MAX_BODY: usize = 256 * 1024 * 1024;

/// Talks to one server with one key.
#[derive(Debug, Clone)]
pub struct Client {
    http: HttpClient,
    url: String,
    headers: Vec<(String, String)>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body as JSON; null if it is none.
    pub body: Value,
    /// The header `x-request-id`.
    pub request_id: Option<String>,
    /// The header `x-should-retry`.
    pub should_retry: Option<String>,
    /// The header `x-petasos-ignored`.
    pub ignored: Option<String>,
}

impl Answer {
    /// The body of an answer that must have this status.
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }

    /// Checks that the answer is this error, and returns the body.
    pub fn expect_error(self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.body["error"].as_str()), (status, Some(code)), "{}", self.body);
        assert!(self.body["message"].as_str().is_some_and(|text| !text.is_empty()), "{}", self.body);
        self.body
    }
}

impl Client {
    /// A client with a key; an empty key sends none.
    pub fn new(url: &str, key: &str) -> Self {
        let client =
            Client { http: HttpClient::new(&Options::default()), url: url.to_owned(), headers: vec![] };
        if key.is_empty() { client } else { client.with_header("authorization", &format!("Bearer {key}")) }
    }

    /// The same client with another header.
    #[must_use]
    pub fn with_header(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// Sends a request and returns when the answer begins; an error if the server is gone.
    async fn try_open(&self, method: Method, path: &str, body: Option<Bytes>) -> Result<Response, Error> {
        let url = format!("{}{path}", self.url);
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        within(path, self.http.request(method, &url, &headers, body)).await
    }

    /// Sends bytes as they are; none if the server goes away before it has answered.
    pub async fn try_send(&self, method: Method, path: &str, body: Option<Bytes>) -> Option<Answer> {
        let response = self.try_open(method, path, body).await.ok()?;
        let status = response.status();
        let header = |name: &str| response.header(name).map(str::to_owned);
        let (request_id, should_retry) = (header("x-request-id"), header("x-should-retry"));
        let ignored = header("x-petasos-ignored");
        let bytes = within(path, response.bytes_bounded(MAX_BODY)).await.ok()?;
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Some(Answer { status, body, request_id, should_retry, ignored })
    }

    /// Sends bytes as they are.
    pub async fn send(&self, method: Method, path: &str, body: Option<Bytes>) -> Answer {
        self.try_send(method, path, body).await.expect("an answer")
    }

    /// `GET`
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::Get, path, None).await
    }

    /// `POST` with a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::Post, path, Some(body.to_string().into())).await
    }

    /// `PUT` with a JSON body.
    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::Put, path, Some(body.to_string().into())).await
    }

    /// `PATCH` with a JSON body.
    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(Method::Patch, path, Some(body.to_string().into())).await
    }

    /// `DELETE`
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::Delete, path, None).await
    }

    /// Creates an agent and returns its id.
    pub async fn agent(&self, definition: Value) -> String {
        let agent = self.post("/v1/agents", definition).await.expect(201);
        agent["id"].as_str().unwrap().to_owned()
    }

    /// Creates a session with an agent and returns its id.
    pub async fn session(&self, agent_id: &str) -> String {
        let session = self.post(&format!("/v1/agents/{agent_id}/sessions"), json!({})).await.expect(201);
        session["id"].as_str().unwrap().to_owned()
    }

    /// Sends one event to a session.
    pub async fn event(&self, session_id: &str, event: Value) -> Answer {
        self.post(&format!("/v1/sessions/{session_id}/events"), json!({ "events": [event] })).await
    }

    /// Sends a message to a session.
    pub async fn message(&self, session_id: &str, text: &str) -> Answer {
        self.event(session_id, message(text)).await
    }

    /// All events of a session, over as many pages as there are.
    pub async fn events(&self, session_id: &str) -> Vec<Value> {
        let mut events = Vec::new();
        let mut path = format!("/v1/sessions/{session_id}/events?limit=1000");
        loop {
            let page = self.get(&path).await.expect(200);
            events.extend(page["data"].as_array().unwrap().iter().cloned());
            let Some(cursor) = page["nextCursor"].as_str() else { return events };
            path = format!("/v1/sessions/{session_id}/events?limit=1000&cursor={cursor}");
        }
    }

    /// Opens the stream of a session; `query` starts with `?` or is empty.
    pub async fn stream(&self, session_id: &str, query: &str) -> EventStream {
        self.try_stream(session_id, query).await.expect("a stream")
    }

    /// `POST` with a JSON body that is answered by a stream.
    pub async fn post_stream(&self, path: &str, body: Value) -> EventStream {
        let response =
            self.try_open(Method::Post, path, Some(body.to_string().into())).await.expect("a stream");
        assert_eq!(response.status(), 200);
        assert_eq!(response.header("content-type"), Some("text/event-stream"));
        EventStream { response, bytes: Vec::new(), ready: VecDeque::new() }
    }

    /// `GET` that is answered by a stream.
    pub async fn get_stream(&self, path: &str) -> EventStream {
        let response = self.try_open(Method::Get, path, None).await.expect("a stream");
        assert_eq!(response.status(), 200);
        assert_eq!(response.header("content-type"), Some("text/event-stream"));
        EventStream { response, bytes: Vec::new(), ready: VecDeque::new() }
    }

    /// Opens the stream of a session; none if the server is gone.
    pub async fn try_stream(&self, session_id: &str, query: &str) -> Option<EventStream> {
        let path = format!("/v1/sessions/{session_id}/events/stream{query}");
        let response = self.try_open(Method::Get, &path, None).await.ok()?;
        assert_eq!(response.status(), 200);
        assert_eq!(response.header("content-type"), Some("text/event-stream"));
        Some(EventStream { response, bytes: Vec::new(), ready: VecDeque::new() })
    }
}

/// A `user.message` with one text block.
pub fn message(text: &str) -> Value {
    json!({ "type": "user.message", "content": [{ "type": "text", "text": text }] })
}

/// One frame of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The `event:` line.
    pub event: String,
    /// The `id:` line.
    pub id: Option<String>,
    /// The data as JSON.
    pub data: Value,
}

impl Frame {
    /// Whether it is a piece of a message under way.
    pub fn is_delta(&self) -> bool {
        self.data["payload"]["delta"] == true
    }

    /// The text of all content blocks.
    pub fn text(&self) -> String {
        let blocks = self.data["payload"]["content"].as_array();
        blocks.into_iter().flatten().filter_map(|block| block["text"].as_str()).collect()
    }

    /// The type of the stop reason.
    pub fn stop(&self) -> Option<&str> {
        self.data["payload"]["stop_reason"]["type"].as_str()
    }
}

/// An open stream of a session.
pub struct EventStream {
    response: Response,
    bytes: Vec<u8>,
    ready: VecDeque<Frame>,
}

impl EventStream {
    /// The next frame; none when the server ends the stream.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            // A server that is killed cuts the stream, which is an end like any other.
            let chunk = within("the next frame", self.response.chunk()).await.ok().flatten()?;
            self.bytes.extend_from_slice(&chunk);
            while let Some(end) = self.bytes.windows(2).position(|bytes| bytes == b"\n\n") {
                let frame: Vec<u8> = self.bytes.drain(..end + 2).collect();
                self.ready.extend(read_frame(std::str::from_utf8(&frame).unwrap()));
            }
        }
    }

    /// Frames up to and including the first that fits.
    pub async fn until(&mut self, mut fits: impl FnMut(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await.expect("the stream ended too early");
            let found = fits(&frame);
            frames.push(frame);
            if found {
                return frames;
            }
        }
    }

    /// Frames up to and including the next `session.status_idle`.
    pub async fn until_idle(&mut self) -> Vec<Frame> {
        self.until(|frame| frame.event == "session.status_idle").await
    }
}

/// Reads one frame line by line, so that a test sees which lines are there. Comments are no frames.
fn read_frame(text: &str) -> Option<Frame> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let data = field("data: ")?;
    Some(Frame {
        event: field("event: ").unwrap_or_default(),
        id: field("id: "),
        data: serde_json::from_str(&data).unwrap(),
    })
}
