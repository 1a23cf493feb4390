//! Requests that go through a proxy.
//!
//! A plain request of the operator's is handed to the proxy with its whole URL. Everything else goes through a tunnel:
//! what is encrypted, and what a caller or a model has named, since the proxy must connect to the very address that was
//! judged here.

use bytes::Bytes;
use http_body_util::Full;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, PROXY_AUTHORIZATION};
use url::Position;

use super::{Client, Method, header_map};
use crate::dial::{Dial, Hop, Target, Way, refused};
use crate::error::Error;
use crate::plain::{Repeat, Request};
use crate::proxy::{Proxy, basic};
use crate::response::{Inner, Response};
use crate::web_url::parse_url;

/// A request that is about to be sent.
pub(super) struct Outgoing<'a> {
    pub(super) method: Method,
    pub(super) url: &'a Url,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: Bytes,
}

impl Client {
    pub(super) async fn request_by_proxy(
        &self,
        proxy: &Proxy,
        outgoing: Outgoing<'_>,
    ) -> Result<Response, Error> {
        let url = outgoing.url;
        let (_, name) = parse_url(url.as_str())?;
        // Whatever fails names the proxy.
        let host = format!("{name} (through the proxy {proxy})");
        let is_judged = !self.is_of_operator(url);
        let is_forwarded = url.scheme() == "http" && !is_judged;
        let needs_tls = proxy.is_https() || url.scheme() == "https";
        let hop = Hop { proxy, tls: if needs_tls { Some(self.pool.tls().await?) } else { None } };
        let (key, way) = if is_forwarded {
            (format!("by {proxy}"), Way::Forward(hop))
        } else {
            let judge = if is_judged { self.pool.resolver.as_deref() } else { None };
            let key = format!("{}://{name} by {proxy}", url.scheme());
            (key, Way::Tunnel(hop, Target { url, judge }))
        };
        let repeat = match outgoing.method {
            // A call of a model costs nothing that a second one could do twice; of others nothing is known.
            Method::Post | Method::Patch if self.guard.is_some() => Repeat::Never,
            _ => Repeat::Unheard,
        };
        let mut request = self.message(&outgoing, &name, is_forwarded)?;
        if let (true, Some(authorization)) = (is_forwarded, proxy.authorization()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        let dial = Dial { host: &host, patience: self.pool.options.connect_timeout, way };
        let inner = self.pool.links.send(&key, &dial, request, repeat).await?;
        if is_forwarded && inner.head.status == http::StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            return Err(refused(proxy, &host, inner.head.status));
        }
        Ok(Response::new(Inner::Plain(Box::new(inner)), host, Some(proxy)))
    }

    /// The request as it is sent, with the whole URL for a proxy that reads it.
    fn message(&self, outgoing: &Outgoing<'_>, host: &str, has_whole_url: bool) -> Result<Request, Error> {
        let Outgoing { method, url, headers, body } = outgoing;
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let target = if has_whole_url { format!("http://{host}{path}") } else { path.to_owned() };
        let mut all = vec![("host", host), ("user-agent", &self.pool.options.user_agent)];
        all.extend_from_slice(headers);
        let request = http::Request::builder().method(reqwest::Method::from(*method)).uri(target);
        let mut request = request
            .body(Full::new(body.clone()))
            .map_err(|error| Error::Invalid { host: host.to_owned(), problem: error.to_string() })?;
        *request.headers_mut() = header_map(&all, host)?;
        if let Some(authorization) = basic(url)
            && !request.headers().contains_key(AUTHORIZATION)
        {
            request.headers_mut().insert(AUTHORIZATION, authorization);
        }
        Ok(request)
    }
}
