//! How much memory readers cost the server: many at once, of much, that do not read.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::installation::{Installation, Server, answer};

/// Bytes of a megabyte.
const MB: u64 = 1024 * 1024;
/// A session's messages. All of them have 8 MB, and one page of events does not hold them.
const MESSAGES: usize = 21;
const MESSAGE_BYTES: usize = 400 * 1024;
/// Who reads at the same time.
const READERS: usize = 8;
/// The most that all of them may cost: a few events for each, and not the whole session.
const READERS_MAY_COST: u64 = 60 * MB;

/// A session that was seeded with large messages, in a server that has just started.
struct LargeSession {
    server: Server,
    key: String,
    id: String,
    _installation: Installation,
}

impl LargeSession {
    fn new() -> Self {
        let installation = Installation::new();
        installation.write("config.yaml", "limits: { body_bytes: 100000000 }\n");
        let server = installation.serve();
        let key = server.shown_key().unwrap().to_owned();
        let (status, agent) =
            server.request("POST", "/v1/agents", &key, r#"{"name":"Test","model":"demo/echo"}"#);
        assert_eq!(status, 201, "{agent}");
        let text = "x".repeat(MESSAGE_BYTES);
        let message = |index: usize| {
            let role = if index.is_multiple_of(2) { "user" } else { "assistant" };
            json!({ "role": role, "content": format!("{index} {text}") })
        };
        let messages: Vec<Value> = (0..MESSAGES).map(message).collect();
        let body = json!({ "agent": { "name": agent["id"] }, "messages": messages }).to_string();
        let (status, session) = server.request("POST", "/aap/sessions", &key, &body);
        assert_eq!(status, 201, "{session}");
        let id = session["sessionId"].as_str().unwrap().to_owned();
        server.stop();
        // The memory that the seed took is not that of readers.
        LargeSession { server: installation.serve(), key, id, _installation: installation }
    }

    /// Asks for something and reads no more than the beginning of the answer.
    fn begin(&self, path: &str) -> BufReader<TcpStream> {
        let mut answer = BufReader::with_capacity(1024, self.server.open("GET", path, &self.key, ""));
        let mut status = String::new();
        answer.read_line(&mut status).unwrap();
        assert!(status.contains("200"), "{path}: {status}");
        answer
    }

    /// Checks that readers who stop reading cost little, and that one who goes on gets everything.
    #[track_caller]
    fn check_readers(&self, path: &str, count: impl Fn(&Value) -> usize) {
        let path = path.replace("{id}", &self.id);
        let before = self.server.peak_memory();
        let stalled: Vec<_> = (0..READERS).map(|_| self.begin(&path)).collect();
        let cost = self.server.peak_memory() - before;
        assert!(cost < READERS_MAY_COST, "{path}: {READERS} readers cost {} MB", cost / MB);
        drop(stalled);
        let (status, answer) = self.server.request("GET", &path, &self.key, "");
        assert_eq!((status, count(&answer)), (200, MESSAGES), "{path}");
    }

    /// How many events this page and those after it hold.
    fn count_all(&self, first: &Value) -> usize {
        let (mut count, mut page) = (length(&first["data"]), first.clone());
        assert!(count < MESSAGES, "a page is bounded in bytes");
        while let Some(cursor) = page["nextCursor"].as_str() {
            let path = format!("/v1/sessions/{}/events?limit=1000&cursor={cursor}", self.id);
            page = self.server.request("GET", &path, &self.key, "").1;
            count += length(&page["data"]);
        }
        count
    }

    /// The same for an export, which has lines and is no JSON.
    fn check_export(&self) {
        let before = self.server.peak_memory();
        let path = format!("/v1/sessions/{}/export", self.id);
        let mut stalled: Vec<_> = (0..READERS).map(|_| self.begin(&path)).collect();
        let cost = self.server.peak_memory() - before;
        assert!(cost < READERS_MAY_COST, "{READERS} readers cost {} MB", cost / MB);
        let (_, whole) = answer(&mut stalled.remove(0));
        assert_eq!(String::from_utf8(whole).unwrap().matches(".message\"").count(), MESSAGES);
    }
}

fn length(list: &Value) -> usize {
    list.as_array().map_or(0, Vec::len)
}

#[test]
fn readers_of_a_large_session_cost_little() {
    let session = LargeSession::new();
    session.check_readers("/v1/sessions/{id}/events?limit=1000", |page| session.count_all(page));
    session.check_readers("/v1/sessions/{id}", |answer| length(&answer["messages"]));
    for kind in ["full", "compacted"] {
        let path = format!("/aap/sessions/{{id}}/history?type={kind}");
        session.check_readers(&path, |answer| length(&answer["history"][kind]));
    }
    for surface in ["conversation", "parlant"] {
        let path = format!("/{surface}/sessions/{{id}}/events?wait_for_data=0");
        session.check_readers(&path, length);
    }
    session.check_export();
}
