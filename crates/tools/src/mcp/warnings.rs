//! Bounds how often the log repeats what is wrong with a server: once, and then with growing pauses.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const FIRST_PAUSE: Duration = Duration::from_secs(60);
const MAX_PAUSE: Duration = Duration::from_secs(3600);
/// The most problems that are remembered.
const MAX_PROBLEMS: usize = 1000;

/// What the log was told about problems, each by a name of its own.
#[derive(Default)]
pub(super) struct Warnings(Mutex<HashMap<String, Warned>>);

struct Warned {
    /// When it is said again.
    again: Instant,
    pause: Duration,
    /// How often it came up since it was said.
    unsaid: u64,
}

impl Warnings {
    /// How often a problem came up unsaid, if it is to be said now.
    pub(super) fn due(&self, problem: String) -> Option<u64> {
        let now = Instant::now();
        let mut problems = self.lock();
        if let Some(warned) = problems.get_mut(&problem) {
            if now < warned.again {
                warned.unsaid += 1;
                return None;
            }
            warned.pause = (warned.pause * 2).min(MAX_PAUSE);
            warned.again = now + warned.pause;
            return Some(std::mem::take(&mut warned.unsaid));
        }
        if problems.len() >= MAX_PROBLEMS {
            problems.retain(|_, warned| now < warned.again);
        }
        if problems.len() >= MAX_PROBLEMS {
            problems.clear();
        }
        problems.insert(problem, Warned { again: now + FIRST_PAUSE, pause: FIRST_PAUSE, unsaid: 0 });
        Some(0)
    }

    /// Forgets a problem that is over, unless it was said a moment ago: it may come and go.
    pub(super) fn over(&self, problem: &str) {
        let mut problems = self.lock();
        if problems.get(problem).is_some_and(|warned| warned.again <= Instant::now()) {
            problems.remove(problem);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Warned>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_problem_is_said_at_once_and_then_with_growing_pauses() {
        let warnings = Warnings::default();
        let began = Instant::now();
        let (mut said, mut unsaid) = (Vec::new(), 0);
        for _ in 0..20_000 {
            if let Some(count) = warnings.due("dead".to_owned()) {
                said.push(began.elapsed().as_secs());
                unsaid += count;
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(said, [0, 60, 180, 420, 900, 1860, 3780, 7380, 10_980, 14_580, 18_180]);
        assert_eq!(unsaid, 18_180 - 10);
        assert_eq!(warnings.due("other".to_owned()), Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_problem_that_comes_and_goes_is_not_said_each_time() {
        let warnings = Warnings::default();
        assert_eq!(warnings.due("flaps".to_owned()), Some(0));
        warnings.over("flaps");
        assert_eq!(warnings.due("flaps".to_owned()), None);
        tokio::time::advance(FIRST_PAUSE).await;
        warnings.over("flaps");
        assert_eq!(warnings.due("flaps".to_owned()), Some(0));
    }

    #[test]
    fn problems_that_are_remembered_are_bounded() {
        let warnings = Warnings::default();
        for number in 0..10 * MAX_PROBLEMS {
            assert_eq!(warnings.due(number.to_string()), Some(0));
        }
        assert!(warnings.lock().len() <= MAX_PROBLEMS);
    }
}
