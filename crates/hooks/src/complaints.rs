//! Says what is wrong with a callback once, and not at every firing.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a failure that is never quite the same stays unmentioned after it was mentioned.
const QUIET: Duration = Duration::from_secs(60);
/// How many kinds of failure of a callback are told apart.
const MAX_KINDS: usize = 16;

/// What was said last about each callback, by kind of failure. There are as many callbacks as somebody configured.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<HashMap<(String, String), HashMap<String, Said>>>);

#[derive(Debug)]
struct Said {
    what: String,
    when: Instant,
}

impl Complaints {
    /// Warns, unless that was said before, or something else of the kind was a moment ago.
    pub(crate) fn say(&self, event: &str, hook: &str, what: &str) {
        if self.is_news(event, hook, what, Instant::now()) {
            tracing::warn!(event, hook, "a hook failed: {what}");
        } else {
            tracing::debug!(event, hook, "a hook failed again: {what}");
        }
    }

    fn is_news(&self, event: &str, hook: &str, what: &str, now: Instant) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kinds = all.entry((event.to_owned(), hook.to_owned())).or_default();
        let kind = what.split(':').next().unwrap_or_default();
        let kind = if kinds.len() < MAX_KINDS || kinds.contains_key(kind) { kind } else { "" };
        let last = kinds.get(kind);
        if last.is_some_and(|last| last.what == what || now.duration_since(last.when) < QUIET) {
            return false;
        }
        kinds.insert(kind.to_owned(), Said { what: what.to_owned(), when: now });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_and_anything_else_after_a_while() {
        let complaints = Complaints::default();
        let start = Instant::now();
        let news =
            |hook: &str, what: &str, after| complaints.is_news("pre_tool_call", hook, what, start + after);
        assert!(news("a", "no", Duration::ZERO));
        assert!(news("b", "no", Duration::ZERO), "each hook has its own");
        assert!(!news("a", "no", QUIET * 9));
        assert!(news("a", "it returned 1: x", Duration::ZERO), "another kind of failure");
        assert!(!news("a", "it returned 1: y", QUIET / 2));
        assert!(news("a", "it returned 1: y", QUIET * 2));
        let many = (0..99).filter(|kind| news("a", &format!("kind {kind}"), QUIET * 3)).count();
        assert!(many <= MAX_KINDS, "{many}");
        assert!(!news("a", "yet another", QUIET * 3));
    }
}
