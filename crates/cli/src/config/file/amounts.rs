//! Numbers that mean something, and refuse what they cannot mean.

use std::time::Duration;

use serde::Deserialize;
use serde::de::Error as _;

/// An amount of money that is not negative.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(with = "f64"))]
pub(crate) struct Price(pub(crate) f64);

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let price = f64::deserialize(deserializer)?;
        match price.is_finite() && price >= 0.0 {
            true => Ok(Price(price)),
            false => Err(D::Error::custom(format!("{price} must be an amount of 0 or more"))),
        }
    }
}

/// A part of a whole, between 0.1 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(with = "f64"))]
pub(crate) struct Share(pub(crate) f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(deserializer)?;
        match (0.1..=1.0).contains(&share) {
            true => Ok(Share(share)),
            false => Err(D::Error::custom(format!("{share} must be between 0.1 and 1"))),
        }
    }
}

/// A length of time, written as seconds; fractions are allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(with = "f64"))]
pub(crate) struct Seconds(pub(crate) Duration);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        match Duration::try_from_secs_f64(seconds) {
            Ok(time) if !time.is_zero() => Ok(Seconds(time)),
            _ => Err(D::Error::custom(format!("{seconds} must be a number of seconds greater than 0"))),
        }
    }
}
