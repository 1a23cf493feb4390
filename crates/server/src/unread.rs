//! Bodies that nobody reads to the end.
//!
//! Some answers are known before the body is there: there is no key, it is too large, nothing is at that path. A
//! connection that were closed then, with bytes still on their way, would take the answer with it: the peer's system drops
//! what it has received, and the peer is told of a broken connection. So the rest is read and dropped, within bounds,
//! while the answer goes out.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use bytes::Bytes;
use futures_util::StreamExt;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::time::{Instant, timeout_at};

/// The most bytes that are read to be dropped.
const MOST: usize = 64 * 1024 * 1024;
/// The longest that it may take, within the time that the body has anyway.
const LONGEST: Duration = Duration::from_secs(5);

/// The same request, whose body is read to the end whatever becomes of it. The whole body has `body_time`.
pub(crate) fn read_to_the_end(request: Request, body_time: Duration) -> Request {
    // Who asks first sends nothing after a no.
    let asks_first = request.headers().contains_key(header::EXPECT);
    if asks_first || request.body().is_end_stream() {
        return request;
    }
    let deadline = Instant::now() + body_time;
    request.map(|body| Body::new(Unread { body, deadline, ended: false }))
}

/// A body whose rest is read when it is dropped.
struct Unread {
    body: Body,
    deadline: Instant,
    ended: bool,
}

impl hyper::body::Body for Unread {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.ended |= matches!(polled, Poll::Ready(None | Some(Err(_))));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let deadline = self.deadline.min(Instant::now() + LONGEST);
        let is_over = self.ended || self.body.is_end_stream() || deadline <= Instant::now();
        if let (false, Ok(runtime)) = (is_over, tokio::runtime::Handle::try_current()) {
            let rest = drop_rest(std::mem::take(&mut self.body));
            runtime.spawn(timeout_at(deadline, rest));
        }
    }
}

/// Reads what is left, up to a bound.
async fn drop_rest(body: Body) {
    let mut pieces = body.into_data_stream();
    let mut left = MOST;
    while let Some(Ok(piece)) = pieces.next().await {
        match left.checked_sub(piece.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
