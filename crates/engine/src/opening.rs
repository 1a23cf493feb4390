//! What a turn is told when it opens, besides what opens it.

use petasos_core::State;
use petasos_core::agent::AgentDefinition;
use petasos_core::conversation::Mode;
use petasos_core::session::SessionHeader;
use petasos_core::step::{Opening, UserEvent};

use crate::engine::Shared;
use crate::error::Result;
use crate::prompt;

/// What the turn is told that these events open; nothing if they open none.
pub(crate) async fn of(
    shared: &Shared,
    header: &SessionHeader,
    agent: &AgentDefinition,
    state: &State,
    events: &[UserEvent],
) -> Result<Opening> {
    if state.conversation.mode == Mode::Manual || !events.iter().any(may_open) {
        return Ok(Opening::default());
    }
    let prompt = prompt::for_first_turn(shared, header, agent, state).await?;
    Ok(Opening { prompt, customer: None })
}

fn may_open(event: &UserEvent) -> bool {
    match event {
        UserEvent::Message(_) | UserEvent::Supersede(_) => true,
        UserEvent::PersonNote(note) => note.opens_turn,
        _ => false,
    }
}
