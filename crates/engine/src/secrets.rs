//! Secret values of sessions. They live here, in memory, and nowhere else: a restart forgets them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Mutex;

use petasos_core::ids::SessionId;
use secrecy::SecretString;

use crate::feed::lock;

/// How many sessions may have secrets at a time. The one that was given its first secret longest ago loses them first.
const MAX_SESSIONS: usize = 10_000;

/// How many passwords may wait for their commands. The oldest goes first; its command is then told that it is gone.
const MAX_PASSWORDS: usize = 1_000;

/// Secret values, by session and name.
#[derive(Default)]
pub(crate) struct Secrets(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_session: HashMap<SessionId, BTreeMap<String, SecretString>>,
    oldest_first: VecDeque<SessionId>,
    /// Passwords that were given and not yet used, by session and request.
    passwords: VecDeque<(SessionId, String, SecretString)>,
}

impl Secrets {
    /// Keeps values, in place of earlier ones of the same names.
    pub(crate) fn keep(&self, session_id: &SessionId, values: BTreeMap<String, SecretString>) {
        if values.is_empty() {
            return;
        }
        let mut kept = lock(&self.0);
        if !kept.by_session.contains_key(session_id) {
            if kept.by_session.len() >= MAX_SESSIONS
                && let Some(oldest) = kept.oldest_first.pop_front()
            {
                tracing::warn!(session_id = %oldest, "too many sessions have secrets; this one has to be given its own again");
                kept.by_session.remove(&oldest);
            }
            kept.oldest_first.push_back(session_id.clone());
        }
        kept.by_session.entry(session_id.clone()).or_default().extend(values);
    }

    /// The values of a session.
    pub(crate) fn of(&self, session_id: &SessionId) -> BTreeMap<String, SecretString> {
        lock(&self.0).by_session.get(session_id).cloned().unwrap_or_default()
    }

    /// Keeps a password until the command that needs it starts.
    pub(crate) fn keep_password(&self, session_id: &SessionId, request_id: String, password: SecretString) {
        let mut kept = lock(&self.0);
        if kept.passwords.len() >= MAX_PASSWORDS {
            kept.passwords.pop_front();
        }
        kept.passwords.push_back((session_id.clone(), request_id, password));
    }

    /// The requests of a session whose passwords are here.
    pub(crate) fn passwords(&self, session_id: &SessionId) -> Vec<String> {
        let kept = lock(&self.0);
        let own = kept.passwords.iter().filter(|(session, _, _)| session == session_id);
        own.map(|(_, request_id, _)| request_id.clone()).collect()
    }

    /// Hands out a password, once.
    pub(crate) fn take_password(&self, session_id: &SessionId, request_id: &str) -> Option<SecretString> {
        let mut kept = lock(&self.0);
        let mut all = kept.passwords.iter();
        let index = all.position(|(session, request, _)| session == session_id && request == request_id)?;
        kept.passwords.remove(index).map(|(_, _, password)| password)
    }

    /// The session is gone, and its secrets with it.
    pub(crate) fn forget(&self, session_id: &SessionId) {
        let mut kept = lock(&self.0);
        kept.passwords.retain(|(session, _, _)| session != session_id);
        if kept.by_session.remove(session_id).is_some() {
            kept.oldest_first.retain(|kept| kept != session_id);
        }
    }
}

/// What the model is told of secrets that are here no more.
pub(crate) fn lost_text(names: &[String]) -> Option<String> {
    let lost = names.join(", ");
    let text = format!(
        "The values that the user gave for {lost} are no longer here, because such values are kept in memory only: \
         commands do not find them any more. If they are needed, ask again with request_secret."
    );
    (!names.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn id(number: usize) -> SessionId {
        format!("session_{number}").parse().unwrap()
    }

    fn values(name: &str, value: &str) -> BTreeMap<String, SecretString> {
        BTreeMap::from([(name.to_owned(), SecretString::from(value))])
    }

    #[test]
    fn values_are_replaced_by_name_and_forgotten_with_the_session() {
        let secrets = Secrets::default();
        secrets.keep(&id(1), values("A", "1"));
        secrets.keep(&id(1), values("B", "2"));
        secrets.keep(&id(1), values("A", "3"));
        let kept = secrets.of(&id(1));
        assert_eq!((kept["A"].expose_secret(), kept["B"].expose_secret()), ("3", "2"));
        assert!(secrets.of(&id(2)).is_empty());
        secrets.forget(&id(1));
        assert!(secrets.of(&id(1)).is_empty());
    }

    #[test]
    fn a_password_is_handed_out_once() {
        let secrets = Secrets::default();
        secrets.keep_password(&id(1), "sudo_1".into(), SecretString::from("pw"));
        assert_eq!(secrets.passwords(&id(1)), ["sudo_1"]);
        assert!(secrets.take_password(&id(2), "sudo_1").is_none());
        assert_eq!(secrets.take_password(&id(1), "sudo_1").unwrap().expose_secret(), "pw");
        assert!(secrets.take_password(&id(1), "sudo_1").is_none());
        secrets.keep_password(&id(1), "sudo_2".into(), SecretString::from("pw"));
        secrets.forget(&id(1));
        assert!(secrets.passwords(&id(1)).is_empty());
    }

    #[test]
    fn the_model_is_told_what_is_gone_and_not_why() {
        assert_eq!(lost_text(&[]), None);
        let text = lost_text(&["TOKEN".to_owned()]).unwrap();
        // A bound may have done it as well as a restart.
        assert!(text.contains("TOKEN are no longer here") && !text.contains("restart"), "{text}");
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let secrets = Secrets::default();
        (0..=MAX_SESSIONS).for_each(|number| secrets.keep(&id(number), values("A", "1")));
        assert!(secrets.of(&id(0)).is_empty());
        assert_eq!(secrets.of(&id(1)).len(), 1);
    }
}
