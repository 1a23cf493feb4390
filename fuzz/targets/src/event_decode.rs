//! Events as the store keeps them: whatever can be read folds without a panic, and is written as it was read.

use jiff::Timestamp;
use petasos_core::context::Context;
use petasos_core::event::Event;
use petasos_core::session::SessionView;
use petasos_core::state::State;

use crate::Target;

/// A log: one event as JSON on each line, in whatever order and however impossible.
pub fn target() -> Target {
    Box::new(check)
}

fn check(bytes: &[u8]) {
    let events: Vec<Event> =
        bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let Some(first) = events.first() else { return };
    let view = SessionView::new(Timestamp::UNIX_EPOCH, None, serde_json::Map::new());
    let mut state = State::new(first.session_id.clone(), view);
    let mut context = Context::default();
    for event in &events {
        let written = serde_json::to_vec(event).unwrap();
        let read: Event = serde_json::from_slice(&written).unwrap();
        assert_eq!(&read, event, "{}", written.escape_ascii());
        assert_eq!(serde_json::to_vec(&read).unwrap(), written);
        state.apply(event);
        context.apply(event);
    }
    let _ = (state.turn_id(), state.pending().count(), context.messages(), context.turn_message());
    // The fold is kept as a checkpoint, which must lead to the same state.
    let written = serde_json::to_vec(&state).unwrap();
    assert_eq!(serde_json::from_slice::<State>(&written).unwrap(), state, "{}", written.escape_ascii());
}
