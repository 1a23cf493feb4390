//! A point in a reply that a test holds.

use std::sync::Arc;

use tokio::sync::watch;

/// Stops a reply where it stands until the test opens it. Clones are the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    state: Arc<watch::Sender<State>>,
}

#[derive(Debug, Default)]
struct State {
    reached: usize,
    open: bool,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everyone pass from now on.
    pub fn open(&self) {
        self.state.send_modify(|state| state.open = true);
    }

    /// Waits until a reply has come to this gate: everything before it is sent.
    pub async fn reached(&self) {
        let _ = self.state.subscribe().wait_for(|state| state.reached > 0).await;
    }

    /// Waits until the gate is open.
    pub(crate) async fn pass(&self) {
        self.state.send_modify(|state| state.reached += 1);
        let _ = self.state.subscribe().wait_for(|state| state.open).await;
    }
}
