//! What an awake session does when it is asked for something.

use std::sync::Arc;

use petasos_core::conversation::labels_problem;
use petasos_core::event::{Event, TitleSource, Titled};
use petasos_core::metadata::metadata_problem;
use petasos_core::state::{ActionKind, Call};
use petasos_core::step::{Change, Input, UserEvent};
use petasos_hooks::Observation;
use petasos_tools::SessionWorkspace;
use serde_json::Value;

use super::{Actor, interrupt, limits_of};
use crate::actor::{Command, End, Reply};
use crate::agents::merge_by_key;
use crate::deletion::{SESSION_DELETED, remove_files};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::sessions::{SessionChange, Submission};
use crate::{observers, opening, own_workspace};

impl Actor {
    /// Carries out a command. An error here is one that the session cannot live with.
    pub(super) async fn command(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Wake | Command::Delete { .. } => Ok(()),
            Command::Send { submission, reply } => {
                let result = self.submit(submission).await;
                answer(reply, result)
            }
            Command::Change { change, reply } => {
                let result = self.change(change).await;
                answer(reply, result)
            }
            Command::Expire { reply } => {
                let result = self.feed_input(Input::ActionsExpired).await.map(drop);
                answer(reply, result)
            }
            Command::EndRun { run_id, error, reply } => {
                let result = self.end_run(run_id, error).await;
                answer(reply, result)
            }
            Command::Archive { reply } => {
                let result = self.feed_input(Input::Archive).await.map(drop);
                if let (Ok(()), Some(own)) = (&result, self.own_workspace()) {
                    own_workspace::end_commands(&self.shared, &own);
                }
                answer(reply, result)
            }
        }
    }

    /// Takes what was sent, all or nothing, and returns what became of it in the log.
    async fn submit(&mut self, submission: Submission) -> Result<Vec<Event>> {
        let Submission { events, mut secrets, answers, expected_sequence } = submission;
        let actual = self.state.view.last_sequence;
        if expected_sequence.is_some_and(|expected| expected != actual) {
            return Err(Error::MovedOn { id: self.header.id.to_string() });
        }
        let opening = opening::of(&self.shared, &self.header, &self.agent, &self.state, &events).await?;
        let sent = events.len();
        let mut passwords = Vec::new();
        for (request_id, value) in answers {
            match self.state.pending().find(|action| action.id == request_id) {
                Some(action) if action.kind == ActionKind::Secret => {
                    secrets.extend(secret_name(action.call).map(|name| (name, value)));
                }
                _ => passwords.push((request_id, value)),
            }
        }
        let interrupts = events.iter().any(|event| matches!(event, UserEvent::Interrupt(_)));
        let said_so_far = if interrupts { self.feed.hold() } else { String::new() };
        let result = self.feed_input(Input::User { events, said_so_far, opening }).await;
        if interrupts {
            self.feed.release();
        }
        let events = result?;
        // What needs them starts after this.
        self.shared.secrets.keep(&self.header.id, secrets);
        for (request_id, password) in passwords {
            self.shared.secrets.keep_password(&self.header.id, request_id, password);
        }
        let mut taken: Vec<Event> = events.into_iter().filter(|event| event.payload.is_sent()).collect();
        // A message that ends the turn under way comes after the interrupt that it is.
        Ok(taken.split_off(taken.len().saturating_sub(sent)))
    }

    /// Changes what is noted about the session, all of it or nothing.
    async fn change(&mut self, change: SessionChange) -> Result<()> {
        let SessionChange { title, metadata, mut conversation, labels, model, model_settings } = change;
        let metadata = match metadata {
            Some(patch) => {
                self.shared.deliveries.check_metadata(&patch)?;
                let mut merged = self.state.view.metadata.clone();
                merge_by_key(&mut merged, &patch);
                if let Some(problem) = metadata_problem(&merged) {
                    return Err(Error::Invalid { field: "metadata".to_owned(), problem });
                }
                Some(merged).filter(|merged| *merged != self.state.view.metadata)
            }
            None => None,
        };
        if let Some(change) = labels {
            let labels = change.made_to(&self.state.conversation.labels);
            if let Some(problem) = labels_problem(&labels) {
                return Err(Error::Invalid { field: "labels".to_owned(), problem });
            }
            conversation.get_or_insert_default().labels = Some(labels);
        }
        let title = title.map(|title| Titled { title, source: TitleSource::User });
        let settings = if model.is_some() || model_settings.is_some() {
            let before = self.state.settings.clone().unwrap_or_default();
            let after = before.with_model(model, model_settings).map_err(Error::setting)?;
            Some(after).filter(|after| *after != before)
        } else {
            None
        };
        self.feed_input(Input::Change(Change { title, metadata, conversation, settings })).await?;
        self.limits = limits_of(&self.shared, &self.agent, &self.state);
        Ok(())
    }

    /// Removes the session for good, with what it has under way and its subagents.
    pub(super) async fn delete(mut self, reply: Reply<()>) -> End {
        self.end_run_with_session().await;
        if self.state.turn.is_some() {
            // The log is about to go; what matters is that nothing goes on running.
            drop(self.feed_input(interrupt(SESSION_DELETED)).await);
        }
        self.under_way.clear();
        let engine = Engine { shared: Arc::clone(&self.shared) };
        engine.delete_threads(&self.header.tenant, &self.header.id).await;
        let own = self.own_workspace();
        if let Some(own) = &own {
            own_workspace::note_removal(&self.shared, own).await;
        }
        let deleted = self.shared.store.delete_session(&self.header.tenant, &self.header.id).await;
        match deleted {
            Ok(_) => {
                observers::tell(&self.shared, self.turn_of(&self.state), Observation::SessionFinalize);
                if let Some(own) = own {
                    remove_files(&self.shared, own);
                }
                drop(reply.send(Ok(())));
                End::Gone
            }
            Err(error) => {
                let error = error.into();
                let end = End::failed(&error);
                drop(reply.send(Err(error)));
                end
            }
        }
    }

    fn own_workspace(&self) -> Option<SessionWorkspace> {
        own_workspace::of(&self.header, self.root())
    }
}

/// The variable that a secret was asked for.
fn secret_name(call: &Call) -> Option<String> {
    call.input.get("name").and_then(Value::as_str).map(str::to_owned)
}

/// Answers a command. Most errors are the caller's; a log that somebody else wrote to ends this actor.
fn answer<T>(reply: Reply<T>, result: Result<T>) -> Result<()> {
    let stale = match &result {
        Err(Error::Store(petasos_store::Error::Stale { what, expected, actual })) => {
            let (what, expected, actual) = (what.clone(), *expected, *actual);
            Err(Error::Store(petasos_store::Error::Stale { what, expected, actual }))
        }
        _ => Ok(()),
    };
    // The caller may have gone away; what it asked for is done all the same.
    drop(reply.send(result));
    stale
}
