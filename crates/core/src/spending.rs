//! What agents used, and what it cost.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::model::Usage;

/// Billionths in one unit of the currency of the prices.
pub const NANOS: f64 = 1e9;

/// What an agent used on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DailyUsage {
    /// The day, in UTC.
    pub day: Date,
    /// Model calls that ended, those that failed included.
    pub model_calls: u64,
    /// Their tokens and cost.
    pub usage: Usage,
}

/// The day of a moment, in UTC.
pub fn day_of(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

/// An amount for people: with two digits after the point, or more if it is small.
pub fn amount(nanos: u64) -> String {
    let amount = nanos as f64 / NANOS;
    if nanos >= 10_000_000 || nanos == 0 { format!("{amount:.2}") } else { format!("{amount:.6}") }
}
