//! Text in pieces, as it is said.

use petasos_engine::{Live, LiveKind};

use super::types::TurnEvent;

/// What was shown of the message under way.
#[derive(Debug, Default)]
pub(super) struct Deltas {
    text: Track,
    thinking: Track,
}

impl Deltas {
    /// A new message begins.
    pub(super) fn begin(&mut self) {
        *self = Deltas::default();
    }

    /// What there is to show of something that is being said.
    pub(super) fn hear(&mut self, live: Live) -> Option<TurnEvent> {
        let Live { kind, text, reset, .. } = live;
        match kind {
            LiveKind::Text => self.text.hear(text, reset).map(|delta| TurnEvent::TextDelta { delta }),
            LiveKind::Thinking => {
                self.thinking.hear(text, reset).map(|delta| TurnEvent::ThinkingDelta { delta })
            }
            LiveKind::Title => None,
        }
    }

    /// What is left to show of a text that is now in the log.
    pub(super) fn text(&mut self, text: &str) -> Option<TurnEvent> {
        self.text.settle(text).map(|delta| TurnEvent::TextDelta { delta })
    }

    /// What is left to show of reasoning that is now in the log.
    pub(super) fn thinking(&mut self, text: &str) -> Option<TurnEvent> {
        self.thinking.settle(text).map(|delta| TurnEvent::ThinkingDelta { delta })
    }
}

/// One kind of text of one message. The protocol cannot take back what was shown, so a model that has to start over is
/// shown again only from where it says something new.
#[derive(Debug, Default)]
struct Track {
    shown: String,
    /// How much of it the model has said in its present attempt.
    heard: usize,
    /// How much of it is in the log.
    settled: usize,
}

impl Track {
    /// What there is to show of a piece; after a `reset` it is the first of another attempt.
    fn hear(&mut self, text: String, reset: bool) -> Option<String> {
        if reset {
            self.heard = 0;
        }
        let ahead = &self.shown[self.heard..];
        if ahead.starts_with(text.as_str()) {
            self.heard += text.len();
            return None;
        }
        let new = match text.strip_prefix(ahead) {
            Some(new) => new.to_owned(),
            None => {
                // This time it says something else.
                self.shown.truncate(self.heard);
                text
            }
        };
        self.shown.push_str(&new);
        self.heard = self.shown.len();
        Some(new)
    }

    fn settle(&mut self, text: &str) -> Option<String> {
        let ahead = &self.shown[self.settled..];
        if ahead.starts_with(text) {
            self.settled += text.len();
            return None;
        }
        // A text that does not go on from what was shown was replaced by a hook. It is in the history.
        let rest = text.strip_prefix(ahead).map(str::to_owned);
        self.shown.push_str(rest.as_deref().unwrap_or_default());
        self.settled = self.shown.len();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(text: &str, reset: bool) -> Live {
        Live { sequence: 1, kind: LiveKind::Text, text: text.to_owned(), reset }
    }

    fn shown(events: impl IntoIterator<Item = Option<TurnEvent>>) -> Vec<String> {
        let delta = |event| match event {
            TurnEvent::TextDelta { delta } | TurnEvent::ThinkingDelta { delta } => delta,
            other => panic!("{other:?}"),
        };
        events.into_iter().flatten().map(delta).collect()
    }

    #[test]
    fn what_was_heard_is_not_shown_again() {
        let mut deltas = Deltas::default();
        let events =
            [deltas.hear(live("one ", false)), deltas.hear(live("two", false)), deltas.text("one two three")];
        assert_eq!(shown(events), ["one ", "two", " three"]);
        deltas.begin();
        assert_eq!(
            shown([deltas.text("one two")]),
            ["one two"],
            "a reader that came late is shown all of it"
        );
    }

    #[test]
    fn several_texts_of_one_message_are_settled_one_after_another() {
        let mut deltas = Deltas::default();
        let events = [
            deltas.hear(live("onetwo", false)),
            deltas.text("one"),
            deltas.text("two"),
            deltas.text("three"),
        ];
        assert_eq!(shown(events), ["onetwo", "three"]);
    }

    #[test]
    fn an_attempt_that_starts_over_is_shown_from_where_it_is_new() {
        let mut deltas = Deltas::default();
        let events = [
            deltas.hear(live("one two ", false)),
            deltas.hear(live("one ", true)),
            deltas.hear(live("two three", false)),
            deltas.text("one two three"),
        ];
        assert_eq!(shown(events), ["one two ", "three"]);
        let mut other = Deltas::default();
        let events =
            [other.hear(live("one two ", false)), other.hear(live("three", true)), other.text("three")];
        assert_eq!(shown(events), ["one two ", "three"]);
    }

    #[test]
    fn a_text_that_was_replaced_is_left_to_the_history() {
        let mut deltas = Deltas::default();
        assert_eq!(shown([deltas.hear(live("one", false)), deltas.text("uno")]), ["one"]);
    }
}
