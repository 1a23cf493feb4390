//! Server-sent events: what all streams have in common.
//!
//! A reader that stops reading holds what was written for it. So a frame is made only when the connection takes it, and
//! the data of a large one is kept once for all streams that send the same.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::{self, Display};
use std::future::Future;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::iter;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::task::{Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::server::App;

/// Data of this size and more is shared.
const LARGE: usize = 64 * 1024;
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";
/// Ends the data of a frame, and the frame.
const END: &[u8] = b"\n\n";

/// The frames of one stream.
pub(crate) trait Frames: Send + 'static {
    /// The next frame, whenever it comes; none at the end.
    fn next(&mut self) -> impl Future<Output = Option<Frame>> + Send;
}

/// One frame of a stream.
#[derive(Default)]
pub(crate) struct Frame {
    /// Its lines, up to the data if that is large.
    text: Vec<u8>,
    large: Option<Bytes>,
}

impl Frame {
    /// Gives the frame an id. It must have no line ends.
    pub(crate) fn id(self, id: impl Display) -> Self {
        self.line(format_args!("id: {id}\n"))
    }

    /// Names the event. The name must have no line ends.
    pub(crate) fn event(self, name: &str) -> Self {
        self.line(format_args!("event: {name}\n"))
    }

    fn line(mut self, line: fmt::Arguments<'_>) -> Self {
        // Writing to memory does not fail.
        let _ = self.text.write_fmt(line);
        self
    }

    /// The frame as it is sent. Large data stays in the memory that it shares.
    fn pieces(self) -> impl Iterator<Item = Bytes> {
        let rest = self.large.map(|data| [data, Bytes::from_static(END)]);
        iter::once(self.text.into()).chain(rest.into_iter().flatten())
    }
}

/// A frame with a value, as JSON in one line.
pub(crate) fn with_json(frame: Frame, value: &impl Serialize) -> Option<Frame> {
    let mut text = frame.text;
    text.extend_from_slice(b"data: ");
    let data_begins = text.len();
    serde_json::to_writer(&mut text, value).ok()?;
    if text.len() - data_begins >= LARGE {
        let large = Some(shared(text.split_off(data_begins)));
        text.shrink_to_fit();
        return Some(Frame { text, large });
    }
    text.extend_from_slice(END);
    Some(Frame { text, large: None })
}

/// Answers with a stream.
pub(crate) fn respond(app: &App, frames: impl Frames) -> Response {
    let frames = stream::unfold((frames, OpenStream::count(app)), |(mut frames, open)| async move {
        let frame = frames.next().await?;
        Some((frame, (frames, open)))
    });
    let bytes = frames.flat_map(|frame| stream::iter(frame.pieces()));
    let body = Body::from_stream(kept_alive(bytes, app.settings.keep_alive));
    let headers = [
        (header::CONTENT_TYPE.as_str(), "text/event-stream"),
        (header::CACHE_CONTROL.as_str(), "no-cache"),
        // Proxies that gather output would hold the text back.
        ("x-accel-buffering", "no"),
    ];
    (headers, body).into_response()
}

/// The same with a comment whenever nothing came for so long.
fn kept_alive(
    bytes: impl Stream<Item = Bytes> + Send + 'static,
    interval: Duration,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    let mut bytes = Box::pin(bytes);
    let mut silence = Box::pin(sleep(interval));
    stream::poll_fn(move |context| {
        let next = match bytes.as_mut().poll_next(context) {
            Poll::Ready(next) => next,
            Poll::Pending => {
                ready!(silence.as_mut().poll(context));
                Some(Bytes::from_static(KEEP_ALIVE))
            }
        };
        silence.as_mut().reset(Instant::now() + interval);
        Poll::Ready(next.map(Ok))
    })
}

/// Large data that is on its way on some stream, by its hash.
static ON_THEIR_WAY: LazyLock<Mutex<HashMap<u64, Weak<[u8]>>>> = LazyLock::new(Mutex::default);

/// The same bytes, in the memory of another stream that sends them too if there is one.
fn shared(data: Vec<u8>) -> Bytes {
    let mut hasher = DefaultHasher::new();
    hasher.write(&data);
    let hash = hasher.finish();
    let mut known = ON_THEIR_WAY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = known.get(&hash).and_then(Weak::upgrade).filter(|same| **same == data[..]) {
        return Bytes::from_owner(same);
    }
    known.retain(|_, data| data.strong_count() > 0);
    let data: Arc<[u8]> = data.into();
    known.insert(hash, Arc::downgrade(&data));
    Bytes::from_owner(data)
}

/// Counts a stream for as long as it is open.
struct OpenStream(App);

impl OpenStream {
    fn count(app: &App) -> Self {
        app.settings.metrics.open_streams.inc();
        OpenStream(app.clone())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.settings.metrics.open_streams.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_written_as_its_fields() {
        let frame =
            with_json(Frame::default().id(7).event("x.y"), &serde_json::json!({ "a": "b\nc" })).unwrap();
        assert_eq!(
            frame.pieces().collect::<Vec<_>>().concat(),
            b"id: 7\nevent: x.y\ndata: {\"a\":\"b\\nc\"}\n\n"
        );
    }

    #[test]
    fn large_data_is_kept_once_for_all_that_send_it() {
        let text = "x".repeat(2 * LARGE);
        let data = |id: u64| with_json(Frame::default().id(id), &text).unwrap().large.unwrap();
        let (one, two) = (data(1), data(2));
        assert_eq!((one.len(), one.as_ptr()), (text.len() + 2, two.as_ptr()));
        let other = with_json(Frame::default(), &"y".repeat(2 * LARGE)).unwrap().large.unwrap();
        assert_ne!(other, one);
        drop((one, two));
        let again = data(3);
        assert_eq!(again.len(), text.len() + 2, "what nobody sends any more is not kept");
    }
}
