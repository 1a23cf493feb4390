//! Sends one reply, piece by piece, and notices when nobody listens any more.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use tokio::task::yield_now;

use super::Shared;
use super::encode::{Format, Piece};
use super::reply::{Content, Ending, Reply};

/// A reply on its way.
pub(super) struct Playback {
    status: u16,
    content_type: String,
    headers: Vec<(String, String)>,
    pieces: VecDeque<Piece>,
    ending: Ending,
    sent: usize,
    listener: Listener,
}

/// Counts a client that left early, when it is dropped.
struct Listener {
    served: bool,
    shared: Arc<Shared>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        if !self.served {
            self.shared.disconnects.send_modify(|count| *count += 1);
        }
    }
}

impl Playback {
    pub(super) fn new(reply: Reply, format: Format, shared: Arc<Shared>) -> Self {
        let (status, content_type, pieces) = match &reply.content {
            Content::Answer(items) => (200, "text/event-stream".to_owned(), format.answer(&reply, items)),
            Content::Status { status, message } => {
                let body = format.error(*status, message).to_string();
                (*status, "application/json".to_owned(), VecDeque::from([Piece::Bytes(body.into())]))
            }
            Content::Raw { status, chunks, content_type } => {
                (*status, content_type.clone(), chunks.iter().cloned().map(Piece::Bytes).collect())
            }
        };
        let listener = Listener { served: false, shared };
        Playback {
            status,
            content_type,
            headers: reply.headers,
            pieces,
            ending: reply.ending,
            sent: 0,
            listener,
        }
    }

    pub(super) fn into_response(mut self) -> Response {
        let mut headers = std::mem::take(&mut self.headers);
        headers.push(("content-type".to_owned(), std::mem::take(&mut self.content_type)));
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from_stream(stream::unfold(self, Playback::next)));
        *response.status_mut() = status;
        for (name, value) in headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }

    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        // One pause for each chunk makes the HTTP library send the one before, so that a cut or a gate finds
        // everything before it already on its way.
        yield_now().await;
        loop {
            match self.ending {
                Ending::Stall(count) if self.sent >= count => std::future::pending().await,
                Ending::End(count) if self.sent >= count => {
                    self.listener.served = true;
                    return None;
                }
                Ending::Cut(count) if self.sent >= count => {
                    self.listener.served = true;
                    return Some((Err(io::Error::other("scripted cut")), self));
                }
                _ => {}
            }
            match self.pieces.pop_front() {
                Some(Piece::Gate(gate)) => gate.pass().await,
                Some(Piece::Bytes(bytes)) => {
                    self.sent += 1;
                    // A client may leave as soon as it has the terminal event.
                    self.listener.served = self.pieces.is_empty() && self.ending == Ending::Complete;
                    return Some((Ok(bytes), self));
                }
                None => {
                    self.listener.served = true;
                    return None;
                }
            }
        }
    }
}
