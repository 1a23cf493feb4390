//! The connections of one client, and how new ones are made.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tokio::sync::OnceCell;

use super::Options;
use crate::dial;
use crate::error::{Error, innermost};
use crate::guard::GuardedResolver;
use crate::plain::Links;
use crate::tls::client_config;

/// Made by the first request: reading the certificates of a system takes longer than the rest of a start.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) options: Options,
    pub(super) resolver: Option<Arc<GuardedResolver>>,
    pub(super) links: Arc<Links>,
    made: OnceCell<reqwest::Client>,
    tls: OnceCell<Arc<ClientConfig>>,
}

impl Pool {
    pub(super) fn new(options: &Options, resolver: Option<Arc<GuardedResolver>>) -> Arc<Self> {
        Arc::new(Pool {
            options: options.clone(),
            resolver,
            links: Arc::default(),
            made: OnceCell::new(),
            tls: OnceCell::new(),
        })
    }

    /// The client that dials directly.
    pub(super) async fn get(&self) -> Result<&reqwest::Client, Error> {
        self.made.get_or_try_init(async || self.make(ClientConfig::clone(&*self.tls().await?))).await
    }

    /// How connections over TLS are made that this crate drives itself.
    pub(super) async fn tls(&self) -> Result<Arc<ClientConfig>, Error> {
        let make = || async {
            let certificates = self.options.certificates.clone();
            let made = tokio::task::spawn_blocking(move || client_config(&certificates)).await;
            made.map_err(|error| Error::Setup { problem: error.to_string() })?.map(Arc::new)
        };
        self.tls.get_or_try_init(make).await.cloned()
    }

    fn make(&self, mut tls: ClientConfig) -> Result<reqwest::Client, Error> {
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        #[expect(clippy::disallowed_methods, reason = "this is the crate that dials")]
        let builder = reqwest::Client::builder();
        let builder = builder
            .tls_backend_preconfigured(tls)
            .user_agent(&self.options.user_agent)
            .connect_timeout(self.options.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            // Requests that go through a proxy never come here.
            .no_proxy()
            // A connection that a firewall has silently forgotten must not cost the next request a timeout.
            .pool_idle_timeout(Duration::from_secs(60))
            .tcp_keepalive(dial::PROBED)
            .http2_keep_alive_interval(Duration::from_secs(30))
            .http2_keep_alive_timeout(Duration::from_secs(20));
        let builder = match &self.resolver {
            Some(resolver) => builder.dns_resolver(Arc::clone(resolver)),
            None => builder,
        };
        builder.build().map_err(|error| Error::Setup { problem: innermost(&error) })
    }
}
