//! How user code in Python is run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How user code in Python is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The interpreter and its surroundings.
    pub python: Python,
    /// How long one callback may take; none for as long as it likes.
    pub callback_time: Option<Duration>,
    /// How many calls of user code may be under way in one host.
    pub most_calls: usize,
    /// How long a server that starts waits for plugins. Those that take longer join later, without their tools.
    pub start_time: Duration,
    /// How long hosts are waited for that do not answer.
    pub patience: Patience,
    /// What happens when a host dies over and over.
    pub pauses: Pauses,
}

impl Settings {
    /// The usual settings for an interpreter.
    pub fn new(python: Python) -> Self {
        Settings {
            python,
            callback_time: Some(Duration::from_secs(30)),
            most_calls: 256,
            start_time: Duration::from_secs(10),
            patience: Patience::default(),
            pauses: Pauses::default(),
        }
    }
}

/// The interpreter and its surroundings.
#[derive(Debug, Clone)]
pub struct Python {
    /// The program: a name that is looked for in the path, or a path.
    pub program: String,
    /// All of its environment.
    pub env: BTreeMap<String, String>,
    /// Where it starts.
    pub directory: PathBuf,
}

/// How long hosts are waited for that do not answer.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// After how long a call without an answer has its host asked whether it is there.
    pub watch: Duration,
    /// How long the host has to say so. On a busy machine that takes a while.
    pub pong: Duration,
    /// How long a call that was given up has to notice.
    pub grace: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            watch: Duration::from_secs(1),
            pong: Duration::from_secs(5),
            grace: Duration::from_secs(1),
        }
    }
}

/// Pauses between the starts of a host that dies over and over.
#[derive(Debug, Clone, Copy)]
pub struct Pauses {
    /// How often it may die in a row before there are any.
    pub after: u32,
    /// The first. Each is twice as long as the one before.
    pub first: Duration,
    /// The longest.
    pub longest: Duration,
    /// How long a host must live for its death not to be one of a row.
    pub sound_life: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Pauses {
            after: 10,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(300),
            sound_life: Duration::from_secs(60),
        }
    }
}

impl Pauses {
    /// The pause after so many deaths in a row.
    pub(super) fn pause(&self, deaths: u32) -> Option<Duration> {
        let doublings = deaths.checked_sub(self.after)?.min(31);
        Some(self.first.saturating_mul(1 << doublings).min(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_begin_at_the_tenth_death_and_grow_to_the_longest() {
        let pauses = Pauses::default();
        assert_eq!(pauses.pause(9), None);
        assert_eq!(pauses.pause(10), Some(Duration::from_secs(1)));
        assert_eq!(pauses.pause(13), Some(Duration::from_secs(8)));
        assert_eq!(pauses.pause(1000), Some(Duration::from_secs(300)));
    }
}
