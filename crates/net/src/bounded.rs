//! Whole answers, within bounds: of time, of size, of redirects.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Url;

use crate::client::{Client, Method};
use crate::error::Error;
use crate::response::Response;

/// What an answer may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// From the first connection to the last byte.
    pub time: Duration,
    /// Bytes of the body, after decompression. What comes after them is not read.
    pub body_bytes: usize,
    /// Redirects that a `GET` follows. Each is checked like the first address.
    pub redirects: u8,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Where it came from, redirects followed.
    pub url: String,
    /// The type of the body, if it was named.
    pub content_type: Option<String>,
    /// `Retry-After`, as it was sent.
    pub retry_after: Option<String>,
    /// The body.
    pub body: Bytes,
    /// Whether the body went on after this.
    pub cut: bool,
}

impl Client {
    /// Sends a request and takes the answer in, within bounds.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<Bytes>,
        bounds: Bounds,
    ) -> Result<Answer, Error> {
        let mut host = String::new();
        let answer = async {
            let (mut url, first) = crate::web_url::parse_url(url)?;
            host = first;
            let mut headers = headers.to_vec();
            let mut redirects = 0;
            loop {
                let response = self.request(method, url.as_str(), &headers, body.clone()).await?;
                let Some(next) = location(method, &response, &url) else {
                    return take_in(response, url, bounds.body_bytes).await;
                };
                if redirects == bounds.redirects {
                    return take_in(response, url, bounds.body_bytes).await;
                }
                response.finish();
                redirects += 1;
                if next.origin() != url.origin() {
                    headers.retain(|(name, _)| !is_for_one_host(name));
                }
                host = next.host_str().unwrap_or_default().to_owned();
                url = next;
            }
        };
        match tokio::time::timeout(bounds.time, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Slow { host, time: bounds.time }),
        }
    }
}

/// Where a redirect leads, if it is one that is followed.
fn location(method: Method, response: &Response, url: &Url) -> Option<Url> {
    let is_redirect = matches!(response.status(), 301 | 302 | 303 | 307 | 308);
    if method != Method::Get || !is_redirect {
        return None;
    }
    url.join(response.header("location")?).ok()
}

/// What was meant for one host must not reach another.
fn is_for_one_host(header: &str) -> bool {
    ["authorization", "cookie", "proxy-authorization"].iter().any(|name| header.eq_ignore_ascii_case(name))
}

async fn take_in(response: Response, url: Url, max: usize) -> Result<Answer, Error> {
    let status = response.status();
    let content_type = response.header("content-type").map(str::to_owned);
    let retry_after = response.header("retry-after").map(str::to_owned);
    let (body, cut) = response.bytes_up_to(max).await?;
    Ok(Answer { status, url: url.into(), content_type, retry_after, body, cut })
}
