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
    pub(crate) fn keep(&self, fold: Fold) {
        let bytes = fold.context.as_ref().map_or(0, Context::bytes);
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
    use petasos_core::event::{Block, Event, Payload, UserMessage};
    use petasos_core::session::SessionView;
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
        let mut context = Context::default();
        context.apply(&Event {
            session_id: id(number),
            sequence: 1,
            created_at: header.created_at,
            processed_at: None,
            payload: Payload::UserMessage(UserMessage::new(content)),
        });
        Fold { header: Arc::new(header), agent: Arc::new(agent), state, context: Some(context) }
    }

    #[test]
    fn a_fold_is_looked_at_often_and_taken_once_and_only_by_its_tenant() {
        let warm = Warm::default();
        warm.keep(fold(1, Vec::new()));
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
        (0..=MAX_SESSIONS).for_each(|number| warm.keep(fold(number, Vec::new())));
        assert!(warm.look(&tenant(), &id(0)).is_none());
        assert!(warm.look(&tenant(), &id(1)).is_some() && warm.look(&tenant(), &id(MAX_SESSIONS)).is_some());
    }

    #[test]
    fn only_so_much_is_kept() {
        let warm = Warm::default();
        let text = |bytes: usize| vec![Block::text("a".repeat(bytes))];
        let fit = MAX_BYTES / MAX_BYTES_OF_ONE;
        (0..=fit).for_each(|number| warm.keep(fold(number, text(MAX_BYTES_OF_ONE))));
        assert!(warm.look(&tenant(), &id(0)).is_none() && warm.look(&tenant(), &id(1)).is_some());
        warm.keep(fold(fit + 1, text(MAX_BYTES_OF_ONE + 1)));
        assert!(warm.look(&tenant(), &id(fit + 1)).is_none() && warm.look(&tenant(), &id(1)).is_some());
        // What is taken makes room.
        warm.take(&tenant(), &id(1)).unwrap();
        warm.keep(fold(0, text(MAX_BYTES_OF_ONE)));
        assert!(warm.look(&tenant(), &id(2)).is_some());
    }

    #[test]
    fn a_picture_weighs_what_it_is_and_not_what_a_model_counts_it_as() {
        let warm = Warm::default();
        let url = format!("data:image/png;base64,{}", "A".repeat(MAX_BYTES_OF_ONE));
        warm.keep(fold(1, vec![Block::Image { url }]));
        assert!(warm.look(&tenant(), &id(1)).is_none());
    }
}
