//! The listener and everything between it and the surfaces.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use petasos_engine::{Engine, hash_key};
use secrecy::{ExposeSecret, SecretString};
use tokio::net::{TcpListener, ToSocketAddrs};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::backup::Backups;
use crate::known_fields::KnownFields;
use crate::listen::Connections;
use crate::metrics::{self, Metrics};
use crate::problem::Problem;
use crate::rate_limit::{Limiter, RateLimit};
use crate::unknown_fields::{FieldRule, UnknownFields};
use crate::valid_keys::ValidKeys;
use crate::{door, listen, path, routes, unknown_fields};

/// What a server needs.
pub struct Options {
    /// The sessions to serve.
    pub engine: Engine,
    /// The key that may do everything.
    pub admin_key: SecretString,
    /// Web pages that may call us; empty for all.
    pub cors_origins: Vec<String>,
    /// The largest request body.
    pub max_body_bytes: usize,
    /// How often a quiet stream gets a comment.
    pub keep_alive: Duration,
    /// How long peers may take.
    pub patience: Patience,
    /// How many connections may be open. The process must be able to open more files than that.
    pub max_connections: usize,
    /// Whether `/metrics` needs no key.
    pub metrics_public: bool,
    /// How many requests each key may make; none for no bound.
    pub rate_limit: Option<RateLimit>,
    /// What makes backups; none if the store cannot copy itself.
    pub backups: Option<Backups>,
    /// What confines commands of agents; none where there are none.
    pub sandbox: Option<petasos_sandbox::Sandbox>,
    /// What happens to fields of a body that mean nothing.
    pub unknown_fields: UnknownFields,
}

/// How long a peer may take to say what it wants. One that sends a byte now and then holds a connection no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For the head of a request; also how long a connection may lie idle.
    pub head: Duration,
    /// For the body of a request, all of it.
    pub body: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { head: Duration::from_secs(75), body: Duration::from_secs(60) }
    }
}

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// An origin in `cors.origins` is not one.
    #[error("cors.origins: {0:?} is not an origin such as https://app.example.com")]
    Origin(String),
}

/// What every handler can get at.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) settings: Arc<Settings>,
}

impl FromRef<App> for Engine {
    fn from_ref(app: &App) -> Engine {
        app.engine.clone()
    }
}

/// What handlers need to know besides the engine.
pub(crate) struct Settings {
    pub(crate) admin_key_hash: String,
    pub(crate) keep_alive: Duration,
    pub(crate) max_body_bytes: usize,
    pub(crate) body_time: Duration,
    pub(crate) metrics: Metrics,
    pub(crate) limiter: Option<Limiter>,
    pub(crate) backups: Option<Backups>,
    pub(crate) sandbox: Option<petasos_sandbox::Sandbox>,
    /// The fields that bodies may have.
    pub(crate) known_fields: KnownFields,
    /// What happens to the others.
    pub(crate) field_rule: FieldRule,
    /// Ends streams when their keys are revoked.
    pub(crate) valid_keys: ValidKeys,
    /// Ends streams when the server stops.
    pub(crate) stopping: CancellationToken,
}

/// A server that has its address.
pub struct Server {
    listener: TcpListener,
    router: Router,
    bounds: listen::Bounds,
    stopping: CancellationToken,
    address: SocketAddr,
}

impl Server {
    /// Takes the address, and answers nobody yet.
    pub async fn bind(
        address: impl ToSocketAddrs + std::fmt::Display,
        options: Options,
    ) -> Result<Server, Error> {
        let failed = |source| Error::Bind { address: address.to_string(), source };
        let listener = TcpListener::bind(&address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let stopping = CancellationToken::new();
        let connections = Connections::new(options.max_connections.min(listen::MAX_CONNECTIONS));
        let bounds = listen::Bounds { head_time: options.patience.head, connections: connections.clone() };
        let router = router(options, &connections, stopping.clone())?;
        Ok(Server { listener, router, bounds, stopping, address })
    }

    /// The address, with the port that the system chose if none was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is cancelled and what was being answered has been.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let Server { listener, router, bounds, stopping, .. } = self;
        let stop = async move {
            shutdown.cancelled().await;
            stopping.cancel();
        };
        listen::serve(listener, router, bounds, stop).await;
        Ok(())
    }
}

fn router(options: Options, connections: &Connections, stopping: CancellationToken) -> Result<Router, Error> {
    let cors = cors(&options.cors_origins)?;
    let (guarded, operations) = routes::guarded().into_parts();
    let settings = Settings {
        admin_key_hash: hash_key(options.admin_key.expose_secret()),
        keep_alive: options.keep_alive,
        max_body_bytes: options.max_body_bytes,
        body_time: options.patience.body,
        metrics: Metrics::new(&options.engine, connections),
        limiter: options.rate_limit.map(Limiter::new),
        backups: options.backups,
        sandbox: options.sandbox,
        known_fields: KnownFields::new(&operations),
        field_rule: FieldRule::new(options.unknown_fields),
        valid_keys: ValidKeys::new(stopping.clone()),
        stopping,
    };
    let app = App { engine: options.engine, settings: Arc::new(settings) };
    let metrics = if options.metrics_public { metrics::public_api() } else { metrics::api() };
    let (metrics, _) = metrics.into_parts();
    let (open, _) = routes::open().into_parts();
    let (open, guarded) =
        if options.metrics_public { (open.merge(metrics), guarded) } else { (open, guarded.merge(metrics)) };
    let admit = middleware::from_fn_with_state(app.clone(), door::admit);
    let guarded = guarded
        .fallback(no_such_path)
        .method_not_allowed_fallback(method_not_allowed)
        .layer((admit, DefaultBodyLimit::max(options.max_body_bytes)));
    let enter = middleware::from_fn_with_state(app.clone(), door::enter);
    let panics = CatchPanicLayer::custom(|_| Problem::internal("a handler panicked").into_response());
    Ok(open.merge(guarded).with_state(app).layer((enter, cors, panics)))
}

fn cors(origins: &[String]) -> Result<CorsLayer, Error> {
    let allowed = if origins.is_empty() {
        AllowOrigin::any()
    } else {
        let values = origins
            .iter()
            .map(|origin| origin.parse::<HeaderValue>().map_err(|_| Error::Origin(origin.clone())));
        AllowOrigin::list(values.collect::<Result<Vec<_>, _>>()?)
    };
    Ok(CorsLayer::new()
        .allow_origin(allowed)
        .allow_headers(AllowHeaders::mirror_request())
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::PUT, Method::DELETE])
        .expose_headers([
            HeaderName::from_static("x-request-id"),
            HeaderName::from_static("x-should-retry"),
            unknown_fields::IGNORED,
            header::RETRY_AFTER,
        ])
        .max_age(Duration::from_secs(3600)))
}

async fn no_such_path(method: Method, uri: axum::http::Uri) -> Problem {
    path::nothing_at(&method, &uri)
}

async fn method_not_allowed(method: Method, uri: axum::http::Uri) -> Response {
    let message = format!("{method} is not possible at {}.", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message).into_response()
}
