//! Streams written as ordinary async code.

use std::future::Future;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::mpsc;

/// How far the code behind a stream may be ahead of its reader.
const AHEAD: usize = 16;

/// Where the code behind a stream puts its items.
pub(crate) struct Emitter<T> {
    sender: mpsc::Sender<T>,
}

impl<T> Emitter<T> {
    /// Hands one item to the reader, and waits while the reader is behind.
    pub(crate) async fn emit(&self, item: T) {
        // The receiver lives in the stream that polls us, so that it cannot be gone.
        let _ = self.sender.send(item).await;
    }
}

/// A stream of what `work` emits. The work is polled by the reader itself and not by a task, so that dropping
/// the stream drops the work, its connection included, in the same instant.
pub(crate) fn generate<T, F>(work: impl FnOnce(Emitter<T>) -> F) -> BoxStream<'static, T>
where
    T: Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, mut receiver) = mpsc::channel(AHEAD);
    let mut work = Some(Box::pin(work(Emitter { sender })));
    stream::poll_fn(move |context| {
        if let Ok(item) = receiver.try_recv() {
            return Poll::Ready(Some(item));
        }
        if let Some(running) = &mut work
            && running.as_mut().poll(context).is_ready()
        {
            work = None;
        }
        receiver.poll_recv(context)
    })
    .boxed()
}
