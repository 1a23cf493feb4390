//! Repeated measurements of one thing.

use std::time::Duration;

/// Measurements in any order.
#[derive(Default, Clone)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Adds a time, in milliseconds.
    pub(crate) fn time(&mut self, time: Duration) {
        self.add(time.as_secs_f64() * 1e3);
    }

    /// The value below which this part of the measurements lies.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        let index = (last as f64 * part).round() as usize;
        sorted.get(index).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn p50(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn p99(&self) -> f64 {
        self.quantile(0.99)
    }
}
