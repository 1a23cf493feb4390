//! What flows from one program to another: through a pipe, a file, or into a word.

use std::ops::BitOr;

use super::lexer::{UNKNOWN, is_unknown};

/// What a program prints or reads.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    /// The text. What only a running shell knows is marked in it.
    pub(super) text: String,
    /// Whether it has all that a program prints of which nobody knows what that is.
    pub(super) unknown: bool,
    /// Whether it is a file of the workspace, as it is.
    pub(super) is_file: bool,
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
    /// It is what is in files.
    pub(super) content: bool,
    /// It is variables of the environment.
    pub(super) environment: bool,
    /// A shell prints it.
    pub(super) shell: bool,
    /// It is settings that a program prints to be evaluated, such as `ssh-agent -s`.
    pub(super) settings: bool,
}

impl BitOr for Origin {
    type Output = Origin;

    fn bitor(self, other: Origin) -> Origin {
        Origin {
            downloaded: self.downloaded || other.downloaded,
            decoded: self.decoded || other.decoded,
            processes: self.processes || other.processes,
            piped: self.piped || other.piped,
            content: self.content || other.content,
            environment: self.environment || other.environment,
            shell: self.shell || other.shell,
            settings: self.settings || other.settings,
        }
    }
}

impl Flow {
    /// All that some program prints.
    pub(super) fn unknown(origin: Origin) -> Self {
        Flow { text: format!("{UNKNOWN}\n"), unknown: true, is_file: false, origin }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether nothing of it is known.
    pub(super) fn is_all_unknown(&self) -> bool {
        self.unknown && self.text.chars().all(|character| is_unknown(character) || character == '\n')
    }

    /// Puts another behind it.
    pub(super) fn append(&mut self, next: Flow) {
        // Programs mostly print whole lines. Joined with what is not known, a command would not be seen.
        if (self.unknown || next.unknown) && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.origin = self.origin | next.origin;
        self.unknown |= next.unknown;
        if self.text.is_empty() {
            self.text = next.text;
        } else {
            self.text.push_str(&next.text);
        }
    }
}
