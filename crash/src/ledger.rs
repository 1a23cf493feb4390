//! What the server acknowledged: the promises that the log is checked against.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use petasos_testkit::within;
use serde_json::Value;
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct Ledger {
    sessions: Mutex<BTreeMap<String, Account>>,
    count: watch::Sender<u64>,
}

/// What is known about one session.
#[derive(Default, Clone)]
pub(crate) struct Account {
    /// Envelopes of acknowledged events by sequence.
    pub(crate) acknowledged: BTreeMap<u64, Value>,
    /// Names of turns whose message was sent, acknowledged or not.
    pub(crate) sent: BTreeSet<String>,
    /// The last listing that was seen; a log only ever grows.
    pub(crate) seen: Vec<Value>,
}

impl Ledger {
    pub(crate) fn acknowledge(&self, session: &str, data: &Value) {
        let events = data.as_array().unwrap();
        self.update(session, |account| {
            for event in events {
                account.acknowledged.insert(event["sequence"].as_u64().unwrap(), event.clone());
            }
        });
        self.count.send_modify(|count| *count += events.len() as u64);
    }

    pub(crate) fn update(&self, session: &str, update: impl FnOnce(&mut Account)) {
        update(self.sessions.lock().unwrap().entry(session.to_owned()).or_default());
    }

    pub(crate) fn account(&self, session: &str) -> Account {
        self.sessions.lock().unwrap().get(session).cloned().unwrap_or_default()
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        *self.count.borrow()
    }

    pub(crate) async fn wait_for(&self, count: u64) {
        let mut changes = self.count.subscribe();
        within("acknowledged events", changes.wait_for(|now| *now >= count)).await.unwrap();
    }
}
