//! The HTTP client.
//!
//! It connects, sends and hands back the answer as it arrives. How long an answer may take is the caller's
//! business: dropping a future or a stream of this module closes its request at once.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use http_body_util::Full;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::OnceCell;

use crate::error::{Error, innermost};
use crate::guard::{Guard, GuardedResolver, Lookup};
use crate::plain::{self, Links};
use crate::tls::install_tls;

/// What may be left of an unwanted body for its connection to be worth keeping.
const MAX_UNREAD: usize = 64 * 1024;
const UNREAD_TIME: Duration = Duration::from_secs(1);

/// How a [`Client`] behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long making a connection may take, TLS included.
    pub connect_timeout: Duration,
    /// What we call ourselves.
    pub user_agent: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            connect_timeout: Duration::from_secs(10),
            user_agent: concat!("petasos/", env!("CARGO_PKG_VERSION")).to_owned(),
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
}

/// Made by the first request: reading the certificates of a system takes longer than the rest of a start.
#[derive(Debug)]
struct Pool {
    options: Options,
    resolver: Option<Arc<GuardedResolver>>,
    made: OnceCell<reqwest::Client>,
    links: Arc<Links>,
}

impl Client {
    /// Sets up a client for addresses that the operator has named. Redirects are not followed and proxies are not
    /// used.
    pub fn new(options: &Options) -> Self {
        Client { pool: Pool::new(options, None), guard: None }
    }

    /// Sets up a client for addresses that callers and models name: it reaches only what the guard allows.
    pub fn guarded(options: &Options, guard: Guard) -> Self {
        Client::guarded_with(options, guard, crate::guard::system())
    }

    pub(crate) fn guarded_with(options: &Options, guard: Guard, lookup: Lookup) -> Self {
        let resolver = GuardedResolver { guard: guard.clone(), lookup };
        Client { pool: Pool::new(options, Some(Arc::new(resolver))), guard: Some(guard) }
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
        let headers = header_map(headers, &host)?;
        let mut request = self.pool.get().await?.request(method.into(), url).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        match request.send().await {
            Ok(inner) => Ok(Response { inner: Inner::Pooled(inner), host }),
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
            let has_user = !url.username().is_empty() || url.password().is_some();
            if url.scheme() == "http" && !has_user {
                return self.post_plainly(&url, host, &all, json.into()).await;
            }
        }
        self.request(Method::Post, url, &all, Some(json.into())).await
    }

    async fn post_plainly(
        &self,
        url: &reqwest::Url,
        host: String,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Response, Error> {
        let invalid = |error: http::Error| Error::Invalid { host: host.clone(), problem: error.to_string() };
        let options = &self.pool.options;
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let mut all = vec![("host", host.as_str()), ("user-agent", &options.user_agent)];
        all.extend_from_slice(headers);
        let mut request = http::Request::post(target).body(Full::new(body)).map_err(invalid)?;
        *request.headers_mut() = header_map(&all, &host)?;
        let origin = &url[..url::Position::BeforePath];
        let origin = http::Uri::try_from(origin).map_err(|error| invalid(error.into()))?;
        let inner = self.pool.links.send(&origin, &host, request, options.connect_timeout).await?;
        Ok(Response { inner: Inner::Plain(Box::new(inner)), host })
    }
}

impl Pool {
    fn new(options: &Options, resolver: Option<Arc<GuardedResolver>>) -> Arc<Self> {
        Arc::new(Pool { options: options.clone(), resolver, made: OnceCell::new(), links: Arc::default() })
    }

    async fn get(self: &Arc<Self>) -> Result<&reqwest::Client, Error> {
        let make = || async {
            let pool = Arc::clone(self);
            let made = tokio::task::spawn_blocking(move || pool.make()).await;
            made.map_err(|error| Error::Setup { problem: error.to_string() })?
        };
        self.made.get_or_try_init(make).await
    }

    fn make(&self) -> Result<reqwest::Client, Error> {
        install_tls();
        self.builder().build().or_else(|error| {
            // Bare containers have no certificates. Plain HTTP to a local model must work there all the same, and an
            // https request will say that the certificate's issuer is unknown.
            tracing::warn!(problem = innermost(&error), "no system certificates: https requests will fail");
            let built = self.builder().tls_certs_only([]).build();
            built.map_err(|error| Error::Setup { problem: innermost(&error) })
        })
    }

