//! Says what is wrong with a callback once, and not at every firing.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a callback that fails in ever new ways stays unmentioned after it was mentioned.
const QUIET: Duration = Duration::from_secs(60);

/// What was said last about each callback. There are as many as somebody configured, so it stays small.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<HashMap<(String, String), Said>>);

#[derive(Debug)]
struct Said {
    what: String,
    when: Instant,
}

impl Complaints {
    /// Warns, unless that was said before or something else was a moment ago.
    pub(crate) fn say(&self, event: &str, hook: &str, what: &str) {
        if self.is_news(event, hook, what, Instant::now()) {
            tracing::warn!(event, hook, "a hook failed: {what}");
        } else {
            tracing::debug!(event, hook, "a hook failed again: {what}");
        }
    }

    fn is_news(&self, event: &str, hook: &str, what: &str, now: Instant) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let said = Said { what: what.to_owned(), when: now };
        match all.get_mut(&(event.to_owned(), hook.to_owned())) {
            Some(last) if last.what == what || now.duration_since(last.when) < QUIET => false,
            Some(last) => {
                *last = said;
                true
            }
            None => {
                all.insert((event.to_owned(), hook.to_owned()), said);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_and_anything_else_after_a_while() {
        let complaints = Complaints::default();
        let start = Instant::now();
        let news = |hook, what, after| complaints.is_news("pre_tool_call", hook, what, start + after);
        assert!(news("a", "no", Duration::ZERO));
        assert!(news("b", "no", Duration::ZERO), "each hook has its own");
        assert!(!news("a", "no", QUIET * 9));
        assert!(!news("a", "other", QUIET / 2));
        assert!(news("a", "other", QUIET * 2));
    }
}
