//! One call of user code: to the host where its guest is, within its time limit, whatever becomes of the host.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::guest::{Guest, Registered};
use super::host::Host;
use super::hosts::Shared;
use super::keeper::{Keeper, Running, State};
use super::message::{Answer, Order};
use super::orders::Lost;
use super::wishes::Caller;

/// A call without a limit has this one.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Whether a call may be made again if the host died of something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Once.
    IfLost,
    /// Never: it may have had an effect.
    Never,
}

/// A call that its guest does not have any more.
pub(super) const NOT_THERE: &str = "it is not registered any more";

/// Has a guest carry out an order, made from what it has registered with its host.
pub(super) async fn call<'o>(
    shared: &Arc<Shared>,
    guest: &Arc<Guest>,
    caller: Caller,
    limit: Option<Duration>,
    repeat: Repeat,
    order: impl Fn(&Registered) -> Option<Order<'o>>,
) -> Result<Answer, String> {
    let limit = limit.unwrap_or(FOR_EVER);
    let deadline = Instant::now() + limit;
    let over = || format!("it had not answered after {} s and was given up", limit.as_secs_f64());
    let mut repeat = repeat;
    loop {
        let (keeper, running) = ready(guest, deadline).await?.ok_or_else(over)?;
        let registered = running.registered(&guest.key).ok_or(NOT_THERE)?;
        let sent = running.host.order(&guest.key, caller.clone(), order(&registered).ok_or(NOT_THERE)?)?;
        let mut waiting = Waiting(Some(Pending {
            shared: Arc::clone(shared),
            guest: Arc::clone(guest),
            keeper,
            host: Arc::clone(&running.host),
            number: sent.number,
            reply: sent.reply,
            deadline,
            ends_unheard: limit == FOR_EVER,
        }));
        match waiting.answer().await {
            Some(Ok(answer)) => {
                return match answer.error {
                    None => Ok(answer),
                    Some(error) => {
                        let trace = answer.trace.unwrap_or_default();
                        tracing::debug!(guest = %guest.key, "a callback failed: {error}\n{trace}");
                        Err(error)
                    }
                };
            }
            Some(Err(Lost::PerhapsByAnother)) if repeat == Repeat::IfLost => repeat = Repeat::Never,
            Some(Err(_)) => return Err("its Python host died while it ran".to_owned()),
            None => return Err(over()),
        }
    }
}

/// The host of a guest, as soon as it is there; none if that takes too long.
async fn ready(guest: &Guest, deadline: Instant) -> Result<Option<(Arc<Keeper>, Arc<Running>)>, String> {
    match tokio::time::timeout_at(deadline, guest.settled()).await {
        Ok((keeper, State::Ready(running))) => Ok(Some((keeper, running))),
        Ok((_, State::Resting(why))) => Err(why.to_string()),
        Ok((_, State::Empty | State::Starting)) => Err("it has no Python host".to_owned()),
        Err(_) => Ok(None),
    }
}

/// A call whose answer is waited for. If that stops early, as when a turn is interrupted, the call still ends within
/// its limit.
struct Waiting(Option<Pending>);

impl Waiting {
    /// The answer; none if the limit has passed.
    async fn answer(&mut self) -> Option<Result<Answer, Lost>> {
        let answer = self.0.as_mut()?.answer().await;
        if let (Some(pending), None) = (self.0.take(), &answer) {
            tokio::spawn(pending.give_up());
        }
        answer
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(mut pending) = self.0.take() else { return };
        // There is no runtime any more when the server stops, and then the hosts are ended anyway.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if pending.ends_unheard || pending.answer().await.is_none() {
                    pending.give_up().await;
                }
            });
        }
    }
}

/// A call that has no answer yet.
struct Pending {
    shared: Arc<Shared>,
    guest: Arc<Guest>,
    keeper: Arc<Keeper>,
    host: Arc<Host>,
    number: u64,
    reply: oneshot::Receiver<Result<Answer, Lost>>,
    deadline: Instant,
    /// Whether it has no limit of its own, and ends when nobody waits for it any more.
    ends_unheard: bool,
}

impl Pending {
    /// The answer; none if the limit has passed.
    async fn answer(&mut self) -> Option<Result<Answer, Lost>> {
        loop {
            let pause = self.deadline.min(Instant::now() + self.shared.settings.patience.watch);
            if let Ok(answer) = tokio::time::timeout_at(pause, &mut self.reply).await {
                return Some(answer.unwrap_or(Err(Lost::ByThis)));
            }
            if Instant::now() >= self.deadline {
                return None;
            }
            // An answer says nothing new; no answer says that some code holds the whole interpreter.
            let answers = self.host.answers_within(self.shared.settings.patience.pong);
            if tokio::time::timeout_at(self.deadline, answers).await == Ok(false) {
                self.host.end_held();
            }
        }
    }

    /// Stops the call. If it does not notice, its guest gets another host and this one is done with.
    async fn give_up(self) {
        self.host.abandon(self.number);
        if tokio::time::timeout(self.shared.settings.patience.grace, self.reply).await.is_ok() {
            return;
        }
        self.host.forget(self.number);
        if self.shared.set_apart(&self.guest, 0) {
            tracing::warn!(guest = %self.guest.key, "it did not end in time and gets a Python host of its own");
        }
        self.keeper.replace(&self.host);
    }
}
