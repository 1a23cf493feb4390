//! The life of one session's actor: from its first command until nothing is left to do, whatever happens.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use petasos_core::event::Event;
use petasos_core::ids::{RunId, SessionId, TenantId};
use petasos_core::run::RunError;
use petasos_core::step::Input;
use tokio::sync::{mpsc, oneshot};

use crate::awake::Actor;
use crate::deletion::clear_up;
use crate::engine::Shared;
use crate::error::{Error, Result};
use crate::feed::lock;
use crate::rest::{Ailment, rest_and_wake};
use crate::routines::end_waiting_runs;
use crate::sessions::{SessionChange, Submission};

/// What surfaces ask of a session.
pub(crate) enum Command {
    /// Nothing; the session is awake by now.
    Wake,
    /// Events from a person or application.
    Send { submission: Submission, reply: Reply<Vec<Event>> },
    /// What is noted about it changes.
    Change { change: SessionChange, reply: Reply<()> },
    /// The time for answers may be over.
    Expire { reply: Reply<()> },
    /// A run is ended. The answer says whether it was under way.
    EndRun { run_id: RunId, error: RunError, reply: Reply<bool> },
    /// The session is put away.
    Archive { reply: Reply<()> },
    /// The session is removed for good.
    Delete { reply: Reply<()> },
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T>>;

/// What whoever carries out an effect has to say.
pub(crate) enum Report {
    /// It has ended.
    Ended {
        /// The effect, by the number under which it was started.
        effect: u64,
        /// What the step is told.
        input: Input,
        /// What `pre_llm_call` said, if it was asked: text for the user's message in every model call of the turn.
        injected: Option<String>,
    },
    /// The first text of a reply arrived, for sessions whose readers are told so.
    TextBegan {
        /// Which model call of the turn says it.
        call: u32,
    },
    /// Something for the log while it goes on.
    Note {
        /// What the step is told.
        input: Input,
        /// Told when it is in the log.
        written: oneshot::Sender<()>,
    },
}

/// Runs the actor of one session until it has nothing to do.
pub(crate) async fn run(
    shared: Arc<Shared>,
    tenant: TenantId,
    session_id: SessionId,
    mut mailbox: mpsc::Receiver<Command>,
) {
    let stopping = shared.stopping.clone();
    let life = async {
        let lived = match Actor::load(&shared, &tenant, &session_id).await {
            Ok(Some(actor)) => actor.live(&mut mailbox).await,
            Ok(None) => Ok(End::Absent),
            Err(error) => Err(error),
        };
        lived.unwrap_or_else(|error| End::failed(&error))
    };
    let end = tokio::select! {
        // A bug in one turn must not leave a session that nobody can reach.
        end = AssertUnwindSafe(life).catch_unwind() => end.unwrap_or_else(|_| End::a_bug()),
        () = stopping.cancelled() => End::Stopped,
    };
    match end {
        End::Retired => shared.resting.forget(&session_id),
        End::Stopped => close(&shared, (tenant, session_id), &mut mailbox, || Error::ShuttingDown),
        End::Absent => {
            let not_found = || not_found(&session_id);
            close(&shared, (tenant.clone(), session_id.clone()), &mut mailbox, not_found);
            if shared.runs.waiting.take(&session_id) {
                end_waiting_runs(&shared, &tenant, &session_id).await;
            }
        }
        End::Gone => {
            close(&shared, (tenant.clone(), session_id.clone()), &mut mailbox, || not_found(&session_id));
            clear_up(&shared, &tenant, &session_id).await;
        }
        End::Failed { cause, ailment } => {
            tracing::error!(%session_id, cause, "the session stops and is picked up again from its log");
            close(&shared, (tenant.clone(), session_id.clone()), &mut mailbox, || {
                let (context, source) = ("the session could not be written".to_owned(), cause.clone().into());
                Error::Store(match ailment {
                    Ailment::FullStore => petasos_store::Error::Full { context, source },
                    _ => petasos_store::Error::Failed { context, source },
                })
            });
            rest_and_wake(shared, tenant, session_id, ailment);
        }
    }
}

/// How the life of an actor ends.
pub(crate) enum End {
    /// Nothing is left to do. The session is already off the list.
    Retired,
    /// The session does not exist, or is somebody else's.
    Absent,
    /// The session was removed.
    Gone,
    /// The server stops.
    Stopped,
    /// The store failed, or somebody else wrote; with the cause for the log.
    Failed { cause: String, ailment: Ailment },
}

impl End {
    /// An error that the session cannot live with.
    pub(crate) fn failed(error: &Error) -> Self {
        let ailment = match error {
            Error::Store(petasos_store::Error::Damaged { .. }) => Ailment::Damage,
            Error::Store(petasos_store::Error::Full { .. }) => Ailment::FullStore,
            _ => Ailment::Passing,
        };
        End::Failed { cause: with_cause(error), ailment }
    }

    fn a_bug() -> Self {
        End::Failed { cause: "a bug".to_owned(), ailment: Ailment::Passing }
    }
}

/// An error and what caused it, on one line.
fn with_cause(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn not_found(session_id: &SessionId) -> Error {
    Error::NotFound { kind: "session", id: session_id.to_string() }
}

/// Takes the session off the list and answers what is still in its mailbox.
fn close(
    shared: &Shared,
    name: (TenantId, SessionId),
    mailbox: &mut mpsc::Receiver<Command>,
    error: impl Fn() -> Error,
) {
    let mut awake = lock(&shared.awake);
    awake.remove(&name);
    mailbox.close();
    while let Ok(command) = mailbox.try_recv() {
        // Nobody waits any more if the reply cannot be sent.
        match command {
            Command::Wake => {}
            Command::Send { reply, .. } => drop(reply.send(Err(error()))),
            Command::EndRun { reply, .. } => drop(reply.send(Err(error()))),
            Command::Change { reply, .. }
            | Command::Expire { reply }
            | Command::Archive { reply }
            | Command::Delete { reply } => drop(reply.send(Err(error()))),
        }
    }
}
