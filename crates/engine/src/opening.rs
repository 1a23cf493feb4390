//! What a turn is told when it opens, besides what opens it.

use petasos_core::State;
use petasos_core::agent::AgentDefinition;
use petasos_core::conversation::Mode;
use petasos_core::session::SessionHeader;
use petasos_core::step::{Opening, UserEvent};

use crate::engine::Shared;
use crate::error::Result;
use crate::{customers, prompt};

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
    let told = &state.conversation.variables;
    let (prompt, customer) = tokio::try_join!(
        prompt::for_first_turn(shared, header, agent, state),
        customers::news(shared, header, told),
    )?;
    Ok(Opening { prompt, customer })
}

fn may_open(event: &UserEvent) -> bool {
    match event {
        UserEvent::Message(_) | UserEvent::Supersede(_) => true,
        UserEvent::PersonNote(note) => note.opens_turn,
        _ => false,
    }
}
