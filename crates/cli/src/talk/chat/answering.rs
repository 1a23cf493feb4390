//! Answers what a turn waits for.

use anyhow::Result;
use serde_json::{Value, json};

use super::super::questions::{self, Answers};
use super::{Answered, Chat, Next, is_out_of_reach, is_settled};

impl Chat<'_> {
    /// Asks for what the turn waits for, and sends it.
    pub(super) async fn answer(&mut self) -> Result<Answered> {
        loop {
            let pending = self.input.interrupts.or(self.conversation.pending()).await;
            let Some(actions) = self.told(pending)? else { return self.answer_later().await };
            if actions.is_empty() {
                // Somebody else was faster.
                return Ok(Answered::Sent);
            }
            let sent = match questions::ask(&actions, self.input, &mut self.screen).await? {
                Answers::Given(events) => {
                    let answers = json!({ "events": events });
                    match self.input.interrupts.or(self.conversation.send(&answers)).await {
                        Err(error) if is_settled(&error) => {
                            self.answer_each(&events).await?;
                            continue;
                        }
                        sent => sent.map(drop),
                    }
                }
                Answers::Interrupted => self.input.interrupts.or(self.conversation.interrupt()).await,
                Answers::End => return Ok(Answered::Not(Next::Leave)),
            };
            let is_lost = sent.as_ref().is_err_and(is_out_of_reach);
            if self.told(sent)?.is_some() {
                return Ok(Answered::Sent);
            }
            if is_lost {
                return self.answer_later().await;
            }
        }
    }

    /// Goes back to the prompt with a turn that still waits.
    async fn answer_later(&mut self) -> Result<Answered> {
        self.conversation.find_server().await;
        self.screen.line(
            "The turn still waits. Say anything to be asked again; if there is no server, start one with petasos serve.",
        )?;
        Ok(Answered::Not(Next::Stay))
    }

    /// Sends answers one by one, since the server takes all of a request or nothing: those that nobody waits for any
    /// more must not keep the others from arriving.
    async fn answer_each(&mut self, events: &[Value]) -> Result<()> {
        for event in events {
            match self.conversation.send(event).await {
                Err(error) if is_settled(&error) => {}
                sent => drop(self.told(sent)?),
            }
        }
        Ok(())
    }
}
