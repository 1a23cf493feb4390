//! The orders that a host is carrying out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use super::message::Answer;
use super::wishes::Caller;

/// The host died before it answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// This call is what it died of.
    ByThis,
    /// Others were under way too, or one of them is known to have been the cause.
    PerhapsByAnother,
}

/// What comes of an order.
pub(super) type Outcome = Result<Answer, Lost>;

/// The orders that a host is carrying out, by their numbers.
pub(super) struct Orders {
    under_way: Mutex<HashMap<u64, UnderWay>>,
    most: usize,
    last_number: AtomicU64,
    /// Whose orders were under way when the host ended.
    casualties: Mutex<Vec<Arc<str>>>,
}

/// An order that is being carried out.
struct UnderWay {
    whose: Arc<str>,
    since: Instant,
    caller: Caller,
    reply: oneshot::Sender<Outcome>,
}

impl Orders {
    /// No orders yet, and at most so many at a time.
    pub(super) fn new(most: usize) -> Self {
        Orders {
            under_way: Mutex::default(),
            most,
            last_number: AtomicU64::new(0),
            casualties: Mutex::default(),
        }
    }

    /// A number that no order has had.
    pub(super) fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes an order on behalf of a guest, unless too many are under way. The question whether the host is there is
    /// nobody's, and can always be asked.
    pub(super) fn add(
        &self,
        number: u64,
        whose: &Arc<str>,
        caller: Caller,
    ) -> Result<oneshot::Receiver<Outcome>, String> {
        let mut under_way = lock(&self.under_way);
        if under_way.len() >= self.most && !whose.is_empty() {
            return Err(format!(
                "{} calls are under way in its Python host, the most that plugins.max_concurrent_calls allows",
                under_way.len()
            ));
        }
        let (reply, outcome) = oneshot::channel();
        let entry = UnderWay { whose: Arc::clone(whose), since: Instant::now(), caller, reply };
        under_way.insert(number, entry);
        Ok(outcome)
    }

    /// Hands an answer to whoever waits for it.
    pub(super) fn answer(&self, answer: Answer) {
        if let Some(entry) = lock(&self.under_way).remove(&answer.id) {
            // Nobody may be waiting any more.
            let _ = entry.reply.send(Ok(answer));
        }
    }

    /// For whom an order is carried out.
    pub(super) fn caller(&self, number: u64) -> Option<Caller> {
        lock(&self.under_way).get(&number).map(|entry| entry.caller.clone())
    }

    /// Forgets an order whose answer is of no use to anybody.
    pub(super) fn forget(&self, number: u64) {
        lock(&self.under_way).remove(&number);
    }

    /// Whether none is under way.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.under_way).is_empty()
    }

    /// The order of a guest that has been under way for the longest time.
    pub(super) fn oldest(&self) -> Option<u64> {
        let under_way = lock(&self.under_way);
        let real = under_way.iter().filter(|(_, entry)| !entry.whose.is_empty());
        real.min_by_key(|(_, entry)| entry.since).map(|(number, _)| *number)
    }

    /// Tells everybody who waits that no answer will come.
    pub(super) fn lose_all(&self, culprit: Option<u64>) {
        let mut under_way = lock(&self.under_way);
        let whose = under_way.values().map(|entry| &entry.whose).filter(|whose| !whose.is_empty());
        let whose: Vec<Arc<str>> = whose.cloned().collect();
        let is_one = whose.iter().all(|one| *one == whose[0]);
        let blamed =
            culprit.and_then(|culprit| under_way.get(&culprit)).map(|entry| Arc::clone(&entry.whose));
        lock(&self.casualties).extend(match blamed {
            Some(one) => vec![one],
            None => whose,
        });
        for (number, entry) in under_way.drain() {
            let is_cause = culprit.map_or(is_one, |culprit| culprit == number);
            let lost = if is_cause { Lost::ByThis } else { Lost::PerhapsByAnother };
            let _ = entry.reply.send(Err(lost));
        }
    }

    /// Whose orders were under way when the host ended by itself.
    pub(super) fn casualties(&self) -> Vec<Arc<str>> {
        lock(&self.casualties).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
