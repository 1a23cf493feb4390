//! What flows from one program to another: through a pipe, a file, or into a word.

use std::ops::BitOr;

/// What a program prints or reads.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    /// None if only a running shell knows.
    pub(super) text: Option<String>,
    /// Where the parts of it come from that only a running shell knows.
    pub(super) origin: Origin,
}

/// Where a text comes from that nobody can read before it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Origin {
    pub(super) downloaded: bool,
    pub(super) decoded: bool,
    /// It is the numbers of running processes.
    pub(super) processes: bool,
    /// It came to a shell through a pipe.
    pub(super) piped: bool,
}

impl BitOr for Origin {
    type Output = Origin;

    fn bitor(self, other: Origin) -> Origin {
        Origin {
            downloaded: self.downloaded || other.downloaded,
            decoded: self.decoded || other.decoded,
            processes: self.processes || other.processes,
            piped: self.piped || other.piped,
        }
    }
}

impl Default for Flow {
    /// Nothing at all, which is known.
    fn default() -> Self {
        Flow { text: Some(String::new()), origin: Origin::default() }
    }
}

impl Flow {
    pub(super) fn unknown(origin: Origin) -> Self {
        Flow { text: None, origin }
    }

    /// How many bytes of it are known.
    pub(super) fn len(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }

    /// Puts another behind it.
    pub(super) fn append(&mut self, next: Flow) {
        self.origin = self.origin | next.origin;
        self.text = match (self.text.take(), next.text) {
            (Some(text), Some(next)) if text.is_empty() => Some(next),
            (Some(mut text), Some(next)) => {
                text.push_str(&next);
                Some(text)
            }
            _ => None,
        };
    }
}
