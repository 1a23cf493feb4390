//! Conversation events as webhooks carry them: the same JSON as readers get.

use petasos_core::event::Event;
use petasos_engine::{DeliveryView, Rendered};

use super::view::ConversationView;

/// What receivers of webhooks see of a session.
pub fn conversation_view() -> Box<dyn DeliveryView> {
    Box::new(ConversationView::default())
}

impl DeliveryView for ConversationView {
    fn push(&mut self, event: &Event) -> Option<Rendered> {
        let shown = ConversationView::push(self, event)?;
        match serde_json::to_vec(&shown) {
            Ok(body) => Some(Rendered { offset: event.sequence.saturating_sub(1), body }),
            Err(error) => {
                tracing::error!(session_id = %event.session_id, %error, "an event cannot be written as JSON");
                None
            }
        }
    }
}
