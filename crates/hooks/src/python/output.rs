//! What user code prints and logs, on its way to the log of the server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// Bytes of a line that are kept.
const MAX_LINE: u64 = 4096;
/// Lines that are kept to say why a host died.
const LAST_LINES: usize = 8;
/// Lines that are logged in one second. What is printed on top is counted.
const LINES_PER_SECOND: u32 = 200;

/// The last lines that a host wrote. Clones share them.
#[derive(Clone, Default)]
pub(super) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    pub(super) fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(line.to_owned());
        if lines.len() > LAST_LINES {
            lines.pop_front();
        }
    }

    /// All of them, in one line.
    pub(super) fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" | ")
    }
}

/// Logs what a host prints until it ends.
pub(super) async fn log(from: Option<impl AsyncRead + Unpin>, last_lines: LastLines) {
    let Some(from) = from else { return };
    let mut reader = BufReader::new(from);
    let mut budget = Budget::new(Instant::now());
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if text.is_empty() {
            continue;
        }
        last_lines.push(text);
        match budget.spend(Instant::now()) {
            Spent::One => tracing::info!(target: "petasos::plugins", "{text}"),
            Spent::OneAfter(lost) => {
                tracing::warn!(target: "petasos::plugins", "plugins printed {lost} more lines");
                tracing::info!(target: "petasos::plugins", "{text}");
            }
            Spent::None => {}
        }
    }
}

/// Logs what user code logs, at its own level.
pub(super) fn record(level: &str, logger: &str, text: &str) {
    match level {
        "CRITICAL" | "ERROR" => tracing::error!(target: "petasos::plugins", logger, "{text}"),
        "WARNING" => tracing::warn!(target: "petasos::plugins", logger, "{text}"),
        "DEBUG" => tracing::debug!(target: "petasos::plugins", logger, "{text}"),
        _ => tracing::info!(target: "petasos::plugins", logger, "{text}"),
    }
}

/// How many lines may still be logged in this second.
struct Budget {
    since: Instant,
    spent: u32,
    lost: u64,
}

#[derive(Debug, PartialEq)]
enum Spent {
    One,
    OneAfter(u64),
    None,
}

impl Budget {
    fn new(now: Instant) -> Self {
        Budget { since: now, spent: 0, lost: 0 }
    }

    fn spend(&mut self, now: Instant) -> Spent {
        if now.duration_since(self.since) >= Duration::from_secs(1) {
            self.since = now;
            self.spent = 0;
        }
        if self.spent == LINES_PER_SECOND {
            self.lost += 1;
            return Spent::None;
        }
        self.spent += 1;
        match std::mem::take(&mut self.lost) {
            0 => Spent::One,
            lost => Spent::OneAfter(lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_logged() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert!((0..LINES_PER_SECOND).all(|_| budget.spend(start) == Spent::One));
        assert!((0..3).all(|_| budget.spend(start) == Spent::None));
        assert_eq!(budget.spend(start + Duration::from_secs(1)), Spent::OneAfter(3));
        assert_eq!(budget.spend(start + Duration::from_secs(1)), Spent::One);
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let lines = LastLines::default();
        (0..20).for_each(|number| lines.push(&format!("{number}\n")));
        assert_eq!(lines.text(), "12 | 13 | 14 | 15 | 16 | 17 | 18 | 19");
    }
}
