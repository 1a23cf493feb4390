//! Tries a call again when that may help.

use std::sync::atomic::Ordering;
use std::time::Duration;

use petasos_net::backoff::Failure;
use tokio::time::{Instant, sleep, timeout};

use crate::call::Call;
use crate::error::Retry;
use crate::generate::Emitter;
use crate::{Delta, Error};

/// Carries a call out: as many attempts as the settings allow, then the answer or the last error.
pub(crate) async fn run(mut call: Call, emitter: Emitter<Result<Delta, Error>>) {
    let limit = call.settings.time_limit;
    let outcome = match timeout(limit, attempts(&mut call, &emitter)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let message =
                format!("{}/{}: the call took longer than {limit:?}", call.provider.name, call.model);
            let began = call.has_begun.load(Ordering::Relaxed);
            Err(Error { began, ..Error::new(Error::TIMEOUT, message) })
        }
    };
    emitter.emit(outcome.map(Delta::Finished)).await;
}

async fn attempts(
    call: &mut Call,
    emitter: &Emitter<Result<Delta, Error>>,
) -> Result<petasos_core::model::Answer, Error> {
    let mut attempts = 0;
    let mut first_failure = None;
    loop {
        attempts += 1;
        let mut streamed = false;
        let mut unfinished = None;
        let error = match call.attempt(emitter, &mut streamed, &mut unfinished).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        // Time counts from the first failure, so that a long answer that breaks off is tried again too.
        let since_first = first_failure.get_or_insert_with(Instant::now).elapsed();
        let Some(delay) = delay(call, &error, attempts, since_first) else {
            // Some servers never say why they stop. They cannot be told from a connection that was cut but by asking
            // again, so the last answer counts.
            return unfinished.ok_or_else(|| last(error, attempts));
        };
        let error = error.message;
        emitter.emit(Ok(Delta::Retrying { attempt: attempts, error, reset: streamed })).await;
        sleep(delay).await;
    }
}

fn delay(call: &Call, error: &Error, attempts: u32, since_first: Duration) -> Option<Duration> {
    let Retry::After(retry_after) = error.retry else { return None };
    call.settings.retry.delay_after(&Failure {
        attempts,
        since_first,
        retry_after,
        random: petasos_net::random(),
    })
}

fn last(mut error: Error, attempts: u32) -> Error {
    if attempts > 1 {
        error.message.push_str(&format!(" (after {attempts} attempts)"));
    }
    error
}
