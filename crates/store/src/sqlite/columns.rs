//! How values of ours are written in columns, and read back as exactly what they were.

use std::path::PathBuf;
use std::str::FromStr;

use jiff::Timestamp;
use petasos_core::session::Status;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, ToSql};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::full_disk::{WriteFailure, write_failure};
use crate::error::Error;

/// Turns what went wrong into an error that says what was being done.
pub(super) fn failed<E>(context: impl Into<String>) -> impl FnOnce(E) -> Error
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    move |error| {
        let (context, source) = (context.into(), error.into());
        match write_failure(&*source) {
            WriteFailure::Full => Error::Full { context, source },
            _ => Error::Failed { context, source },
        }
    }
}

/// Turns what went wrong with reading into an error that tells a damaged database from one that could not be read.
pub(super) fn unreadable(
    connection: &Connection,
    what: impl Into<String>,
) -> impl FnOnce(rusqlite::Error) -> Error {
    let path = connection.path().map(PathBuf::from).unwrap_or_default();
    move |error| {
        let what = what.into();
        let problem = match &error {
            rusqlite::Error::FromSqlConversionFailure(_, _, cause) => cause.to_string(),
            _ => error.to_string(),
        };
        let is_damage = match error.sqlite_error_code() {
            Some(code) => matches!(code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase),
            // Whatever SQLite could read, and we could not.
            None => true,
        };
        if is_damage { Error::Damaged { path, what, problem } } else { failed(format!("read {what}"))(error) }
    }
}

/// A part of the database that cannot be what was written.
pub(super) fn damaged(connection: &Connection, what: impl Into<String>, problem: impl Into<String>) -> Error {
    let path = connection.path().map(PathBuf::from).unwrap_or_default();
    Error::Damaged { path, what: what.into(), problem: problem.into() }
}

/// A time, as nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nanos(pub(super) Timestamp);

impl Nanos {
    /// The column's value. The years 1678 to 2261 fit.
    pub(super) fn value(self) -> Result<i64, std::num::TryFromIntError> {
        i64::try_from(self.0.as_nanosecond())
    }
}

impl ToSql for Nanos {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = self.value().map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        Ok(value.into())
    }
}

impl FromSql for Nanos {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Timestamp::from_nanosecond(i128::from(value.as_i64()?)).map(Nanos).map_err(FromSqlError::other)
    }
}

/// The column's value of a time that may be missing.
pub(super) fn nanos(time: Option<Timestamp>) -> Option<Nanos> {
    time.map(Nanos)
}

/// The time of a column that may be empty.
pub(super) fn time(nanos: Option<Nanos>) -> Option<Timestamp> {
    nanos.map(|nanos| nanos.0)
}

/// A count or sequence. SQLite has no unsigned integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unsigned(pub(super) u64);

impl ToSql for Unsigned {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = i64::try_from(self.0)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        Ok(value.into())
    }
}

impl FromSql for Unsigned {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let value = value.as_i64()?;
        u64::try_from(value).map(Unsigned).map_err(|_| FromSqlError::OutOfRange(value))
    }
}

/// The JSON text of a value.
pub(super) fn json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// A value as JSON text.
#[derive(Debug)]
pub(super) struct Json<T>(pub(super) T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        json(&self.0).map(Into::into)
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Json).map_err(FromSqlError::other)
    }
}

/// A value with a text form of its own, such as an id.
#[derive(Debug)]
pub(super) struct Parsed<T>(pub(super) T);

impl<T> FromSql for Parsed<T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Parsed).map_err(FromSqlError::other)
    }
}

/// A session's status, by name.
#[derive(Debug)]
pub(super) struct StatusName(pub(super) Status);

impl FromSql for StatusName {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        [Status::Idle, Status::Running]
            .into_iter()
            .find(|status| status.as_str() == text)
            .map(StatusName)
            .ok_or_else(|| FromSqlError::Other(format!("{text:?} is not a status").into()))
    }
}

/// The column's value of a limit; more than SQLite can count is no limit.
pub(super) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
