//! What of a message is on the screen already, and what is still missing.
//!
//! The same text arrives several times: piece by piece, again from its beginning after a reconnect, from its
//! beginning and perhaps different when a model call is repeated, and whole when it is in the log. What was shown
//! cannot be taken back, so this works out the least that has to be added. It prints nothing itself.

use super::happening::{Extent, Kind};

/// What to add to the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Addition {
    /// A new message or a new thought starts.
    Begin(Kind),
    /// More of it.
    More(Kind, String),
    /// What was shown of it does not count; it starts again.
    StartOver(Kind),
    /// The log has something else than what was shown; this follows.
    Replaced(Kind),
}

/// A stretch of text of one kind.
#[derive(Debug)]
struct Segment {
    kind: Kind,
    text: String,
}

/// What was shown of the model call under way.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    shown: Vec<Segment>,
    /// What arrives now, since its last beginning.
    arriving: Option<Segment>,
    /// The place in `shown` that it belongs to.
    at: usize,
    /// Where to look for the next place.
    next: usize,
    /// Whether the log's own texts have begun to arrive.
    whole: bool,
}

impl Transcript {
    /// Takes what the agent said and returns what is to be added.
    pub(crate) fn say(&mut self, kind: Kind, extent: Extent, text: &str) -> Vec<Addition> {
        let mut additions = Vec::new();
        match extent {
            Extent::Whole => {
                if !self.whole {
                    self.rewind();
                    self.whole = true;
                }
                self.begin(kind, &mut additions);
            }
            Extent::Piece | Extent::Afresh => {
                if self.whole {
                    *self = Transcript::default();
                }
                if extent == Extent::Afresh {
                    self.rewind();
                }
                if self.arriving.as_ref().is_none_or(|arriving| arriving.kind != kind) {
                    self.begin(kind, &mut additions);
                }
            }
        }
        if let Some(arriving) = &mut self.arriving {
            arriving.text.push_str(text);
        }
        match extent {
            Extent::Whole => self.settle(&mut additions),
            Extent::Piece | Extent::Afresh => self.catch_up(&mut additions),
        }
        additions
    }

    /// The stream was opened anew: what is being said comes again from its beginning.
    pub(crate) fn reconnected(&mut self) {
        if !self.whole {
            self.rewind();
        }
    }

    /// Something else happened, so that nothing more comes of this.
    pub(crate) fn end(&mut self) {
        *self = Transcript::default();
    }

    fn rewind(&mut self) {
        self.arriving = None;
        self.next = 0;
    }

    /// A new stretch arrives: it is the next one of its kind that was shown, or one that was not shown yet.
    fn begin(&mut self, kind: Kind, additions: &mut Vec<Addition>) {
        let known = self.shown.iter().skip(self.next).position(|segment| segment.kind == kind);
        self.at = match known {
            Some(offset) => self.next + offset,
            None => {
                additions.push(Addition::Begin(kind));
                self.shown.push(Segment { kind, text: String::new() });
                self.shown.len() - 1
            }
        };
        self.next = self.at + 1;
        self.arriving = Some(Segment { kind, text: String::new() });
    }

    fn catch_up(&mut self, additions: &mut Vec<Addition>) {
        let (Some(arriving), Some(shown)) = (&self.arriving, self.shown.get_mut(self.at)) else { return };
        if let Some(rest) = arriving.text.strip_prefix(shown.text.as_str()) {
            if !rest.is_empty() {
                additions.push(Addition::More(arriving.kind, rest.to_owned()));
                shown.text.push_str(rest);
            }
        } else if !shown.text.starts_with(arriving.text.as_str()) {
            additions.push(Addition::StartOver(arriving.kind));
            additions.push(Addition::More(arriving.kind, arriving.text.clone()));
            shown.text.clone_from(&arriving.text);
        }
    }

