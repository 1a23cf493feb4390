//! What `pre_llm_call` said in turns that are paused.
//!
//! The text belongs to its turn and never goes into the log, and the hook is asked once per turn. A pause lets the
//! actor go, so the text waits here. Only so many are kept; a turn whose text is gone, as after a restart, has the
//! hook asked again.

use std::collections::VecDeque;
use std::sync::Mutex;

use petasos_core::ids::SessionId;

use crate::feed::lock;

/// How many texts are kept.
const MAX_KEPT: usize = 1024;

/// Texts of paused turns, oldest first.
#[derive(Default)]
pub(crate) struct Injected(Mutex<VecDeque<Kept>>);

struct Kept {
    session_id: SessionId,
    /// The sequence of the message that opened the turn.
    opened_by: u64,
    text: String,
}

impl Injected {
    /// Keeps the text of a turn that pauses.
    pub(crate) fn keep(&self, session_id: &SessionId, opened_by: u64, text: String) {
        let mut kept = lock(&self.0);
        kept.push_back(Kept { session_id: session_id.clone(), opened_by, text });
        if kept.len() > MAX_KEPT {
            kept.pop_front();
        }
    }

    /// Gives back the text of the session's turn under way. That of an earlier turn is dropped.
    pub(crate) fn take(&self, session_id: &SessionId, opened_by: Option<u64>) -> Option<String> {
        let mut all = lock(&self.0);
        let index = all.iter().position(|kept| kept.session_id == *session_id)?;
        let kept = all.remove(index)?;
        (Some(kept.opened_by) == opened_by).then_some(kept.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_given_back_to_its_own_turn_once() {
        let injected = Injected::default();
        let id: SessionId = "session_1".parse().unwrap();
        injected.keep(&id, 1, "text".to_owned());
        assert_eq!(injected.take(&id, Some(1)).as_deref(), Some("text"));
        assert_eq!(injected.take(&id, Some(1)), None);
        injected.keep(&id, 1, "text".to_owned());
        assert_eq!(injected.take(&id, Some(7)), None);
        assert_eq!(injected.take(&id, Some(1)), None, "a turn that is over has no use for it");
    }

    #[test]
    fn the_oldest_go_first() {
        let injected = Injected::default();
        let id = |number: usize| -> SessionId { format!("session_{number}").parse().unwrap() };
        (0..=MAX_KEPT).for_each(|number| injected.keep(&id(number), 1, String::new()));
        assert_eq!(injected.take(&id(0), Some(1)), None);
        assert_eq!(injected.take(&id(1), Some(1)).as_deref(), Some(""));
    }
}
