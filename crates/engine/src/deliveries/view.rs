//! What receivers of webhooks see of a log.

use petasos_core::event::Event;

/// What an event of the log is to receivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Its place, counted from 0.
    pub offset: u64,
    /// What is sent.
    pub body: Vec<u8>,
}

/// A fold of a log into what receivers see. Beginning at the first event of any turn, it must say the same as from the
/// beginning of the log.
pub trait DeliveryView: Send + Sync {
    /// Takes the next event into account, and returns what receivers see of it.
    fn push(&mut self, event: &Event) -> Option<Rendered>;
}

/// Begins a fold.
pub type NewView = fn() -> Box<dyn DeliveryView>;