    /// The whole text is here: what was shown is completed, or told to be something else.
    fn settle(&mut self, additions: &mut Vec<Addition>) {
        let (Some(arriving), Some(shown)) = (&self.arriving, self.shown.get_mut(self.at)) else { return };
        if arriving.text.starts_with(&shown.text) {
            return self.catch_up(additions);
        }
        if arriving.text.trim_end() == shown.text.trim_end() {
            return;
        }
        additions.push(Addition::Replaced(arriving.kind));
        additions.push(Addition::More(arriving.kind, arriving.text.clone()));
        shown.text.clone_from(&arriving.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays what arrives and returns what is on the screen: `[` and `(` begin text and thinking, `!` starts over.
    fn screen(arrivals: &[(Kind, Extent, &str)]) -> String {
        let mut transcript = Transcript::default();
        arrivals.iter().fold(String::new(), |screen, (kind, extent, text)| {
            screen + &show(transcript.say(*kind, *extent, text))
        })
    }

    fn show(additions: Vec<Addition>) -> String {
        let shown = |addition| match addition {
            Addition::Begin(Kind::Text) => "[".to_owned(),
            Addition::Begin(Kind::Thinking) => "(".to_owned(),
            Addition::More(_, text) => text,
            Addition::StartOver(_) => "!".to_owned(),
            Addition::Replaced(_) => "=".to_owned(),
        };
        additions.into_iter().map(shown).collect()
    }

    const T: Kind = Kind::Text;
    const R: Kind = Kind::Thinking;
    const P: Extent = Extent::Piece;
    const W: Extent = Extent::Whole;
    const A: Extent = Extent::Afresh;

    #[test]
    fn pieces_and_then_the_whole_are_shown_once() {
        assert_eq!(screen(&[(T, P, "a"), (T, P, "b"), (T, W, "ab")]), "[ab");
        assert_eq!(screen(&[(T, P, "a"), (T, W, "abc")]), "[abc");
        assert_eq!(screen(&[(T, W, "abc")]), "[abc");
        assert_eq!(screen(&[(R, P, "x"), (T, P, "a"), (R, W, "x"), (T, W, "ab")]), "(x[ab");
        // An interrupt keeps the text and drops the reasoning.
        assert_eq!(screen(&[(R, P, "x"), (T, P, "a"), (T, W, "a")]), "(x[a");
    }

    #[test]
    fn the_next_call_is_another_message_even_if_it_says_the_same() {
        assert_eq!(screen(&[(T, P, "a"), (T, W, "a"), (T, P, "a"), (T, W, "a")]), "[a[a");
        assert_eq!(screen(&[(T, W, "a"), (T, W, "a")]), "[a[a");
    }

    #[test]
    fn a_repeated_call_shows_only_what_is_new() {
        assert_eq!(screen(&[(T, P, "ab"), (T, A, "a"), (T, P, "bc"), (T, W, "abc")]), "[abc");
        assert_eq!(screen(&[(T, P, "ab"), (T, A, "ax"), (T, W, "axy")]), "[ab!axy");
        assert_eq!(screen(&[(R, P, "x"), (T, P, "a"), (R, A, "x"), (T, P, "ab")]), "(x[ab");
    }

    #[test]
    fn what_the_log_has_instead_is_shown_again() {
        assert_eq!(screen(&[(T, P, "secret"), (T, W, "******")]), "[secret=******");
        assert_eq!(screen(&[(T, P, "a secret"), (T, W, "a")]), "[a secret=a");
        // Where only white space at the end is gone, nothing is.
        assert_eq!(screen(&[(T, P, "a\n"), (T, W, "a")]), "[a\n");
    }

    #[test]
    fn a_new_stream_repeats_nothing() {
        let mut transcript = Transcript::default();
        let mut shown = show(transcript.say(R, P, "x"));
        shown += &show(transcript.say(T, P, "ab"));
        transcript.reconnected();
        shown += &show(transcript.say(R, P, "x"));
        shown += &show(transcript.say(T, P, "abc"));
        shown += &show(transcript.say(R, W, "x"));
        transcript.reconnected();
        shown += &show(transcript.say(T, W, "abcd"));
        assert_eq!(shown, "(x[abcd");
    }
}
