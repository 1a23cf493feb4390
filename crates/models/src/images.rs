//! Pictures in a conversation with a model that takes none.
//!
//! Surfaces refuse them before they are said, so they are only here if the provider's settings changed since.

use petasos_core::event::Block;
use petasos_core::model::{Message, Request};

const LEFT_OUT: &str = "[An image, which this model cannot see]";

/// Puts a note in the place of every picture.
pub(crate) fn leave_out(request: &mut Request) {
    for message in &mut request.messages {
        match message {
            Message::User(content) => {
                let images = content.iter_mut().filter(|block| matches!(block, Block::Image { .. }));
                images.for_each(|block| *block = Block::text(LEFT_OUT));
            }
            Message::ToolResults(outcomes) => {
                for outcome in outcomes.iter_mut().filter(|outcome| !outcome.images.is_empty()) {
                    outcome.images.clear();
                    outcome.text = format!("{}\n{LEFT_OUT}", outcome.text);
                }
            }
            Message::Assistant(_) => {}
        }
    }
}
