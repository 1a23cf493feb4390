//! What is known of a server's tools, and the one question about them that is under way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::time::Instant;

use super::connection::ListedTool;

/// The tools of a server, or why they are not to be had.
pub(super) type Listed = Result<Arc<[ListedTool]>, String>;

/// What is known of a server's tools.
#[derive(Default)]
pub(super) struct Listing(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// As the server last listed them, connected or not.
    tools: Option<Arc<[ListedTool]>>,
    asking: Option<Asking>,
}

struct Asking {
    since: Instant,
    answer: Shared<BoxFuture<'static, Listed>>,
}

impl Listing {
    /// The tools as the server last listed them.
    pub(super) fn known(&self) -> Option<Arc<[ListedTool]>> {
        self.lock().tools.clone()
    }

    pub(super) fn remember(&self, tools: &Arc<[ListedTool]>) {
        self.lock().tools = Some(Arc::clone(tools));
    }

    /// Asks, and waits no longer than `most`. A question goes on without us; all who come while it does wait for its
    /// answer, and together no longer than one would.
    pub(super) async fn ask(
        &self,
        most: Duration,
        question: impl Future<Output = Listed> + Send + 'static,
    ) -> Listed {
        let (since, answer) = {
            let mut known = self.lock();
            let under_way = known.asking.as_ref().filter(|asking| asking.answer.peek().is_none());
            match under_way {
                Some(asking) => (asking.since, asking.answer.clone()),
                None => {
                    let asked = tokio::spawn(question);
                    let answer = asked.map(|answer| answer.unwrap_or_else(|error| Err(error.to_string())));
                    let asking = Asking { since: Instant::now(), answer: answer.boxed().shared() };
                    let started = (asking.since, asking.answer.clone());
                    known.asking = Some(asking);
                    started
                }
            }
        };
        let answered = tokio::time::timeout_at(since + most, answer).await;
        answered.unwrap_or_else(|_| Err(format!("it did not answer within {} s", most.as_secs_f32())))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_question_is_asked_once_and_outlives_whoever_waits() {
        let listing = Listing::default();
        let (answer, asked) = tokio::sync::oneshot::channel::<()>();
        let slow = async move {
            asked.await.map_err(|error| error.to_string())?;
            Ok(Arc::from([]))
        };
        let most = Duration::from_secs(5);
        let began = Instant::now();
        assert!(listing.ask(most, slow).await.is_err());
        assert_eq!(began.elapsed(), most);
        // Whoever comes later does not wait as long again.
        assert!(listing.ask(most, pending()).await.is_err());
        assert_eq!(began.elapsed(), most);
        answer.send(()).unwrap();
        tokio::task::yield_now().await;
        assert_eq!(listing.ask(most, pending()).await, Ok(Arc::from([])));
    }
}
