//! Runs checks where they hold up nobody.
//!
//! Nearly every check takes some microseconds and runs where it is asked for. One that has used up a few thousand steps
//! begins again on a thread of its own, of which there are few; whoever waits longer than a deadline is told so.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::evaluate::Stop;
use super::{Mismatch, Schema};

/// The steps that a check may take where it is asked for: about a millisecond.
const STEPS_AT_ONCE: u64 = 50_000;
/// The steps that a check may take at all: about a second.
const MAX_STEPS: u64 = 10_000_000;
/// How long anybody waits for a check, the wait for a thread included.
const DEADLINE: Duration = Duration::from_secs(10);

static THREADS: Semaphore = Semaphore::const_new(2);

/// Why a value is not taken.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CheckError {
    /// The schema itself cannot be used.
    Schema(String),
    /// The value does not fit, or cannot be checked within bounds.
    Value(Mismatch),
}

/// Checks a value against a schema.
pub(crate) async fn check(schema: &Value, value: &Value) -> Result<(), CheckError> {
    match check_within(STEPS_AT_ONCE, schema, value)? {
        Err(Stop::TooCostly(_)) => {}
        known => return known.map_err(unfit),
    }
    let (schema, value) = (schema.clone(), value.clone());
    match on_thread(move || check_within(MAX_STEPS, &schema, &value)).await {
        Some(outcome) => outcome?.map_err(unfit),
        None => Err(unfit(Stop::TooCostly(format!("no result came within {} seconds", DEADLINE.as_secs())))),
    }
}

/// Runs something that takes long on one of a few threads; none if it is not done at the deadline.
pub(crate) async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let done = async {
        let permit = THREADS.acquire().await.ok()?;
        // The thread keeps its place until it is done, whoever still waits for it.
        let done = spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.ok()
    };
    timeout(DEADLINE, done).await.ok().flatten()
}

fn check_within(steps: u64, schema: &Value, value: &Value) -> Result<Result<(), Stop>, CheckError> {
    let schema = Schema::read(schema).map_err(CheckError::Schema)?;
    Ok(schema.check(value, steps))
}

fn unfit(stop: Stop) -> CheckError {
    CheckError::Value(match stop {
        Stop::Unfit(Some(mismatch)) => *mismatch,
        Stop::Unfit(None) => Mismatch::too_costly("the check ended without a reason"),
        Stop::TooCostly(problem) => Mismatch::too_costly(&problem),
    })
}
