//! The HTTP client.
//!
//! It connects, sends and hands back the answer as it arrives. How long an answer may take is the caller's
//! business: dropping a future or a stream of this module closes its request at once.

mod by_proxy;
mod pool;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::Position;

use self::by_proxy::Outgoing;
use self::pool::Pool;
use crate::dial::{Dial, Way};
use crate::error::Error;
use crate::guard::{Guard, GuardedResolver, Lookup};
use crate::plain::Repeat;
use crate::proxy::{Proxies, Proxy};
use crate::response::{Inner, Response};
use crate::tls::Certificates;
use crate::web_url::parse_url;

/// How a [`Client`] behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long making a connection may take, TLS included.
    pub connect_timeout: Duration,
    /// What we call ourselves.
    pub user_agent: String,
    /// Which requests go through a proxy.
    pub proxies: Proxies,
    /// Certificates that are trusted besides those of the system.
    pub certificates: Certificates,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            connect_timeout: Duration::from_secs(10),
            user_agent: concat!("petasos/", env!("CARGO_PKG_VERSION")).to_owned(),
            proxies: Proxies::default(),
            certificates: Certificates::default(),
        }
    }
}

/// The methods that we use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
}

impl From<Method> for reqwest::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
        }
    }
}

/// A pool of connections. Cheap to clone; clones share the pool.
#[derive(Debug, Clone)]
pub struct Client {
    pool: Arc<Pool>,
    guard: Option<Guard>,
    /// The host and port that the operator has named, of a client with a guard.
    trusted: Option<(Option<String>, Option<u16>)>,
}

impl Client {
    /// Sets up a client for addresses that the operator has named. Redirects are not followed. Proxies are used as the
    /// options say.
    pub fn new(options: &Options) -> Self {
        Client { pool: Pool::new(options, None), guard: None, trusted: None }
    }

    /// Sets up a client for addresses that callers and models name: it reaches only what the guard allows, and uses
    /// proxies only if they are for callers too.
    pub fn guarded(options: &Options, guard: Guard) -> Self {
        Client::guarded_with(options, guard, crate::guard::system())
    }

    /// The same, for an address that the operator has named. Its host is let through and reached by a proxy like any
    /// other that the operator names; where it redirects to is up to the guard.
    pub fn trusting(options: &Options, guard: &Guard, url: &str) -> Self {
        let trusted = parse_url(url).ok().map(|(url, _)| place(&url));
        Client { trusted, ..Client::guarded(options, guard.trusting(url)) }
    }

    pub(crate) fn guarded_with(options: &Options, guard: Guard, lookup: Lookup) -> Self {
        let resolver = GuardedResolver { guard: guard.clone(), lookup };
        Client { pool: Pool::new(options, Some(Arc::new(resolver))), guard: Some(guard), trusted: None }
    }

    /// Sends a request and returns as soon as status and headers of the answer are here. Of headers with the same
    /// name the last one counts.
    pub async fn request(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<Bytes>,
    ) -> Result<Response, Error> {
        if let Some(guard) = &self.guard {
            guard.check(url)?;
        }
        let (url, host) = parse_url(url)?;
        let mut all = vec![("accept", "*/*"), ("accept-encoding", "gzip")];
        all.extend_from_slice(headers);
        if let Some(proxy) = self.proxy_of(&url) {
            let body = body.unwrap_or_default();
            let outgoing = Outgoing { method, url: &url, headers: &all, body };
            return Box::pin(self.request_by_proxy(proxy, outgoing)).await;
        }
        let headers = header_map(&all, &host)?;
        let mut request = self.pool.get().await?.request(method.into(), url).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        match request.send().await {
            Ok(inner) => Ok(Response::new(Inner::Pooled(inner), host, None)),
            Err(error) => Err(Error::from_reqwest(error, &host)),
        }
    }

    /// Posts a JSON text. Compression is declined, since a compressed event stream arrives in lumps. A header that is
    /// given takes the place of ours.
    pub async fn post_json(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        json: impl Into<Bytes>,
    ) -> Result<Response, Error> {
        let mut all = vec![("content-type", "application/json"), ("accept-encoding", "identity")];
        all.extend_from_slice(headers);
        if self.guard.is_none() {
            let (url, host) = parse_url(url)?;
            if let Some(proxy) = self.proxy_of(&url) {
                let outgoing = Outgoing { method: Method::Post, url: &url, headers: &all, body: json.into() };
                return Box::pin(self.request_by_proxy(proxy, outgoing)).await;
            }
            let has_user = !url.username().is_empty() || url.password().is_some();
            if url.scheme() == "http" && !has_user {
                return self.post_plainly(&url, host, &all, json.into()).await;
            }
        }
        self.request(Method::Post, url, &all, Some(json.into())).await
    }

    /// The proxy that requests to a URL go through, without its user and password; none if they are sent directly.
    pub fn proxy_for(&self, url: &str) -> Option<String> {
        let (url, _) = parse_url(url).ok()?;
        self.proxy_of(&url).map(ToString::to_string)
    }

    fn proxy_of(&self, url: &Url) -> Option<&Proxy> {
        let proxies = &self.pool.options.proxies;
        let is_used = self.is_of_operator(url) || proxies.callers;
        if is_used { proxies.of(url) } else { None }
    }

    /// Whether a URL leads where the operator wants it to. All others are judged.
    fn is_of_operator(&self, url: &Url) -> bool {
        self.guard.is_none() || self.trusted.as_ref().is_some_and(|trusted| *trusted == place(url))
    }

    async fn post_plainly(
        &self,
        url: &Url,
        host: String,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Response, Error> {
        let invalid = |error: http::Error| Error::Invalid { host: host.clone(), problem: error.to_string() };
        let options = &self.pool.options;
        let target = &url[Position::BeforePath..Position::AfterQuery];
        let mut all = vec![("host", host.as_str()), ("user-agent", &options.user_agent)];
        all.extend_from_slice(headers);
        let mut request = http::Request::post(target).body(Full::new(body)).map_err(invalid)?;
        *request.headers_mut() = header_map(&all, &host)?;
        let origin = &url[..Position::BeforePath];
        let origin = http::Uri::try_from(origin).map_err(|error| invalid(error.into()))?;
        let dial = Dial { host: &host, patience: options.connect_timeout, way: Way::Direct(origin) };
        let inner = self.pool.links.send(&host, &dial, request, Repeat::Unheard).await?;
        Ok(Response::new(Inner::Plain(Box::new(inner)), host, None))
    }
}

/// Host and port of a URL.
fn place(url: &Url) -> (Option<String>, Option<u16>) {
    (url.host_str().map(str::to_owned), url.port_or_known_default())
}

fn header_map(headers: &[(&str, &str)], host: &str) -> Result<HeaderMap, Error> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let (name, value) = header(name, value, host)?;
        map.insert(name, value);
    }
    Ok(map)
}

/// Checks a header. The value may be a key, so that it is neither repeated in errors nor shown by `Debug`.
fn header(name: &str, value: &str, host: &str) -> Result<(HeaderName, HeaderValue), Error> {
    let invalid = |problem: String| Error::Invalid { host: host.to_owned(), problem };
    let header_name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| invalid(format!("{name:?} is not the name of a header")))?;
    let mut header_value = HeaderValue::from_str(value)
        .map_err(|_| invalid(format!("the value of the header {name} has characters that cannot be sent")))?;
    header_value.set_sensitive(true);
    Ok((header_name, header_value))
}
