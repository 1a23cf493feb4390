//! Starts the runs of schedules: one for each due time, whatever is restarted when.
//!
//! A routine remembers up to when its due times have been dealt with, and the key of a scheduled run is made of its due
//! time. So a due time that is dealt with twice, because a process died in between, still has one run.

use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use petasos_core::ids::{RunId, SessionId};
use petasos_core::recovery::WorkKind;
use petasos_core::routine::{Missed, RoutineRecord, Schedule};
use petasos_core::run::{RunError, RunErrorCode, RunOutcome, RunRecord};
use petasos_store::{NewRun, PageRequest, WorkFound, WorkKey};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::callback;
use super::cron::Timetable;
use super::schema::{self, CheckError};
use super::trigger::{self, Trigger};
use crate::due;
use crate::engine::{Engine, Shared, now};
use crate::error::{Error, Result};
use crate::feed::lock;

/// How late a run may start and still not count as missed.
const LATE: SignedDuration = SignedDuration::from_secs(60);
/// Among how many runs of a routine the newest is looked for that its schedule started.
const NEWEST_RUNS: usize = 100;
/// What the keys of scheduled runs begin with.
pub(super) const KEY_PREFIX: &str = "schedule:";
/// Takes the place of a digest: the key says all about a scheduled request.
const FINGERPRINT: &str = "schedule";

/// Keeps schedules until the server stops.
pub(super) async fn keep(shared: Arc<Shared>) {
    let engine = Engine { shared: Arc::clone(&shared) };
    let served_since = Mutex::new(now());
    let start = || {
        let mut since = lock(&served_since);
        // A clock that is set back takes the beginning with it.
        *since = (*since).min(now());
        engine.start_due_runs(*since)
    };
    due::keep("schedules", &shared.runs.rescheduled, &shared.closing, start).await;
}

impl Engine {
    /// Starts what is due, and says when the next run is; none if nothing is scheduled.
    async fn start_due_runs(&self, served_since: Timestamp) -> Result<Option<Timestamp>> {
        let at = now();
        let mut next: Option<Timestamp> = None;
        let since = at.saturating_sub(LATE).unwrap_or(served_since).max(served_since);
        for routine in self.shared.store.routines(None).await? {
            let Some(schedule) = &routine.definition.schedule else { continue };
            let timetable = match Timetable::new(schedule) {
                Ok(timetable) => timetable,
                Err(problem) => {
                    tracing::warn!(routine = %routine.id, problem, "a schedule cannot be kept");
                    continue;
                }
            };
            let set_aside = &self.shared.recovery.set_aside;
            if set_aside.holds(WorkKind::Schedule, &routine.tenant, routine.id.as_str()) {
                continue;
            }
            // Work that was set aside is tried now, and not when it falls due again.
            let is_tried = set_aside.tries(WorkKind::Schedule, &routine.tenant, routine.id.as_str());
            let missed = if is_tried { Missed::Latest } else { schedule.missed };
            let last = timetable.last_until(at);
            // Dealt with by a clock that was ahead. Those due times come again, and what has a run already gets no other.
            let is_ahead = routine.scheduled_through > at;
            let through = if is_ahead { last.unwrap_or(at) } else { routine.scheduled_through };
            let due = due_times(&timetable, missed, through, since, at);
            let mut again = timetable.next_after(at);
            if let Err(error) = self.run_all_scheduled(&routine, schedule, &due).await {
                // Trouble with one routine is no reason to keep the others waiting.
                tracing::warn!(routine = %routine.id, %error, "a scheduled run could not be started; trying again");
                again = at.checked_add(due::AFTER_TROUBLE).ok();
            } else {
                let done = last.filter(|last| *last > through).or(is_ahead.then_some(through));
                if let Some(done) = done {
                    self.shared.store.scheduled_through(&routine.tenant, &routine.id, done).await?;
                }
                set_aside.succeeded(WorkKind::Schedule, &routine.tenant, routine.id.as_str());
            }
            next = [next, again].into_iter().flatten().min();
        }
        Ok(next)
    }

    /// Schedules with due times that have not been dealt with, each with the newest run that it started.
    pub(crate) async fn due_schedules(&self) -> Result<Vec<WorkFound>> {
        let mut found = Vec::new();
        for routine in self.shared.store.routines(None).await? {
            let timetable = routine.definition.schedule.as_ref().map(Timetable::new);
            let Some(Ok(timetable)) = timetable else { continue };
            if timetable.last_until(now()).is_none_or(|last| last <= routine.scheduled_through) {
                continue;
            }
            let page = PageRequest { after: None, limit: NEWEST_RUNS };
            let runs = self.shared.store.runs(&routine.tenant, &routine.id, page).await?.items;
            let is_scheduled = |run: &&RunRecord| run.idempotency_key.starts_with(KEY_PREFIX);
            let newest = runs.iter().find(is_scheduled).map(|run| run.id.as_str()).unwrap_or_default();
            // A due time that is skipped at a start is no progress; a run is, and so is another definition.
            let position = format!("{newest} {}", routine.updated_at);
            let key =
                WorkKey { kind: WorkKind::Schedule, tenant: routine.tenant, id: routine.id.to_string() };
            found.push(WorkFound { key, session_id: None, position });
        }
        Ok(found)
    }

