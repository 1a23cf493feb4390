//! Numbers of JSON compared by value: 1 and 1.0 are the same.

use std::cmp::Ordering;

use serde_json::Number;

/// The larger of two numbers, if they can be compared.
pub(super) fn compare(left: &Number, right: &Number) -> Option<Ordering> {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// A number without a fraction, whichever way it is written.
pub(super) fn integer(number: &Number) -> Option<i128> {
    if let Some(integer) = number.as_i128() {
        return Some(integer);
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e30)?;
    Some(float as i128)
}

/// Whether a number is a multiple of another, as they are written in decimal: 0.3 is one of 0.1.
pub(super) fn is_multiple(number: &Number, of: &Number) -> bool {
    match (decimal(number), decimal(of)) {
        (Some((_, _)), Some((0, _))) => false,
        (Some(number), Some(of)) => match aligned(number, of) {
            Some((number, of)) => number % of == 0,
            None => is_multiple_float(number, of),
        },
        _ => false,
    }
}

/// For numbers so far apart in size that no common unit fits.
fn is_multiple_float((number, number_exponent): (i128, i32), (of, of_exponent): (i128, i32)) -> bool {
    let value = |digits: i128, exponent: i32| digits as f64 * 10f64.powi(exponent);
    value(number, number_exponent) % value(of, of_exponent) == 0.0
}

/// Digits and the power of ten that they are multiplied with.
fn decimal(number: &Number) -> Option<(i128, i32)> {
    let text = number.to_string();
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let exponent: i32 = exponent.parse().ok()?;
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    Some((digits, exponent - i32::try_from(fraction.len()).ok()?))
}

/// Both numbers in the unit of the smaller exponent.
fn aligned(left: (i128, i32), right: (i128, i32)) -> Option<(i128, i128)> {
    let unit = left.1.min(right.1);
    let scale = |(digits, exponent): (i128, i32)| {
        let power = u32::try_from(exponent - unit).ok()?;
        digits.checked_mul(10i128.checked_pow(power)?)
    };
    Some((scale(left)?, scale(right)?))
}
