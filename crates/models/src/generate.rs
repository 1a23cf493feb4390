//! Streams written as ordinary async code.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};

/// How far the code behind a stream may be ahead of its reader.
const AHEAD: usize = 64;

/// Where the code behind a stream puts its items.
pub(crate) struct Emitter<T> {
    ready: Arc<Mutex<VecDeque<T>>>,
}

impl<T> Emitter<T> {
    /// Hands one item to the reader, and waits while the reader is behind.
    pub(crate) async fn emit(&self, item: T) {
        // Nobody has to be woken: the reader polls us, and comes back when it has taken what is there.
        poll_fn(|_| if lock(&self.ready).len() < AHEAD { Poll::Ready(()) } else { Poll::Pending }).await;
        lock(&self.ready).push_back(item);
    }
}

/// A stream of what `work` emits. The work is polled by the reader itself and not by a task, so that dropping
/// the stream drops the work, its connection included, in the same instant.
pub(crate) fn generate<T, F>(work: impl FnOnce(Emitter<T>) -> F) -> BoxStream<'static, T>
where
    T: Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let ready = Arc::new(Mutex::new(VecDeque::new()));
    let mut work = Some(Box::pin(work(Emitter { ready: Arc::clone(&ready) })));
    stream::poll_fn(move |context| {
        if let Some(item) = lock(&ready).pop_front() {
            return Poll::Ready(Some(item));
        }
        if let Some(running) = &mut work
            && running.as_mut().poll(context).is_ready()
        {
            work = None;
        }
        match (lock(&ready).pop_front(), &work) {
            (None, Some(_)) => Poll::Pending,
            (item, _) => Poll::Ready(item),
        }
    })
    .boxed()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everything_that_is_emitted_comes_in_order_and_then_the_end() {
        let count = AHEAD * 3 + 1;
        let stream = generate(|emitter| async move {
            for number in 0..count {
                emitter.emit(number).await;
            }
        });
        assert_eq!(stream.collect::<Vec<_>>().await, (0..count).collect::<Vec<_>>());
    }
}
