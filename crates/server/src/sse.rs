//! Server-sent events: what all streams have in common.

use std::convert::Infallible;
use std::future::Future;

use axum::http::HeaderValue;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;

use crate::server::App;

/// The frames of one stream.
pub(crate) trait Frames: Send + 'static {
    /// The next frame, whenever it comes; none at the end.
    fn next(&mut self) -> impl Future<Output = Option<Frame>> + Send;
}

/// A frame with a value. It is written as a text first: the frame looks for line ends in each piece that it gets, and a
/// value comes in very many.
pub(crate) fn with_json(frame: Frame, value: &impl Serialize) -> Option<Frame> {
    serde_json::to_string(value).ok().map(|json| frame.data(json))
}

/// Answers with a stream.
pub(crate) fn respond(app: &App, frames: impl Frames) -> Response {
    let frames = stream::unfold((frames, OpenStream::count(app)), |(mut frames, open)| async move {
        let frame = frames.next().await?;
        Some((Ok::<_, Infallible>(frame), (frames, open)))
    });
    let keep_alive = KeepAlive::new().interval(app.settings.keep_alive).text("keep-alive");
    let mut response = Sse::new(frames).keep_alive(keep_alive).into_response();
    // Proxies that gather output would hold the text back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
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
