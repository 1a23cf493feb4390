//! The two ways to hear the same answer: straight from the stub model, and through the server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use serde_json::json;

use crate::api::{get, message, post};
use crate::http::Connection;
use crate::stub::TOKEN;

/// What one answer was like for the client.
pub(crate) struct Heard {
    /// Until the first token.
    pub(crate) first: Duration,
    /// Until the end.
    pub(crate) whole: Duration,
    pub(crate) tokens: usize,
    /// Frames that carried tokens.
    pub(crate) frames: usize,
}

/// Counts what is heard of one answer.
pub(crate) struct Ear {
    started: Instant,
    first: Option<Duration>,
    bytes: usize,
    frames: usize,
}

impl Ear {
    pub(crate) fn new() -> Self {
        Ear { started: Instant::now(), first: None, bytes: 0, frames: 0 }
    }

    /// Takes the text that follows `key` in a frame. It has no escapes.
    pub(crate) fn hear(&mut self, frame: &[u8], key: &[u8]) {
        let Some(start) = memmem::find(frame, key) else { return };
        let text = &frame[start + key.len()..];
        let length = memchr::memchr(b'"', text).unwrap_or(0);
        if length > 0 {
            self.bytes += length;
            self.frames += 1;
            self.first.get_or_insert_with(|| self.started.elapsed());
        }
    }

    pub(crate) fn heard(self, tokens: usize) -> Result<Heard> {
        let whole = self.started.elapsed();
        ensure!(self.bytes == tokens * TOKEN, "{} of {} bytes were heard", self.bytes, tokens * TOKEN);
        Ok(Heard { first: self.first.context("no token")?, whole, tokens, frames: self.frames })
    }
}

/// Straight from the stub.
pub(crate) struct Direct {
    connection: Connection,
    request: Vec<u8>,
    tokens: usize,
}

impl Direct {
    pub(crate) async fn open(stub: SocketAddr, style: &str, tokens: usize) -> Result<Self> {
        let text = message()["content"][0]["text"].clone();
        let messages =
            json!([{ "role": "system", "content": "Be brief." }, { "role": "user", "content": text }]);
        let body = json!({ "model": format!("{style}-{tokens}"), "messages": messages, "stream": true });
        let request = post("/v1/chat/completions", &body);
        Ok(Direct { connection: Connection::open(stub).await?, request, tokens })
    }

    pub(crate) async fn turn(&mut self) -> Result<Heard> {
        let mut ear = Ear::new();
        self.connection.send(&self.request).await?;
        self.connection.begin_stream().await?;
        while let Some(frame) = self.connection.frame().await? {
            ear.hear(frame, b"\"content\":\"");
        }
        ear.heard(self.tokens)
    }
}

/// Through the server: a session with an open stream.
pub(crate) struct Conversation {
    stream: Connection,
    requests: Connection,
    request: Vec<u8>,
    tokens: usize,
}

impl Conversation {
    pub(crate) async fn open(server: SocketAddr, session: &str, tokens: usize) -> Result<Self> {
        let mut stream = Connection::open(server).await?;
        stream.send(&get(&format!("/v1/sessions/{session}/events/stream"), "")).await?;
        stream.begin_stream().await?;
        let request = post(&format!("/v1/sessions/{session}/events"), &message());
        Ok(Conversation { stream, requests: Connection::open(server).await?, request, tokens })
    }

    /// Goes on with another session. The connection for requests is kept.
    pub(crate) async fn switch(self, server: SocketAddr, session: &str) -> Result<Self> {
        let next = Conversation::open(server, session, self.tokens).await?;
        Ok(Conversation { requests: self.requests, ..next })
    }

    /// One turn: from the request until the session is idle again.
    pub(crate) async fn turn(&mut self) -> Result<Heard> {
        let mut ear = Ear::new();
        self.requests.send(&self.request).await?;
        loop {
            let frame = self.stream.frame().await?.context("the stream ended")?;
            if memmem::find(frame, b"\"delta\":true").is_some() {
                ear.hear(frame, b"\"text\":\"");
            } else if memmem::find(frame, b"event: session.status_idle").is_some() {
                break;
            }
        }
        let heard = ear.heard(self.tokens)?;
        // It was answered long ago; here it is only taken off the connection.
        let (status, body) = self.requests.answer().await?;
        ensure!(status == 200, "a message was answered with {status}: {}", String::from_utf8_lossy(&body));
        Ok(heard)
    }
}
