//! What is done about work that was under way when the last process ended. Pure: nothing here looks at a clock or a store.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use petasos_core::recovery::WorkKind;
use petasos_store::{LastEnd, LastStart, WorkFound, WorkRecord, WorkState};

/// How many processes in a row have to die soon after their start while work stands at the same place.
const STARTS: u32 = 3;

/// The records that this start keeps, given what the last one left and what is under way now.
pub(super) fn assess(last: LastStart, found: &[WorkFound], now: Timestamp) -> Vec<WorkRecord> {
    let LastStart { end, work } = last;
    let mut earlier: HashMap<_, _> =
        work.into_iter().map(|record| (record.found.key.clone(), record)).collect();
    let mut seen = HashSet::new();
    let mut records = Vec::new();
    for found in found {
        // A session may be removed for two reasons at once; they are one piece of work.
        if seen.insert(&found.key) {
            records.extend(judge(end, found, earlier.remove(&found.key), now));
        }
    }
    let over = earlier.into_values().filter(|record| {
        let given_up = matches!(record.state, WorkState::GivenUp | WorkState::Ending);
        given_up && (record.found.key.kind.is_turn() || record.found.key.kind == WorkKind::Delivery)
    });
    records.extend(over.map(|record| WorkRecord { state: WorkState::GivenUp, ..record }));
    records
}

/// The record of one piece of work; none if nothing is known against it.
fn judge(end: LastEnd, found: &WorkFound, earlier: Option<WorkRecord>, now: Timestamp) -> Option<WorkRecord> {
    let told_before =
        earlier.as_ref().is_some_and(|record| record.told_before || record.state == WorkState::Told);
    let new = |state, starts| WorkRecord { found: found.clone(), starts, state, told_before, since: now };
    let died = end != LastEnd::Clean;
    let Some(record) = earlier.filter(|record| record.found.position == found.position) else {
        return (end == LastEnd::DiedEarly).then(|| new(WorkState::Counted, 1));
    };
    let starts = record.starts;
    match record.state {
        WorkState::Counted if end != LastEnd::DiedEarly => None,
        WorkState::Counted if starts.saturating_add(1) < STARTS => {
            Some(WorkRecord { starts: starts.saturating_add(1), ..record })
        }
        WorkState::Counted if found.key.kind == WorkKind::ToolCall && !told_before => {
            Some(new(WorkState::Told, STARTS))
        }
        WorkState::Counted => Some(new(WorkState::Waiting, STARTS)),
        // Not even telling the model went well.
        WorkState::Told => (end == LastEnd::DiedEarly).then(|| new(WorkState::Waiting, starts)),
        WorkState::Waiting | WorkState::GivenUp => Some(record),
        WorkState::Trying if died && found.key.kind.is_turn() => Some(new(WorkState::Ending, starts)),
        WorkState::Trying if died => Some(new(WorkState::GivenUp, starts)),
        WorkState::Trying => Some(WorkRecord { state: WorkState::Waiting, ..record }),
        // Not even ending the turn in good order went well.
        WorkState::Ending if died => Some(new(WorkState::GivenUp, starts)),
        WorkState::Ending => Some(record),
    }
}

#[cfg(test)]
mod tests {
    use petasos_store::WorkKey;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn work(kind: WorkKind, id: &str, position: &str) -> WorkFound {
        let key = WorkKey { kind, tenant: "default".parse().unwrap(), id: id.to_owned() };
        WorkFound { key, session_id: None, position: position.to_owned() }
    }

    /// The states of all work after each of these ends, with the same work under way each time.
    fn states(kind: WorkKind, ends: &[LastEnd]) -> Vec<Option<WorkState>> {
        let mut left = Vec::new();
        let found = [work(kind, "a", "1")];
        let after = |end: &LastEnd| {
            let last = LastStart { end: *end, work: std::mem::take(&mut left) };
            left = assess(last, &found, at(0));
            left.first().map(|record| record.state)
        };
        ends.iter().map(after).collect()
    }

