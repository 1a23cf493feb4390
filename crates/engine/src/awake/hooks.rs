//! What an awake session tells hooks.

use petasos_core::State;
use petasos_hooks::{HookEvent, Observation, TurnInfo};

use super::Actor;
use crate::observed::Observed;
use crate::observers;
use crate::turn_info::turn_info;

impl Actor {
    /// Tells hooks about what the log now says. They run beside the turn, but for the ends of tool calls: the next
    /// model call waits until those were told, unless the turn waits for somebody first.
    pub(super) fn tell_hooks(&self, observed: Vec<Observed>) {
        let runs = self.state.turn.as_ref().is_some_and(|turn| !turn.is_paused());
        let running = self.state.turn_id().filter(|_| runs).map(|id| id.to_string());
        let mut all = self.ended_calls.take_left_over(running.as_deref());
        all.extend(observed.into_iter().filter(|news| match &news.observation {
            Observation::PostToolCall { tool_use_id, .. } => self.told.note(tool_use_id),
            _ => true,
        }));
        for Observed { turn_id, mut observation } in all {
            self.add_conversation(&mut observation);
            let is_end = matches!(observation, Observation::PostToolCall { .. });
            if is_end && running.as_ref() == Some(&turn_id) {
                self.ended_calls.add(Observed { turn_id, observation });
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
        turn_info(&self.shared, &self.header, self.state.model(&self.agent), self.root(), turn_id)
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
