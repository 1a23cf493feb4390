//! Streamable HTTP through our own client, so that the egress guard and the bounds of size hold.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::{HeaderName, HeaderValue};
use petasos_net::{Client, Method, Response, sse};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use secrecy::{ExposeSecret, SecretString};
use sse_stream::Sse;
use tokio::time::Instant;

use super::connection::pause;

const SESSION: &str = "mcp-session-id";
const ACCEPT: &str = "text/event-stream, application/json";

type Error = StreamableHttpError<petasos_net::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

type Headers = Arc<Vec<(String, SecretString)>>;
/// A stream that was open for so long was no failure.
const LASTING: Duration = Duration::from_secs(60);

/// How requests to one server are made.
#[derive(Clone)]
pub(super) struct Http {
    pub(super) client: Client,
    /// Sent with every request.
    pub(super) headers: Headers,
    /// The most bytes of one message.
    pub(super) message_bytes: usize,
    broken: Arc<Broken>,
}

/// Streams that broke, in a row. The MCP library opens the next one without a pause.
#[derive(Default)]
struct Broken(AtomicU32);

impl Broken {
    /// How long to wait before the next stream is opened.
    fn pause(&self) -> Duration {
        match self.0.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            in_a_row => pause(in_a_row),
        }
    }

    /// Notes that a stream broke that was opened then.
    fn note(&self, opened: Instant) {
        if opened.elapsed() >= LASTING {
            self.0.store(0, Ordering::Relaxed);
        }
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Http {
    pub(super) fn new(client: Client, headers: Headers, message_bytes: usize) -> Self {
        Http { client, headers, message_bytes, broken: Arc::default() }
    }

    async fn request(
        &self,
        method: Method,
        uri: &str,
        session: Option<&str>,
        more: &HashMap<HeaderName, HeaderValue>,
        (extra, body): (&[(&str, &str)], Option<Vec<u8>>),
    ) -> Result<Response, Error> {
        let mut headers = extra.to_vec();
        headers.extend(session.map(|session| (SESSION, session)));
        let of_protocol = more.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        headers.extend(of_protocol);
        headers.extend(self.headers.iter().map(|(name, value)| (name.as_str(), value.expose_secret())));
        let sent = self.client.request(method, uri, &headers, body.map(Into::into)).await;
        sent.map_err(StreamableHttpError::Client)
    }

    fn events(&self, response: Response) -> Events {
        let state = (response.into_chunks(), sse::Decoder::new(self.message_bytes), VecDeque::new());
        let (broken, opened) = (Arc::clone(&self.broken), Instant::now());
        let events = stream::unfold(state, |(mut chunks, mut decoder, mut ready)| async move {
            loop {
                if let Some(event) = ready.pop_front() {
                    return Some((event, (chunks, decoder, ready)));
                }
                match chunks.next().await? {
                    Ok(chunk) => ready.extend(decoder.feed(&chunk).map(sse_event)),
                    Err(error) => ready.push_back(Err(SseError::Body(Box::new(error)))),
                }
            }
        });
        let noted = move |event: &Result<Sse, SseError>| {
            if event.is_err() {
                broken.note(opened);
            }
        };
        events.inspect(noted).boxed()
    }
}

fn sse_event(event: Result<sse::Event, sse::DecodeError>) -> Result<Sse, SseError> {
    let event = event.map_err(|error| SseError::Body(Box::new(error)))?;
    Ok(Sse {
        event: Some(event.event.into_owned()).filter(|name| name != "message"),
        data: Some(event.data),
        id: event.id,
        retry: event.retry.map(|time| time.as_millis().try_into().unwrap_or(u64::MAX)),
    })
}

fn unexpected(text: String) -> Error {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(text))
}

fn is_of_type(response: &Response, kind: &str) -> bool {
    response.header("content-type").is_some_and(|value| value.starts_with(kind))
}

impl StreamableHttpClient for Http {
    type Error = petasos_net::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let extra =
            [("accept", ACCEPT), ("content-type", "application/json"), ("accept-encoding", "identity")];
        let body = (extra.as_slice(), Some(serde_json::to_vec(&message)?));
        let response = self.request(Method::Post, &uri, session_id.as_deref(), &custom_headers, body).await?;
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        let session = response.header(SESSION).map(str::to_owned);
        match response.status() {
            202 | 204 => Ok(StreamableHttpPostResponse::Accepted),
            404 if session_id.is_some() => Err(StreamableHttpError::SessionExpired),
            200..=299 if is_of_type(&response, "text/event-stream") => {
                Ok(StreamableHttpPostResponse::Sse(self.events(response), session))
            }
            status => {
                let is_json = is_of_type(&response, "application/json");
                let body = response.bytes_bounded(self.message_bytes).await;
                let body = body.map_err(StreamableHttpError::Client)?;
                let read = serde_json::from_slice::<ServerJsonRpcMessage>(&body).ok();
                match read {
                    Some(message) if is_json && (200..300).contains(&status) => {
                        Ok(StreamableHttpPostResponse::Json(message, session))
                    }
                    // The server's own words are better than its status.
                    Some(message @ ServerJsonRpcMessage::Error(_)) if !matches!(status, 401 | 403) => {
                        Ok(StreamableHttpPostResponse::Json(message, session))
                    }
                    _ if !is_request && (200..300).contains(&status) => {
                        Ok(StreamableHttpPostResponse::Accepted)
                    }
                    _ => Err(unexpected(refusal(status))),
                }
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let nothing = ([].as_slice(), None);
        self.request(Method::Delete, &uri, Some(&session_id), &custom_headers, nothing).await?.finish();
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Error> {
        tokio::time::sleep(self.broken.pause()).await;
        let mut extra = vec![("accept", "text/event-stream"), ("accept-encoding", "identity")];
        extra.extend(last_event_id.as_deref().map(|id| ("last-event-id", id)));
        let sent = (extra.as_slice(), None);
        let response = self.request(Method::Get, &uri, session_id.as_deref(), &custom_headers, sent).await?;
        match response.status() {
            200 if is_of_type(&response, "text/event-stream") => Ok(self.events(response)),
            200 | 405 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => Err(unexpected(refusal(status))),
        }
    }
}

fn refusal(status: u16) -> String {
    match status {
        401 | 403 => {
            format!("it answers {status}: the headers of the server's configuration must authorise us")
        }
        200..=299 => "its answer is not a message of the protocol".to_owned(),
        300..=399 => format!("it answers {status} and wants us to go elsewhere; write the final address"),
        status => format!("it answers {status}"),
    }
}
