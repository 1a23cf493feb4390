//! Folds of the sessions that were awake last.
//!
//! A conversation goes on, and its next turn need not read the log again. Only so much is kept, whatever the number of
//! sessions, and a fold that is gone costs a read. Whoever wakes a session takes its fold away, so there is never one
//! beside an actor; and if it were wrong, the store would refuse the first append.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use petasos_core::State;
use petasos_core::agent::AgentDefinition;
use petasos_core::context::Context;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::session::SessionHeader;
use serde::Serialize;

use crate::feed::lock;
use crate::sessions::SessionDetail;

/// How many folds are kept.
const MAX_SESSIONS: usize = 512;
/// How much memory all of them together may take.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// How much one of them may take.
const MAX_BYTES_OF_ONE: usize = 128 * 1024;

/// What an actor holds of its session's log.
pub(crate) struct Fold {
    pub(crate) header: Arc<SessionHeader>,
    pub(crate) agent: Arc<AgentDefinition>,
    pub(crate) state: State,
    /// What the model reads, if that was needed already.
    pub(crate) context: Option<Context>,
}

/// About how much memory a fold of these takes. Settings of sessions and definitions of agents may be long.
pub(crate) fn weight(agent: &AgentDefinition, state: &State, context: Option<&Context>) -> usize {
    context.map_or(0, Context::bytes) + as_json(state) + as_json(agent)
}

fn as_json(value: &impl Serialize) -> usize {
    // What cannot be written is not kept.
    serde_json::to_vec(value).map_or(usize::MAX / 4, |json| json.len())
}

/// Folds of sessions without an actor.
#[derive(Default)]
pub(crate) struct Warm(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The one that has been asleep longest comes first.
    sessions: VecDeque<Weighed>,
    bytes: usize,
}

/// A fold and about how much memory it takes.
struct Weighed {
    fold: Fold,
    bytes: usize,
}

impl Warm {
    /// Keeps the fold of a session that goes to sleep, unless it is large or waits for somebody.
    pub(crate) fn keep(&self, fold: Fold, bytes: usize) {
        if fold.state.turn.is_some() || bytes > MAX_BYTES_OF_ONE {
            return;
        }
        let mut kept = lock(&self.0);
        kept.bytes += bytes;
        kept.sessions.push_back(Weighed { fold, bytes });
        while kept.sessions.len() > MAX_SESSIONS || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.sessions.pop_front() else { return };
            kept.bytes -= oldest.bytes;
        }
    }

    /// Where a session stands, if it is asleep and its fold is here.
    pub(crate) fn look(&self, tenant: &TenantId, id: &SessionId) -> Option<SessionDetail> {
        let kept = lock(&self.0);
        let Fold { header, agent, state, .. } = &kept.sessions.get(kept.place(tenant, id)?)?.fold;
        let header = SessionHeader::clone(header);
        Some(SessionDetail { header, agent: Arc::clone(agent), state: state.clone() })
    }

    /// Takes the fold of a session that wakes.
    pub(crate) fn take(&self, tenant: &TenantId, id: &SessionId) -> Option<Fold> {
        let mut kept = lock(&self.0);
        let index = kept.place(tenant, id)?;
        let Weighed { fold, bytes } = kept.sessions.remove(index)?;
        kept.bytes -= bytes;
        Some(fold)
    }
}

