//! How a turn ended, for whoever waits for one that nobody else attends.

use petasos_core::event::{Payload, StatusIdle, StopReason};

use crate::error::{Error, Result};
use crate::reader::{Item, Reader};

/// How a turn ended.
pub(crate) struct Ended {
    /// `completed`, `interrupted` or `failed`.
    pub(crate) status: &'static str,
    /// What was said last, and why it failed if it did.
    pub(crate) text: String,
}

/// Follows a session until its turn is over, and says how it ended. Whatever happens on the way is shown to `seen`.
pub(crate) async fn until_done(mut reader: Reader, mut seen: impl FnMut(&Payload)) -> Result<Ended> {
    let mut said = String::new();
    while let Some(item) = reader.next().await? {
        let Item::Durable(event) = item else { continue };
        seen(&event.payload);
        match &event.payload {
            Payload::AgentMessage(message) => said.clone_from(&message.text),
            Payload::StatusIdle(StatusIdle { stop_reason, .. }) => {
                let (status, text) = match stop_reason {
                    StopReason::EndTurn { interrupted: true, .. } => ("interrupted", said),
                    StopReason::EndTurn { .. } => ("completed", said),
                    StopReason::Error { message, .. } => ("failed", format!("{said}\n{message}")),
                    StopReason::RequiresAction { .. } => ("failed", "It waits for a person.".to_owned()),
                };
                return Ok(Ended { status, text: text.trim().to_owned() });
            }
            _ => {}
        }
    }
    Err(Error::ShuttingDown)
}
