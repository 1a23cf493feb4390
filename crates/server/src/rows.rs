//! Lists that are written row by row.
//!
//! An answer that holds many events is not put together in memory: its rows are read when the connection takes them, so
//! that a client costs a few of them however many there are, and however slowly it reads. A short answer is written whole
//! and has a length. A longer one that cannot be read to its end is cut, which the client notices.

use std::future::Future;
use std::io;
use std::vec;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use petasos_store::{Cursor, Page, PageRequest};
use serde::Serialize;

use crate::problem::Problem;
use crate::valid_keys::Until;

/// About how many bytes are handed to the connection at once.
const PIECE: usize = 64 * 1024;
/// How many entries of a listing are read at once.
const PAGE: usize = 100;

/// The rows of a list.
pub(crate) trait Rows: Send + 'static {
    /// The next row, as JSON; none at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, Problem>> + Send;

    /// What follows the last row: the end of the list and of whatever it is in.
    fn tail(&mut self) -> Result<Vec<u8>, Problem>;
}

/// A row, or anything else, as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(value).map_err(|_| Problem::internal("an answer cannot be written"))
}

/// What comes before the first row: a value whose list is empty, without what follows the list.
pub(crate) fn head(value: &impl Serialize, tail: &str) -> Result<Vec<u8>, Problem> {
    let mut head = json(value)?;
    if !head.ends_with(tail.as_bytes()) {
        return Err(Problem::internal("an answer does not end with its list"));
    }
    head.truncate(head.len() - tail.len());
    Ok(head)
}

/// Answers with a list, for as long as the key is valid.
pub(crate) async fn respond(head: Vec<u8>, rows: impl Rows, until: Until) -> Result<Response, Problem> {
    let mut list = List { rows, piece: head, is_first: true, is_written: false };
    let first = list.next_piece().await?.unwrap_or_default();
    let body = if list.is_written {
        Body::from(first)
    } else {
        let rest = stream::try_unfold((list, until), |(mut list, until)| async move {
            let piece = tokio::select! {
                piece = list.next_piece() => piece,
                problem = until.revoked() => Err(problem),
            };
            let piece = piece.map_err(|problem| {
                tracing::warn!(error = problem.message(), "a list was cut");
                io::Error::other("the list cannot be read to its end")
            })?;
            Ok::<_, io::Error>(piece.map(|piece| (piece, (list, until))))
        });
        Body::from_stream(stream::iter([Ok(first)]).chain(rest))
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// A list on its way out.
struct List<R> {
    rows: R,
    /// What is written and not handed out.
    piece: Vec<u8>,
    is_first: bool,
    is_written: bool,
}

impl<R: Rows> List<R> {
    async fn next_piece(&mut self) -> Result<Option<Bytes>, Problem> {
        if self.is_written {
            return Ok(None);
        }
        while self.piece.len() < PIECE {
            let Some(row) = self.rows.next().await? else {
                self.piece.extend(self.rows.tail()?);
                self.is_written = true;
                break;
            };
            if !std::mem::take(&mut self.is_first) {
                self.piece.push(b',');
            }
            self.piece.extend(row);
        }
        Ok(Some(std::mem::take(&mut self.piece).into()))
    }
}

/// Everything of a listing, read a page at a time.
pub(crate) struct Pages<R> {
    read: R,
    /// The page to read next; none after the last.
    next: Option<PageRequest>,
    waiting: vec::IntoIter<Vec<u8>>,
    tail: &'static str,
}

impl<R, F> Pages<R>
where
    R: FnMut(PageRequest) -> F + Send + 'static,
    F: Future<Output = Result<Page<Vec<u8>>, Problem>> + Send,
{
    /// The rows of all pages, which `read` returns as JSON.
    pub(crate) fn new(read: R, tail: &'static str) -> Self {
        Pages { read, next: Some(page_after(None)), waiting: Vec::new().into_iter(), tail }
    }
}

impl<R, F> Rows for Pages<R>
where
    R: FnMut(PageRequest) -> F + Send + 'static,
    F: Future<Output = Result<Page<Vec<u8>>, Problem>> + Send,
{
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        loop {
            if let Some(row) = self.waiting.next() {
                return Ok(Some(row));
            }
            let Some(page) = self.next.take() else { return Ok(None) };
            let Page { items, next } = (self.read)(page).await?;
            self.next = next.map(|cursor| page_after(Some(cursor)));
            self.waiting = items.into_iter();
        }
    }

    fn tail(&mut self) -> Result<Vec<u8>, Problem> {
        Ok(self.tail.into())
    }
}

fn page_after(after: Option<Cursor>) -> PageRequest {
    PageRequest { after, limit: PAGE }
}