impl Kept {
    fn place(&self, tenant: &TenantId, id: &SessionId) -> Option<usize> {
        // What was used last is asked for first.
        let is_it = |header: &SessionHeader| header.id == *id && header.tenant == *tenant;
        self.sessions.iter().rposition(|kept| is_it(&kept.fold.header))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use petasos_core::event::{Block, Event, Payload, UserMessage, UserSteer};
    use petasos_core::session::SessionView;
    use petasos_core::settings::SessionSettings;
    use serde_json::json;

    use super::*;

    fn tenant() -> TenantId {
        "default".parse().unwrap()
    }

    fn id(number: usize) -> SessionId {
        format!("session_{number:032x}").parse().unwrap()
    }

    /// The fold of a session in which somebody has said this.
    fn fold(number: usize, content: Vec<Block>) -> Fold {
        let header = SessionHeader {
            id: id(number),
            tenant: tenant(),
            agent_id: "agent_1".parse().unwrap(),
            agent_version: 1,
            user_id: None,
            platform: "api".to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
        };
        let agent = serde_json::from_value(json!({ "name": "Ada", "model": "demo/echo" })).unwrap();
        let state = State::new(id(number), SessionView::new(header.created_at, None, Default::default()));
        let (header, agent) = (Arc::new(header), Arc::new(agent));
        let mut fold = Fold { header, agent, state, context: Some(Context::default()) };
        follow(&mut fold, Payload::UserMessage(UserMessage::new(content)));
        fold
    }

    /// Has the model read one more event.
    fn follow(fold: &mut Fold, payload: Payload) {
        fold.context.as_mut().unwrap().apply(&Event {
            session_id: fold.header.id.clone(),
            sequence: 1,
            created_at: fold.header.created_at,
            processed_at: None,
            payload,
        });
    }

    impl Fold {
        fn weight(&self) -> usize {
            weight(&self.agent, &self.state, self.context.as_ref())
        }
    }

    fn keep(warm: &Warm, fold: Fold) {
        let weight = fold.weight();
        warm.keep(fold, weight);
    }

    #[test]
    fn a_fold_is_looked_at_often_and_taken_once_and_only_by_its_tenant() {
        let warm = Warm::default();
        keep(&warm, fold(1, Vec::new()));
        let other = "other".parse().unwrap();
        assert!(warm.look(&other, &id(1)).is_none() && warm.take(&other, &id(1)).is_none());
        assert!(warm.look(&tenant(), &id(1)).is_some());
        assert_eq!(warm.look(&tenant(), &id(1)).unwrap().header.id, id(1));
        assert!(warm.take(&tenant(), &id(1)).is_some());
        assert!(warm.look(&tenant(), &id(1)).is_none() && warm.take(&tenant(), &id(1)).is_none());
    }

    #[test]
    fn only_so_many_are_kept_and_the_oldest_go_first() {
        let warm = Warm::default();
        (0..=MAX_SESSIONS).for_each(|number| keep(&warm, fold(number, Vec::new())));
        assert!(warm.look(&tenant(), &id(0)).is_none());
        assert!(warm.look(&tenant(), &id(1)).is_some() && warm.look(&tenant(), &id(MAX_SESSIONS)).is_some());
    }

    #[test]
    fn only_so_much_is_kept() {
        let warm = Warm::default();
        let picture = |bytes: usize| vec![Block::Image { url: "a".repeat(bytes) }];
        let most = MAX_BYTES_OF_ONE - fold(0, picture(0)).weight();
        let fit = MAX_BYTES / MAX_BYTES_OF_ONE;
        (0..=fit).for_each(|number| keep(&warm, fold(number, picture(most))));
        assert!(warm.look(&tenant(), &id(0)).is_none() && warm.look(&tenant(), &id(1)).is_some());
        keep(&warm, fold(fit + 1, picture(most + 1)));
        assert!(warm.look(&tenant(), &id(fit + 1)).is_none() && warm.look(&tenant(), &id(1)).is_some());
        // What is taken makes room.
        warm.take(&tenant(), &id(1)).unwrap();
        keep(&warm, fold(0, picture(most)));
        assert!(warm.look(&tenant(), &id(2)).is_some());
    }

    #[test]
    fn what_waits_for_the_next_turn_weighs_too() {
        let (warm, mut waits) = (Warm::default(), fold(1, Vec::new()));
        let steer = UserSteer { message: "a".repeat(MAX_BYTES_OF_ONE) };
        follow(&mut waits, Payload::UserSteer(steer));
        keep(&warm, waits);
        assert!(warm.look(&tenant(), &id(1)).is_none());
    }

    #[test]
    fn many_messages_weigh_something_even_if_they_say_nothing() {
        let (warm, mut many) = (Warm::default(), fold(1, Vec::new()));
        (0..MAX_BYTES_OF_ONE / 16)
            .for_each(|_| follow(&mut many, Payload::UserMessage(UserMessage::new(Vec::new()))));
        keep(&warm, many);
        assert!(warm.look(&tenant(), &id(1)).is_none());
    }

    #[test]
    fn what_a_session_sets_and_what_its_agent_is_told_weigh_too() {
        let warm = Warm::default();
        let (mut set, mut told) = (fold(1, Vec::new()), fold(2, Vec::new()));
        let options = [("text".to_owned(), "a".repeat(MAX_BYTES_OF_ONE))].into();
        set.state.settings = Some(SessionSettings { options, ..SessionSettings::default() });
        Arc::get_mut(&mut told.agent).unwrap().instructions = "a".repeat(MAX_BYTES_OF_ONE);
        [set, told].into_iter().for_each(|fold| keep(&warm, fold));
        assert!(warm.look(&tenant(), &id(1)).is_none() && warm.look(&tenant(), &id(2)).is_none());
    }

    #[test]
    fn a_picture_weighs_what_it_is_and_not_what_a_model_counts_it_as() {
        let warm = Warm::default();
        let url = format!("data:image/png;base64,{}", "A".repeat(MAX_BYTES_OF_ONE));
        keep(&warm, fold(1, vec![Block::Image { url }]));
        assert!(warm.look(&tenant(), &id(1)).is_none());
    }
}