    fn builder(&self) -> reqwest::ClientBuilder {
        #[expect(clippy::disallowed_methods, reason = "this is the crate that dials")]
        let builder = reqwest::Client::builder();
        let builder = builder
            .user_agent(&self.options.user_agent)
            .connect_timeout(self.options.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            // A connection that a firewall has silently forgotten must not cost the next request a timeout.
            .pool_idle_timeout(Duration::from_secs(60))
            .tcp_keepalive(plain::PROBED)
            .http2_keep_alive_interval(Duration::from_secs(30))
            .http2_keep_alive_timeout(Duration::from_secs(20));
        match &self.resolver {
            Some(resolver) => builder.dns_resolver(Arc::clone(resolver)),
            None => builder,
        }
    }
}

/// Says what is wrong with an address that the operator has named, if it is no web address at all.
pub fn check_web_url(text: &str) -> Result<(), Error> {
    parse_url(text).map(drop)
}

pub(crate) fn parse_url(text: &str) -> Result<(reqwest::Url, String), Error> {
    let invalid = |problem: String| Error::Invalid { host: String::new(), problem };
    let url = reqwest::Url::parse(text).map_err(|error| invalid(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid(format!("the scheme is {:?}, it must be http or https", url.scheme())));
    }
    let host = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => return Err(invalid("there is no host in the URL".to_owned())),
    };
    Ok((url, host))
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

/// An answer whose body has not been read yet.
#[derive(Debug)]
pub struct Response {
    inner: Inner,
    host: String,
}

#[derive(Debug)]
enum Inner {
    Pooled(reqwest::Response),
    Plain(Box<plain::Response>),
}

impl Response {
    /// The status code.
    pub fn status(&self) -> u16 {
        match &self.inner {
            Inner::Pooled(response) => response.status().as_u16(),
            Inner::Plain(response) => response.head.status.as_u16(),
        }
    }

    /// The first header of this name, if it is readable text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let headers = match &self.inner {
            Inner::Pooled(response) => response.headers(),
            Inner::Plain(response) => &response.head.headers,
        };
        headers.get(name)?.to_str().ok()
    }

    /// The next piece of the body; none at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        match &mut self.inner {
            Inner::Pooled(response) => {
                response.chunk().await.map_err(|error| Error::from_reqwest(error, &self.host))
            }
            Inner::Plain(response) => response.chunk().await,
        }
    }

    /// The whole body, or an error if it has more than `max` bytes.
    pub async fn bytes_bounded(mut self, max: usize) -> Result<Bytes, Error> {
        let mut body = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if body.len() + chunk.len() > max {
                return Err(Error::TooLarge { host: self.host, max });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// The beginning of the body, at most `max` bytes, and whether it went on after them. The rest is not read.
    pub async fn bytes_up_to(mut self, max: usize) -> Result<(Bytes, bool), Error> {
        let mut body = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            let room = max - body.len();
            if chunk.len() > room {
                body.extend_from_slice(&chunk[..room]);
                return Ok((body.freeze(), true));
            }
            body.extend_from_slice(&chunk);
        }
        Ok((body.freeze(), false))
    }

    /// The whole body as text, or an error if it has more than `max` bytes. What is not UTF-8 is replaced.
    pub async fn text_bounded(self, max: usize) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(&self.bytes_bounded(max).await?).into_owned())
    }

    /// Lets go of a body of which nothing more is wanted. Its connection is used again if the body ends soon, which
    /// is found out in the background.
    pub fn finish(mut self) {
        // Mostly its end has come with the rest.
        if let Some(Ok(None) | Err(_)) = self.chunk().now_or_never() {
            return;
        }
        tokio::spawn(async move {
            let rest = async {
                let mut bytes = 0;
                while let Ok(Some(chunk)) = self.chunk().await {
                    bytes += chunk.len();
                    if bytes > MAX_UNREAD {
                        return;
                    }
                }
            };
            // Out of time or not, the connection is closed or kept when the body is dropped.
            drop(tokio::time::timeout(UNREAD_TIME, rest).await);
        });
    }

    /// The body as it arrives. Dropping the stream ends the request.
    pub fn into_chunks(self) -> BoxStream<'static, Result<Bytes, Error>> {
        futures_util::stream::try_unfold(self, |mut response| async move {
            Ok(response.chunk().await?.map(|chunk| (chunk, response)))
        })
        .boxed()
    }
}
