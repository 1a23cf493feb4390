//! Follows a session over connections that come and go.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result};
use petasos_net::{Response, sse};
use serde_json::Value;
use tokio::time::Instant;

use super::happening::Happening;
use crate::api::{Api, Refusal};

/// The server says something at least every 15 seconds; a connection that is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(45);
/// How long opening a stream may take.
const OPENING: Duration = Duration::from_secs(10);
/// How long a server may be gone.
const PATIENCE: Duration = Duration::from_secs(60);
const FIRST_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_secs(1);

/// What a stream tells.
#[derive(Debug)]
pub(crate) enum Told {
    /// Something happened in the session.
    Happened(Happening),
    /// The connection is gone; it is being made again.
    Lost,
    /// There is a connection again. What is being said comes once more from its beginning.
    Back,
}

/// The events of a session, every durable one once.
pub(crate) struct EventStream<'a> {
    api: &'a Api,
    session_id: String,
    /// The last durable event that was told.
    after: u64,
    response: Option<Response>,
    decoder: sse::Decoder,
    ready: VecDeque<sse::Event>,
    trouble: Option<Trouble>,
}

/// A connection that could not be made or kept.
struct Trouble {
    since: Instant,
    delay: Duration,
    last: anyhow::Error,
    /// Whether a connection was there before, so that its loss is worth telling.
    told: bool,
}

impl<'a> EventStream<'a> {
    /// Follows a session from after this sequence on.
    pub(crate) fn new(api: &'a Api, session_id: &str, after: u64) -> Self {
        EventStream {
            api,
            session_id: session_id.to_owned(),
            after,
            response: None,
            decoder: sse::Decoder::default(),
            ready: VecDeque::new(),
            trouble: None,
        }
    }

    /// The last durable event that was told.
    pub(crate) fn after(&self) -> u64 {
        self.after
    }

    /// What is told next. An error means that there is no more: the session is gone, or the server for too long.
    ///
    /// Nothing is lost if the future is dropped before it is ready.
    pub(crate) async fn next(&mut self) -> Result<Told> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return self.tell(&event);
            }
            let Some(response) = &mut self.response else {
                if let Some(told) = self.connect().await? {
                    return Ok(told);
                }
                continue;
            };
            let problem = match tokio::time::timeout(SILENCE, response.chunk()).await {
                Ok(Ok(Some(bytes))) => match self.take(&bytes) {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                Ok(Ok(None)) => anyhow::anyhow!("the server ended the stream"),
                Ok(Err(error)) => error.into(),
                Err(_) => anyhow::anyhow!("the server has been silent for {} seconds", SILENCE.as_secs()),
            };
            self.response = None;
            self.trouble =
                Some(Trouble { since: Instant::now(), delay: FIRST_DELAY, last: problem, told: true });
            return Ok(Told::Lost);
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        for event in self.decoder.feed(bytes) {
            self.ready.push_back(event?);
        }
        Ok(())
    }

    fn tell(&mut self, event: &sse::Event) -> Result<Told> {
        let envelope: Value =
            serde_json::from_str(&event.data).context("the server sent an event that is no JSON")?;
        // Live events carry the sequence of the durable one before them.
        self.after = self.after.max(envelope["sequence"].as_u64().unwrap_or_default());
        Ok(Told::Happened(Happening::read(&envelope)))
    }

    /// Opens the stream, or waits a little after it could not be opened.
    async fn connect(&mut self) -> Result<Option<Told>> {
        if let Some(trouble) = &self.trouble {
            tokio::time::sleep(trouble.delay).await;
            self.api.find_again().await;
        }
        let opened = tokio::time::timeout(OPENING, self.api.follow(&self.session_id, self.after)).await;
        let error = match opened.unwrap_or_else(|_| Err(anyhow::anyhow!("the server does not answer"))) {
            Ok(response) => {
                self.response = Some(response);
                self.decoder = sse::Decoder::default();
                let trouble = self.trouble.take();
                return Ok(trouble.filter(|trouble| trouble.told).map(|_| Told::Back));
            }
            Err(error) => error,
        };
        if error
            .downcast_ref::<Refusal>()
            .is_some_and(|refusal| refusal.status < 500 && refusal.status != 429)
        {
            return Err(error);
        }
        let start = Trouble { since: Instant::now(), delay: FIRST_DELAY, last: error, told: false };
        let Some(trouble) = &mut self.trouble else {
            self.trouble = Some(start);
            return Ok(None);
        };
        if trouble.since.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(start.last)
                .with_context(|| format!("the server has been gone for {seconds} seconds"));
        }
        trouble.delay = (trouble.delay * 2).min(MAX_DELAY);
        trouble.last = start.last;
        Ok(None)
    }
}
