//! How a connection is made: directly, to a proxy, or through one.
//!
//! An address that a caller or a model has named is looked up and judged here, and the proxy is asked for the address
//! that was judged. The certificate is checked against the name all the same.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1::handshake;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use reqwest::Url;
use reqwest::header::{HOST, PROXY_AUTHORIZATION};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tower::ServiceExt;

use crate::error::{Error, innermost};
use crate::guard::GuardedResolver;
use crate::proxy::Proxy;
use crate::stream::Stream;

/// How long nothing comes over a connection before the system asks whether the other side is still there.
pub(crate) const PROBED: Duration = Duration::from_secs(30);

/// How many of a host's addresses a proxy is asked for.
const MAX_ADDRESSES: usize = 4;

/// Makes connections for one request.
pub(crate) struct Dial<'a> {
    /// What errors call the other end.
    pub(crate) host: &'a str,
    /// How long it may take, TLS included.
    pub(crate) patience: Duration,
    pub(crate) way: Way<'a>,
}

/// Where a connection leads, and by what.
pub(crate) enum Way<'a> {
    /// To the server itself, without TLS.
    Direct(http::Uri),
    /// To a proxy that is told the whole URL.
    Forward(Hop<'a>),
    /// Through a proxy that passes on bytes.
    Tunnel(Hop<'a>, Target<'a>),
}

/// A proxy, and how to talk to it.
pub(crate) struct Hop<'a> {
    pub(crate) proxy: &'a Proxy,
    /// Set if it or the server is reached over TLS.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// The server behind a proxy.
pub(crate) struct Target<'a> {
    pub(crate) url: &'a Url,
    /// Set if its address has to be judged here.
    pub(crate) judge: Option<&'a GuardedResolver>,
}

impl Dial<'_> {
    /// Makes a connection over which a request can be sent.
    pub(crate) async fn connect(&self) -> Result<Stream, Error> {
        let connected = tokio::time::timeout(self.patience, async {
            match &self.way {
                Way::Direct(origin) => tcp(origin.clone())
                    .await
                    .map_err(|problem| Error::Connect { host: self.host.to_owned(), problem }),
                // Boxed, so that requests without a proxy stay small.
                Way::Forward(hop) => Box::pin(self.to_proxy(hop)).await,
                Way::Tunnel(hop, target) => Box::pin(self.through_proxy(hop, target)).await,
            }
        });
        connected.await.map_err(|_| Error::Timeout { host: self.host.to_owned() })?
    }

    async fn to_proxy(&self, hop: &Hop<'_>) -> Result<Stream, Error> {
        let origin = http::Uri::try_from(format!("http://{}", hop.proxy.address()));
        let origin = origin.map_err(|error| self.failed(hop, None, error))?;
        let stream = tcp(origin).await.map_err(|problem| self.failed(hop, None, problem))?;
        match &hop.tls {
            Some(tls) if hop.proxy.is_https() => encrypt(stream, hop.proxy.host(), tls)
                .await
                .map_err(|problem| self.failed(hop, None, problem)),
            _ => Ok(stream),
        }
    }

    async fn through_proxy(&self, hop: &Hop<'_>, target: &Target<'_>) -> Result<Stream, Error> {
        let host = target.url.host_str().unwrap_or_default();
        let port = target.url.port_or_known_default().unwrap_or_default();
        let addresses = match target.judge {
            None => vec![format!("{host}:{port}")],
            Some(judge) => {
                let judged = judge.judged_addresses(target.url).await?;
                let judged = judged.into_iter().take(MAX_ADDRESSES);
                judged.map(|address| SocketAddr::new(address, port).to_string()).collect()
            }
        };
        let mut last = None;
        for address in addresses {
            match self.tunnel(hop, &address).await {
                Ok(stream) => return self.to_server(stream, host, hop, target).await,
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| self.failed(hop, None, format!("{host} has no address"))))
    }

    async fn to_server(
        &self,
        stream: Stream,
        host: &str,
        hop: &Hop<'_>,
        target: &Target<'_>,
    ) -> Result<Stream, Error> {
        match &hop.tls {
            Some(tls) if target.url.scheme() == "https" => encrypt(stream, host, tls)
                .await
                .map_err(|problem| Error::Connect { host: self.host.to_owned(), problem }),
            _ => Ok(stream),
        }
    }

    /// Asks the proxy for a connection to this address. What it answers besides the status is of no use: no byte of the
    /// server comes before ours.
    async fn tunnel(&self, hop: &Hop<'_>, address: &str) -> Result<Stream, Error> {
        let closed = |error: hyper::Error| self.failed(hop, None, innermost(&error));
        let mut request = http::Request::connect(address).header(HOST, address);
        if let Some(authorization) = hop.proxy.authorization() {
            request = request.header(PROXY_AUTHORIZATION, authorization);
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|error| self.failed(hop, None, error))?;
        let stream = TokioIo::new(self.to_proxy(hop).await?);
        let (mut requests, driver) = handshake(stream).await.map_err(closed)?;
        // It ends with the sender of its requests, or hands over the connection.
        tokio::spawn(driver.with_upgrades());
        let response = requests.send_request(request).await.map_err(closed)?;
        let status = response.status();
        if !status.is_success() {
            return Err(refused(hop.proxy, self.host, status));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(closed)?;
        match upgraded.downcast::<TokioIo<Stream>>() {
            Ok(parts) if parts.read_buf.is_empty() => Ok(parts.io.into_inner()),
            _ => Err(self.failed(hop, None, "it sent data before it was asked for any")),
        }
    }

    fn failed(&self, hop: &Hop<'_>, status: Option<u16>, problem: impl fmt::Display) -> Error {
        let (host, proxy) = (self.host.to_owned(), hop.proxy.to_string());
        Error::Proxy { host, proxy, status, problem: problem.to_string() }
    }
}

/// What the answer of a proxy means that does not let a request through.
pub(crate) fn refused(proxy: &Proxy, host: &str, status: http::StatusCode) -> Error {
    let problem = match status.as_u16() {
        407 if proxy.authorization().is_some() => {
            "it does not accept the user and password (407); check those in its URL".to_owned()
        }
        407 => "it asks for a user and password (407); put them into its URL: http://USER:PASSWORD@HOST:PORT"
            .to_owned(),
        _ => format!("it answered {status}"),
    };
    Error::Proxy { host: host.to_owned(), proxy: proxy.to_string(), status: Some(status.as_u16()), problem }
}

/// A connection without TLS. Of several addresses of a name, the first that answers is taken.
async fn tcp(origin: http::Uri) -> Result<Stream, String> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_keepalive(Some(PROBED));
    let connected = connector.oneshot(origin).await.map_err(|error| innermost(&error))?;
    Ok(Stream::Plain(connected.into_inner()))
}

async fn encrypt(stream: Stream, host: &str, tls: &Arc<ClientConfig>) -> Result<Stream, String> {
    let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
    let connecting = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
    let encrypted = connecting.await.map_err(|error| crate::error::tls_problem(&error))?;
    Ok(Stream::Encrypted(Box::new(encrypted)))
}
