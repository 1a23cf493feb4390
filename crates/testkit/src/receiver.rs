//! A receiver of webhooks, which answers as badly as a test wants.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::{Gate, within};

/// How a receiver answers one request.
#[derive(Debug, Clone)]
pub enum Reception {
    /// With a status and nothing else.
    Status(u16),
    /// With a status and a header.
    Header(u16, &'static str, &'static str),
    /// Not at all: the connection stays open.
    Silence,
    /// Not at all: the connection is closed.
    Close,
    /// With something that is not HTTP.
    Garbage,
    /// With the head of a success, a byte at a time and never to its end.
    Drip,
    /// With a success whose body never comes.
    EndlessBody,
    /// With a success, when the test opens the gate.
    Held(Gate),
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Received {
    /// The path with the query.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: HashMap<String, String>,
    /// The body as it came.
    pub body: Vec<u8>,
}

impl Received {
    /// A header; empty if it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The offset of the event that it is about.
    pub fn offset(&self) -> u64 {
        self.json()["offset"].as_u64().unwrap()
    }
}

/// A receiver on a port of its own. Clones are the same.
#[derive(Clone)]
pub struct Receiver {
    /// Where it is.
    pub url: String,
    state: Arc<State>,
}

struct State {
    received: watch::Sender<Vec<Received>>,
    /// What the next requests get.
    script: Mutex<VecDeque<Reception>>,
    /// What requests to a path get.
    paths: Mutex<HashMap<String, Reception>>,
}

impl Receiver {
    /// Starts one that takes everything.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let state = Arc::new(State {
            received: watch::channel(Vec::new()).0,
            script: Mutex::default(),
            paths: Mutex::default(),
        });
        let serving = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Receiver { url, state }
    }

    /// Where a path of it is.
    pub fn at(&self, path: &str) -> String {
        self.url.replace("/hook", path)
    }

    /// Answers the next requests like this, whatever their path.
    pub fn script(&self, answers: impl IntoIterator<Item = Reception>) {
        self.state.script.lock().unwrap().extend(answers);
    }

    /// Answers requests to a path like this from now on.
    pub fn answer(&self, path: &str, answer: Reception) {
        self.state.paths.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// What came so far.
    pub fn received(&self) -> Vec<Received> {
        self.state.received.borrow().clone()
    }

    /// Forgets what came so far.
    pub fn forget(&self) {
        self.state.received.send_modify(Vec::clear);
    }

    /// Waits until this many requests came.
    pub async fn wait_for(&self, count: usize) -> Vec<Received> {
        self.wait_until(|received| received.len() >= count).await
    }

    /// Waits until what came is enough.
    pub async fn wait_until(&self, enough: impl FnMut(&Vec<Received>) -> bool) -> Vec<Received> {
        let mut received = self.state.received.subscribe();
        within("deliveries", received.wait_for(enough)).await.unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, state: Arc<State>) {
    let mut bytes = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut bytes).await {
        let scripted = state.script.lock().unwrap().pop_front();
        let fixed = state.paths.lock().unwrap().get(&request.path).cloned();
        state.received.send_modify(|received| received.push(request));
        let answer = scripted.or(fixed).unwrap_or(Reception::Status(200));
        if !give(&mut stream, answer).await {
            return;
        }
    }
}

/// Gives an answer, and says whether the connection goes on.
async fn give(stream: &mut TcpStream, answer: Reception) -> bool {
    let head = |status: u16, more: &str| format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n{more}\r\n");
    let text = match answer {
        Reception::Status(status) => head(status, ""),
        Reception::Header(status, name, value) => head(status, &format!("{name}: {value}\r\n")),
        Reception::Held(gate) => {
            gate.pass().await;
            head(200, "")
        }
        Reception::EndlessBody => {
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n";
            stream.write_all(head.as_bytes()).await.ok();
            return std::future::pending().await;
        }
        Reception::Silence => return std::future::pending().await,
        Reception::Close => return false,
        Reception::Garbage => {
            stream.write_all(b"\x00\x01 this is no HTTP\r\n\r\n").await.ok();
            return false;
        }
        Reception::Drip => {
            let endless = "HTTP/1.1 200 OK\r\nx-long: ".bytes().chain(std::iter::repeat(b'a'));
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            for byte in endless {
                ticks.tick().await;
                if stream.write_all(&[byte]).await.is_err() {
                    return false;
                }
            }
            return false;
        }
    };
    stream.write_all(text.as_bytes()).await.is_ok()
}

async fn read_request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Received> {
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        read_more(stream, bytes).await?;
    };
    let head: Vec<u8> = bytes.drain(..end).collect();
    let head = String::from_utf8(head).ok()?;
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(Some(0), |length| length.parse().ok())?;
    while bytes.len() < length {
        read_more(stream, bytes).await?;
    }
    let body = bytes.drain(..length).collect();
    Some(Received { path, headers, body })
}

async fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let count = stream.read_buf(bytes).await.ok()?;
    (count > 0).then_some(())
}
