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
/// The most tokens that models read of all of them together.
const MAX_TOKENS: u64 = 1_000_000;
/// The most tokens of one of them.
const MAX_TOKENS_OF_ONE: u64 = 32_000;

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
    sessions: VecDeque<Fold>,
    tokens: u64,
}

impl Warm {
    /// Keeps the fold of a session that goes to sleep, unless it is large or waits for somebody.
    pub(crate) fn keep(&self, session: Fold) {
        if session.state.turn.is_some() || tokens(&session) > MAX_TOKENS_OF_ONE {
            return;
        }
        let mut kept = lock(&self.0);
        kept.tokens += tokens(&session);
        kept.sessions.push_back(session);
        while kept.sessions.len() > MAX_SESSIONS || kept.tokens > MAX_TOKENS {
            let Some(oldest) = kept.sessions.pop_front() else { return };
            kept.tokens = kept.tokens.saturating_sub(tokens(&oldest));
        }
    }

    /// Where a session stands, if it is asleep and its fold is here.
    pub(crate) fn look(&self, tenant: &TenantId, id: &SessionId) -> Option<SessionDetail> {
        let kept = lock(&self.0);
        let Fold { header, agent, state, .. } = kept.sessions.get(kept.place(tenant, id)?)?;
        let header = SessionHeader::clone(header);
        Some(SessionDetail { header, agent: Arc::clone(agent), state: state.clone() })
    }

    /// Takes the fold of a session that wakes.
    pub(crate) fn take(&self, tenant: &TenantId, id: &SessionId) -> Option<Fold> {
        let mut kept = lock(&self.0);
        let index = kept.place(tenant, id)?;
        let session = kept.sessions.remove(index)?;
        kept.tokens = kept.tokens.saturating_sub(tokens(&session));
        Some(session)
    }
}

impl Kept {
    fn place(&self, tenant: &TenantId, id: &SessionId) -> Option<usize> {
        // What was used last is asked for first.
        self.sessions.iter().rposition(|fold| fold.header.id == *id && fold.header.tenant == *tenant)
    }
}

fn tokens(session: &Fold) -> u64 {
    session.state.context.tokens()
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

    /// The fold of a session in which somebody has said so much.
    fn fold(number: usize, said: usize) -> Fold {
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
        let mut state = State::new(id(number), SessionView::new(header.created_at, None, Default::default()));
        if said > 0 {
            let message = UserMessage::new(vec![Block::text("word ".repeat(said))]);
            state.apply(&Event {
                session_id: id(number),
                sequence: 1,
                created_at: header.created_at,
                processed_at: None,
                payload: Payload::UserMessage(message),
            });
            state.turn = None;
        }
        Fold { header: Arc::new(header), agent: Arc::new(agent), state, context: None }
    }

    #[test]
    fn a_fold_is_looked_at_often_and_taken_once_and_only_by_its_tenant() {
        let warm = Warm::default();
        warm.keep(fold(1, 0));
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
        (0..=MAX_SESSIONS).for_each(|number| warm.keep(fold(number, 0)));
        assert!(warm.look(&tenant(), &id(0)).is_none());
        assert!(warm.look(&tenant(), &id(1)).is_some() && warm.look(&tenant(), &id(MAX_SESSIONS)).is_some());
    }

    #[test]
    fn only_so_much_is_kept() {
        let warm = Warm::default();
        let large = fold(0, 20_000);
        let tokens = tokens(&large);
        assert!(tokens > MAX_TOKENS_OF_ONE / 2 && tokens <= MAX_TOKENS_OF_ONE, "{tokens}");
        let fit = usize::try_from(MAX_TOKENS / tokens).unwrap();
        (0..=fit).for_each(|number| warm.keep(fold(number, 20_000)));
        assert!(warm.look(&tenant(), &id(0)).is_none() && warm.look(&tenant(), &id(1)).is_some());
        warm.keep(fold(fit + 1, 100_000));
        assert!(warm.look(&tenant(), &id(fit + 1)).is_none() && warm.look(&tenant(), &id(1)).is_some());
        // What is taken makes room.
        warm.take(&tenant(), &id(1)).unwrap();
        warm.keep(fold(0, 20_000));
        assert!(warm.look(&tenant(), &id(2)).is_some());
    }
}
