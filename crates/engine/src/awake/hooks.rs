//! What an awake session tells hooks.

use petasos_core::State;
use petasos_hooks::{HookEvent, Observation, TurnInfo};

use super::Actor;
use crate::observed::Observed;
use crate::observers;
use crate::turn_info::turn_info;

impl Actor {
    /// Tells hooks about what the log now says. They run beside the turn, but for the ends of tool calls: the next
    /// model call waits until those were told.
    pub(super) fn tell_hooks(&mut self, observed: Vec<Observed>) {
        for Observed { turn_id, mut observation } in observed {
            self.add_conversation(&mut observation);
            let goes_on = self.state.turn_id().is_some_and(|id| id.to_string() == turn_id);
            if goes_on && matches!(observation, Observation::PostToolCall { .. }) {
                self.ended_calls.push(observation);
            } else {
                observers::tell(&self.shared, self.turn_info(turn_id), observation);
            }
        }
    }

    /// The turn that is under way in a state.
    pub(crate) fn turn_of(&self, state: &State) -> TurnInfo {
        self.turn_info(state.turn_id().map(|id| id.to_string()).unwrap_or_default())
    }

    fn turn_info(&self, turn_id: String) -> TurnInfo {
        turn_info(&self.shared, &self.header, &self.agent.model, self.root(), turn_id)
    }

    /// Puts in what was said, if somebody wants to know.
    fn add_conversation(&self, observation: &mut Observation) {
        if let Observation::PostLlmCall { user_message, history, .. } = observation
            && self.shared.hooks.wants(HookEvent::PostLlmCall)
            && let Some(context) = &self.context
        {
            context.task().clone_into(user_message);
            *history = context.messages();
        }
    }
}
