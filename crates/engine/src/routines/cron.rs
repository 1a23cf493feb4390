//! When a schedule is due.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use petasos_core::routine::Schedule;

/// The due times of one schedule.
pub(crate) struct Timetable {
    cron: Cron,
    zone: TimeZone,
}

impl Timetable {
    /// Reads a schedule, and says what is wrong with it.
    pub(crate) fn new(schedule: &Schedule) -> Result<Self, String> {
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let cron = parser.parse(&schedule.cron).map_err(|error| {
            format!(
                "cron {:?} cannot be read: {error}; write five fields, or six with seconds first",
                schedule.cron
            )
        })?;
        let zone = TimeZone::get(&schedule.timezone)
            .map_err(|_| format!("{:?} is not a time zone such as Europe/Berlin", schedule.timezone))?;
        Ok(Timetable { cron, zone })
    }

    /// The first due time after this one; none if there is none.
    pub(crate) fn next_after(&self, at: Timestamp) -> Option<Timestamp> {
        let next = self.cron.find_next_occurrence(&at.to_zoned(self.zone.clone()), false).ok()?;
        Some(whole_second(next.timestamp()))
    }

    /// The last due time that is not after this one; none if there is none.
    pub(crate) fn last_until(&self, at: Timestamp) -> Option<Timestamp> {
        let at = whole_second(at);
        let last = self.cron.find_previous_occurrence(&at.to_zoned(self.zone.clone()), true).ok()?;
        Some(whole_second(last.timestamp()))
    }
}

/// Due times are whole seconds.
fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_nanosecond().div_euclid(1_000_000_000).try_into().unwrap_or_default())
        .unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timetable(cron: &str, timezone: &str) -> Timetable {
        let schedule = serde_json::json!({ "cron": cron, "timezone": timezone });
        Timetable::new(&serde_json::from_value(schedule).unwrap()).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn due_times_follow_the_time_zone() {
        let weekdays = timetable("0 9 * * 1-5", "Europe/Berlin");
        // A Friday, and a Monday after the clocks went back.
        assert_eq!(weekdays.next_after(at("2026-10-23T06:59:59.5Z")), Some(at("2026-10-23T07:00:00Z")));
        assert_eq!(weekdays.next_after(at("2026-10-23T07:00:00Z")), Some(at("2026-10-26T08:00:00Z")));
        assert_eq!(weekdays.last_until(at("2026-10-26T08:00:00.9Z")), Some(at("2026-10-26T08:00:00Z")));
        assert_eq!(weekdays.last_until(at("2026-10-26T07:59:59Z")), Some(at("2026-10-23T07:00:00Z")));
    }

    #[test]
    fn a_time_that_the_clocks_skip_or_repeat_is_due_once_a_day() {
        let nightly = timetable("30 2 * * *", "Europe/Berlin");
        for (from, to, days) in [
            ("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z", 2),
            ("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z", 2),
        ] {
            let due = std::iter::successors(nightly.next_after(at(from)), |last| nightly.next_after(*last));
            assert_eq!(due.take_while(|due| *due < at(to)).count(), days, "{from}");
        }
    }

    #[test]
    fn six_fields_start_with_seconds() {
        let often = timetable("*/10 * * * * *", "UTC");
        assert_eq!(often.next_after(at("2026-01-01T00:00:05Z")), Some(at("2026-01-01T00:00:10Z")));
        let leap = timetable("0 0 29 2 *", "UTC");
        assert_eq!(leap.next_after(at("2026-01-01T00:00:00Z")), Some(at("2028-02-29T00:00:00Z")));
        let never = timetable("0 0 30 2 *", "UTC");
        assert_eq!(never.next_after(at("2026-01-01T00:00:00Z")), None);
    }
}
