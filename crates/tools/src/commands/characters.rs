//! The characters of a command, one after the other.

/// What of a text is still to come. A backslash at the end of a line joins it with the next one, as it does in a
/// shell; where a shell takes it as it stands, behind a backslash, in single quotes and in comments, so does `raw`.
#[derive(Debug)]
pub(super) struct Characters {
    text: Vec<char>,
    at: usize,
}

impl Characters {
    pub(super) fn new(text: &str) -> Self {
        // A shell drops them.
        Characters { text: text.chars().filter(|character| *character != '\0').collect(), at: 0 }
    }

    /// The next one, over the ends of lines that are joined.
    pub(super) fn next(&mut self) -> Option<char> {
        self.peek();
        self.raw()
    }

    pub(super) fn peek(&mut self) -> Option<char> {
        while self.text.get(self.at..).is_some_and(|rest| rest.starts_with(&['\\', '\n'])) {
            self.at += 2;
        }
        self.peek_raw()
    }

    pub(super) fn next_if(&mut self, is_it: impl FnOnce(char) -> bool) -> Option<char> {
        self.peek().filter(|next| is_it(*next))?;
        self.raw()
    }

    /// The next one as it stands.
    pub(super) fn raw(&mut self) -> Option<char> {
        let next = self.peek_raw();
        self.at += usize::from(next.is_some());
        next
    }

    pub(super) fn raw_if(&mut self, is_it: impl FnOnce(char) -> bool) -> Option<char> {
        self.peek_raw().filter(|next| is_it(*next))?;
        self.raw()
    }

    pub(super) fn peek_raw(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    /// The one before the one that was read last.
    pub(super) fn before_last(&self) -> Option<char> {
        self.text.get(self.at.checked_sub(2)?).copied()
    }

    /// How many were read.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Goes back to a place.
    pub(super) fn go_back(&mut self, place: usize) {
        self.at = place.min(self.at);
    }

    /// What was read since a place.
    pub(super) fn since(&self, place: usize) -> String {
        self.text.get(place..self.at).unwrap_or_default().iter().collect()
    }

    /// Everything before this character as it stands, or all that is left.
    pub(super) fn raw_until(&mut self, end: char) -> String {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let before: String = rest.iter().take_while(|character| **character != end).collect();
        self.at += before.chars().count();
        before
    }
}