    use LastEnd::{Clean, DiedEarly as Early, DiedLate as Late};
    use WorkState::{Counted, Ending, GivenUp, Told, Trying, Waiting};

    #[test]
    fn work_is_set_aside_after_three_early_deaths() {
        let three = [Early, Early, Early, Early];
        let [one, two] = [Some(Counted); 2];
        assert_eq!(states(WorkKind::Delivery, &three), [one, two, Some(Waiting), Some(Waiting)]);
        assert_eq!(states(WorkKind::ModelCall, &three), [one, two, Some(Waiting), Some(Waiting)]);
        // If telling the model kills too, the turn waits like everything else.
        assert_eq!(states(WorkKind::ToolCall, &three), [one, two, Some(Told), Some(Waiting)]);
    }

    #[test]
    fn a_clean_stop_and_a_long_life_count_from_the_beginning() {
        for reset in [Clean, Late] {
            let states = states(WorkKind::Wake, &[Early, Early, reset, Early, Early, Early]);
            assert_eq!(
                states,
                [Some(Counted), Some(Counted), None, Some(Counted), Some(Counted), Some(Waiting)]
            );
        }
    }

    #[test]
    fn progress_counts_from_the_beginning() {
        let mut left = Vec::new();
        for (position, starts) in [("1", 1), ("1", 2), ("2", 1), ("2", 2)] {
            let last = LastStart { end: Early, work: left };
            left = assess(last, &[work(WorkKind::Removal, "a", position)], at(0));
            assert_eq!(left[0].starts, starts);
        }
        assert_eq!(assess(LastStart { end: Early, work: left }, &[], at(0)), []);
    }

    /// The state of work that was in this state when the last process ended.
    fn next(kind: WorkKind, state: WorkState, end: LastEnd) -> Option<WorkState> {
        let found = work(kind, "a", "1");
        let record = WorkRecord { found: found.clone(), starts: 3, state, told_before: false, since: at(0) };
        assess(LastStart { end, work: vec![record] }, &[found], at(1)).first().map(|record| record.state)
    }

    #[test]
    fn dying_while_it_is_tried_gives_it_up() {
        for (kind, given_up) in [
            (WorkKind::Delivery, GivenUp),
            (WorkKind::Removal, GivenUp),
            (WorkKind::Schedule, GivenUp),
            (WorkKind::ModelCall, Ending),
            (WorkKind::Wake, Ending),
        ] {
            assert_eq!(next(kind, Trying, Early), Some(given_up));
            assert_eq!(next(kind, Trying, Late), Some(given_up));
            assert_eq!(next(kind, Trying, Clean), Some(Waiting));
            for end in [Clean, Early, Late] {
                assert_eq!(next(kind, Waiting, end), Some(Waiting));
                assert_eq!(next(kind, GivenUp, end), Some(GivenUp));
            }
        }
        assert_eq!(next(WorkKind::Wake, Ending, Early), Some(GivenUp));
        assert_eq!(next(WorkKind::Wake, Ending, Clean), Some(Ending));
    }

    #[test]
    fn a_second_call_of_the_same_turn_waits_instead_of_being_told() {
        let mut left = Vec::new();
        let mut states = Vec::new();
        for position in ["1", "1", "1", "5", "5", "5"] {
            let last = LastStart { end: Early, work: left };
            left = assess(last, &[work(WorkKind::ToolCall, "a", position)], at(0));
            states.push(left[0].state);
        }
        assert_eq!(states, [Counted, Counted, Told, Counted, Counted, Waiting]);
    }

    #[test]
    fn what_was_given_up_is_remembered_after_it_ended() {
        for (kind, kept) in [(WorkKind::Delivery, 1), (WorkKind::ModelCall, 1), (WorkKind::Removal, 0)] {
            let found = work(kind, "a", "1");
            let record = WorkRecord { found, starts: 3, state: GivenUp, told_before: false, since: at(0) };
            assert_eq!(assess(LastStart { end: Clean, work: vec![record] }, &[], at(1)).len(), kept);
        }
    }
}
