//! Query strings, with errors that name the parameter.

use std::str::FromStr;

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query as AxumQuery};
use axum::http::request::Parts;
use petasos_store::{Cursor, PageRequest};

use crate::problem::Problem;

/// The parameters of a query string, in order.
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let pairs: Result<AxumQuery<Vec<(String, String)>>, QueryRejection> =
            AxumQuery::from_request_parts(parts, state).await;
        pairs.map(|pairs| Query(pairs.0)).map_err(|_| Problem::validation("query", "is not a query string"))
    }
}

impl Query {
    /// A parameter as text; the last one if it is repeated.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter that may be repeated.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A parameter of some other type.
    pub(crate) fn parsed<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Problem::validation(name, format!("{text:?} is not {expected}")))
    }

    /// Parameters of the form `name[key]=value`.
    pub(crate) fn keyed<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |(key, value)| {
            let key = key.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
            Some((key, value.as_str()))
        })
    }

    /// `limit`, within bounds.
    pub(crate) fn limit(&self, most: usize, default: usize) -> Result<usize, Problem> {
        let expected = format!("a number from 1 to {most}");
        let limit = self.parsed("limit", &expected)?.unwrap_or(default);
        if (1..=most).contains(&limit) {
            Ok(limit)
        } else {
            Err(Problem::validation("limit", format!("{limit} is not {expected}")))
        }
    }

    /// `limit` (1 to 100, 20 unless given) and `cursor`.
    pub(crate) fn page(&self) -> Result<PageRequest, Problem> {
        let after = self.text("cursor").map(|cursor| Cursor(cursor.to_owned()));
        Ok(PageRequest { after, limit: self.limit(100, 20)? })
    }
}