    async fn run_all_scheduled(
        &self,
        routine: &RoutineRecord,
        schedule: &Schedule,
        due: &[Timestamp],
    ) -> Result<()> {
        for due_at in due {
            self.run_scheduled(routine, schedule, *due_at).await?;
        }
        Ok(())
    }

    async fn run_scheduled(
        &self,
        routine: &RoutineRecord,
        schedule: &Schedule,
        due_at: Timestamp,
    ) -> Result<()> {
        let scheduled_for = due_at.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string();
        let trigger = Trigger {
            input: schedule.input.clone(),
            callback_url: schedule.callback_url.clone(),
            session_id: None,
            idempotency_key: Some(format!("{KEY_PREFIX}{scheduled_for}")),
            metadata: Map::from_iter([("scheduled_for".to_owned(), Value::from(scheduled_for))]),
            fingerprint: FINGERPRINT.to_owned(),
        };
        let at = now();
        let new = match checked(routine, &trigger).await {
            Err(error) => self.failed_at_once(routine, trigger, error, at),
            Ok(()) => match self.new_run(routine, trigger.clone(), at).await {
                Err(Error::SessionUnusable { problem }) => {
                    let error = RunError::new(RunErrorCode::SessionError, problem);
                    self.failed_at_once(routine, trigger, error, at)
                }
                new => new?,
            },
        };
        self.accept(new).await.map(drop)
    }

    /// A run that was settled before it had a session.
    fn failed_at_once(
        &self,
        routine: &RoutineRecord,
        trigger: Trigger,
        error: RunError,
        at: Timestamp,
    ) -> NewRun {
        let (id, session_id) = (RunId::from_parts_of(Uuid::now_v7()), SessionId::from_uuid(Uuid::now_v7()));
        let run = trigger::record(id, session_id, routine, trigger, at);
        let outcome = RunOutcome::Failed { error };
        let callback = callback::of(&self.shared, &run, &outcome, at);
        NewRun { run: run.settled(outcome, at), session: None, customer: None, callback }
    }
}

/// Nobody waits for the answer, so bad input is a run that failed.
async fn checked(routine: &RoutineRecord, trigger: &Trigger) -> std::result::Result<(), RunError> {
    let input = Value::Object(trigger.input.clone());
    schema::check(&routine.definition.input_schema, &input).await.map_err(|error| match error {
        CheckError::Schema(problem) => {
            RunError::new(RunErrorCode::InputValidationFailed, format!("input_schema: {problem}"))
        }
        CheckError::Value(mismatch) => RunError::new(RunErrorCode::InputValidationFailed, mismatch.message)
            .with("path", mismatch.path)
            .with("schema_path", mismatch.schema_path),
    })
}

/// The due times after `through` that get a run at `at`. Those until `since` were missed, because nobody was there.
fn due_times(
    timetable: &Timetable,
    missed: Missed,
    through: Timestamp,
    since: Timestamp,
    at: Timestamp,
) -> Vec<Timestamp> {
    let newest_missed = match missed {
        Missed::Skip => None,
        Missed::Latest => timetable.last_until(since).filter(|due| *due > through),
    };
    let first = timetable.next_after(through.max(since));
    let on_time = std::iter::successors(first, |due| timetable.next_after(*due));
    newest_missed.into_iter().chain(on_time.take_while(|due| *due <= at)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-01-01T{text}Z").parse().unwrap()
    }

    fn due(missed: Missed, through: &str, since: &str, now: &str) -> Vec<String> {
        let schedule = json!({ "cron": "*/10 * * * *" });
        let timetable = Timetable::new(&serde_json::from_value(schedule).unwrap()).unwrap();
        let due = due_times(&timetable, missed, at(through), at(since), at(now));
        due.into_iter().map(|due| due.strftime("%H:%M").to_string()).collect()
    }

    #[test]
    fn each_due_time_is_dealt_with_once() {
        assert_eq!(due(Missed::Skip, "00:00:00", "00:05:00", "00:09:59"), Vec::<String>::new());
        assert_eq!(due(Missed::Skip, "00:00:00", "00:05:00", "00:10:00.001"), ["00:10"]);
        assert_eq!(due(Missed::Skip, "00:10:00", "00:05:00", "00:10:00.500"), Vec::<String>::new());
        assert_eq!(due(Missed::Latest, "00:10:00", "00:05:00", "00:30:00"), ["00:20", "00:30"]);
    }

    #[test]
    fn what_was_missed_is_skipped_or_made_up_for_once() {
        assert_eq!(due(Missed::Skip, "00:00:00", "05:05:00", "05:05:01"), Vec::<String>::new());
        assert_eq!(due(Missed::Latest, "00:00:00", "05:05:00", "05:05:01"), ["05:00"]);
        assert_eq!(due(Missed::Latest, "05:00:00", "05:05:00", "05:05:01"), Vec::<String>::new());
        assert_eq!(due(Missed::Latest, "00:00:00", "05:05:00", "05:10:00"), ["05:00", "05:10"]);
    }
}
