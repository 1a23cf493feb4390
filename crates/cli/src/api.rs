//! The server's HTTP API, as commands use it.

use std::fmt::{self, Write};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use petasos_net::{Client, Method, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use crate::connect::is_local;
use crate::home::Home;
use crate::server_file::ServerFile;
use crate::successor::Successor;

/// The most bytes that an answer may have.
const MAX_ANSWER: usize = 256 * 1024 * 1024;
/// The most time that an answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// The most time that the server may take to copy or take in what may be large.
const LONG_TIME: Duration = Duration::from_secs(6 * 3600);
/// The most entries that the server puts on one page.
const PAGE: usize = 100;

/// A server and the right to use it.
pub(crate) struct Api {
    client: Client,
    url: RwLock<String>,
    key: SecretString,
    tenant: Option<String>,
    /// Where the server tells its address, if it was found that way.
    home: Option<Home>,
    /// Who takes its place when it has ended, if anybody does.
    successor: Option<Arc<Successor>>,
}

/// A request that the server refused, in its own words.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The server's code for it, such as `action_required`.
    pub(crate) code: String,
    message: String,
    /// The fields that help.
    fields: Map<String, Value>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)?;
        for (name, value) in &self.fields {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            write!(f, "\n  {name}: {value}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

/// Some entries of a list.
pub(crate) struct Listing {
    /// The entries.
    pub(crate) data: Vec<Value>,
    /// Where the next ones are; null if there are none.
    pub(crate) next_cursor: Value,
    /// How the server writes it.
    pub(crate) names: ListNames,
}

/// What the parts of a listing are called: one surface says `data` and `nextCursor`, another `items` and `next_cursor`.
pub(crate) type ListNames = (&'static str, &'static str);

/// The names of listings below `/v1`.
pub(crate) const DATA: ListNames = ("data", "nextCursor");
/// The names of listings of deliveries.
pub(crate) const ITEMS: ListNames = ("items", "next_cursor");

impl Listing {
    /// The listing as the server would send it.
    pub(crate) fn to_json(&self) -> Value {
        let (data, next_cursor) = self.names;
        json!({ data: self.data, next_cursor: self.next_cursor })
    }

    /// Whether there are more entries.
    pub(crate) fn has_more(&self) -> bool {
        !self.next_cursor.is_null()
    }
}

impl Api {
    /// Names a server. Nothing is sent yet.
    pub(crate) fn new(url: &str, key: SecretString, tenant: Option<String>) -> Api {
        let client = Client::new(&petasos_net::Options::default());
        let url = RwLock::new(url.trim_end_matches('/').to_owned());
        Api { client, url, key, tenant, home: None, successor: None }
    }

    /// The same, reached through the proxies of these options.
    pub(crate) fn reached_by(self, net: &petasos_net::Options) -> Api {
        Api { client: Client::new(net), ..self }
    }

    /// The same, for a server that tells in this home where it is.
    pub(crate) fn found_in(self, home: Home, successor: Option<Arc<Successor>>) -> Api {
        Api { home: Some(home), successor, ..self }
    }

    /// Where the server is.
    pub(crate) fn url(&self) -> String {
        self.url.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks up again where the server is, since one that was started anew may be elsewhere. Returns whether it is.
    pub(crate) async fn find_again(&self) -> bool {
        let before = self.url();
        if let Some(successor) = &self.successor {
            successor.take_over().await;
        }
        if let Some(Ok(Some(server))) = self.home.as_ref().map(ServerFile::read) {
            *self.url.write().unwrap_or_else(PoisonError::into_inner) = server.url;
        }
        self.url() != before
    }

    /// Opens the stream of a session's events, from after the sequence `after` on.
    pub(crate) async fn follow(&self, session_id: &str, after: u64) -> Result<Response> {
        let after = after.to_string();
        let headers = [("last-event-id", after.as_str()), ("accept", "text/event-stream")];
        let path = path(&["sessions", session_id, "events", "stream"]);
        let response = self.request(Method::Get, &path, &headers, None).await?;
        if response.status() == 200 {
            return Ok(response);
        }
        read(response).await?;
        bail!("the server's answer is no stream of events; is it a petasos server?")
    }

    /// Begins to read the export of a session.
    pub(crate) async fn export(&self, session_id: &str) -> Result<Response> {
        let response =
            self.request(Method::Get, &path(&["sessions", session_id, "export"]), &[], None).await?;
        if response.status() == 200 {
            return Ok(response);
        }
        read(response).await?;
        bail!("the server's answer is no export; is it a petasos server?")
    }

    /// Sends an export, as it is, to be taken in.
    pub(crate) async fn import(&self, lines: String, query: &[(&str, &str)]) -> Result<Value> {
        let path = with_query(&path(&["sessions", "import"]), query);
        self.send_within(LONG_TIME, Method::Post, &path, Some(lines)).await
    }

    /// `GET`
    pub(crate) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        self.send(Method::Get, &with_query(path, query), None).await
    }

    /// `POST`
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(Method::Post, path, Some(body)).await
    }

    /// `POST` of something that takes as long as there is data.
    pub(crate) async fn post_long(&self, path: &str) -> Result<Value> {
        self.send_within(LONG_TIME, Method::Post, path, None).await
    }

    /// Whether the server is on this machine, as far as its address tells.
    pub(crate) fn is_local(&self) -> bool {
        is_local(&self.url())
    }

    /// `PATCH`
    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(Method::Patch, path, Some(body)).await
    }

    /// `DELETE`
    pub(crate) async fn delete(&self, path: &str) -> Result<Value> {
        self.send(Method::Delete, path, None).await
    }

    /// `DELETE` with a query.
    pub(crate) async fn delete_with(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        self.send(Method::Delete, &with_query(path, query), None).await
    }

    /// Reads a list page by page, until it ends or `limit` entries are there.
    pub(crate) async fn list(&self, path: &str, query: &[(&str, &str)], limit: usize) -> Result<Listing> {
        self.list_named(path, query, limit, DATA).await
    }

    /// The same for a listing with other names.
    pub(crate) async fn list_named(
        &self,
        path: &str,
        query: &[(&str, &str)],
        limit: usize,
        names: ListNames,
    ) -> Result<Listing> {
        let mut listing = Listing { data: Vec::new(), next_cursor: Value::Null, names };
        loop {
            let count = (limit - listing.data.len()).min(PAGE).to_string();
            let mut query = query.to_vec();
            query.push(("limit", &count));
            if let Some(cursor) = listing.next_cursor.as_str() {
                query.push(("cursor", cursor));
            }
            let mut page = self.get(path, &query).await?;
            let Value::Array(data) = page[names.0].take() else {
                bail!("the server's answer to {path} has no data; is it a petasos server?");
            };
            let ended = data.is_empty();
            listing.data.extend(data);
            listing.next_cursor = page[names.1].take();
            if ended || !listing.has_more() || listing.data.len() >= limit {
                return Ok(listing);
            }
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        self.send_within(ANSWER_TIME, method, path, body.map(Value::to_string)).await
    }

    async fn send_within(
        &self,
        time: Duration,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<Value> {
        let answer = async { read(self.request(method, path, &[], body).await?).await };
        match tokio::time::timeout(time, answer).await {
            Ok(answer) => answer,
            Err(_) => bail!("{} did not answer within {} seconds", self.url(), time.as_secs()),
        }
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Result<Response> {
        let url = format!("{}{path}", self.url());
        let authorization = format!("Bearer {}", self.key.expose_secret());
        let mut all = vec![("authorization", authorization.as_str()), ("x-petasos-platform", "cli")];
        all.extend_from_slice(headers);
        if body.is_some() {
            all.push(("content-type", "application/json"));
        }
        if let Some(tenant) = &self.tenant {
            all.push(("x-petasos-tenant", tenant));
        }
        Ok(self.client.request(method, &url, &all, body.map(Into::into)).await?)
    }
}

/// Reads an answer. One that is no success becomes an error with the server's own words.
async fn read(response: Response) -> Result<Value> {
    let status = response.status();
    let text = response.text_bounded(MAX_ANSWER).await?;
    let body: Option<Value> =
        if text.is_empty() { Some(Value::Null) } else { serde_json::from_str(&text).ok() };
    if (200..300).contains(&status) {
        return body.context("the server's answer is not JSON; is it a petasos server?");
    }
    match body {
        Some(Value::Object(body)) => Err(refusal(status, body).into()),
        _ => bail!("the server answered with status {status}"),
    }
}

/// The server's error: its message, its code, and the fields that help.
fn refusal(status: u16, mut fields: Map<String, Value>) -> Refusal {
    let text = |value: Option<Value>| value.and_then(|value| value.as_str().map(str::to_owned));
    let code = text(fields.shift_remove("error").or_else(|| fields.shift_remove("code")));
    let code = code.unwrap_or_else(|| format!("status {status}"));
    let message = text(fields.shift_remove("message"));
    let message = message.unwrap_or_else(|| "the server refused the request".to_owned());
    if let Some(Value::Object(details)) = fields.shift_remove("details") {
        fields.extend(details);
    }
    Refusal { status, code, message, fields }
}

/// Makes a path from its parts; what came from the command line cannot lead elsewhere.
pub(crate) fn path(parts: &[&str]) -> String {
    path_below("/v1", parts)
}

/// The same below another path.
pub(crate) fn path_below(start: &str, parts: &[&str]) -> String {
    parts.iter().fold(start.to_owned(), |path, part| format!("{path}/{}", escape(part)))
}

fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    let mut url = path.to_owned();
    for (index, (name, value)) in query.iter().enumerate() {
        url.push(if index == 0 { '?' } else { '&' });
        url.push_str(&format!("{}={}", escape(name), escape(value)));
    }
    url
}

/// Percent-encodes everything but the characters that mean nothing special in a URL.
fn escape(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut escaped, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_cannot_leave_its_place() {
        assert_eq!(path(&["sessions", "a/../b?c#d"]), "/v1/sessions/a%2F%2E%2E%2Fb%3Fc%23d");
        assert_eq!(with_query("/v1/x", &[("a", "1&2"), ("b", "é")]), "/v1/x?a=1%262&b=%C3%A9");
    }

    #[test]
    fn an_error_has_the_words_and_the_hints_of_the_server() {
        let body = json!({ "error": "action_required", "message": "It waits.", "pending": ["toolu_1"], "turn_id": "evt_1" });
        let Value::Object(body) = body else { panic!("an object") };
        assert_eq!(
            refusal(409, body).to_string(),
            "It waits. (action_required)\n  pending: [\"toolu_1\"]\n  turn_id: evt_1"
        );
    }
}
