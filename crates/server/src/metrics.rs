//! `GET /metrics`: what the server does, for Prometheus.

use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use petasos_core::key::KeyScope;
use petasos_engine::Engine;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::auth::Administers;
use crate::listen::Connections;
use crate::openapi::{Api, Operation};
use crate::problem::Problem;
use crate::server::App;

/// What is counted about requests, and the registry that shows it with everything else.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Route, Counter>,
    seconds: Family<Path, Histogram>,
    /// Streams that are open now.
    pub(crate) open_streams: Gauge,
    awake_sessions: Gauge,
    store_commits: Gauge<u64, AtomicU64>,
    store_writes: Gauge<u64, AtomicU64>,
    store_waiting: Gauge<i64, AtomicI64>,
    pending_deliveries: Gauge<u64, AtomicU64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: String,
    path: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Path {
    path: String,
}

impl Metrics {
    pub(crate) fn new(engine: &Engine, connections: &Connections) -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.000_5, 2.0, 16));
        let mut metrics = Metrics {
            registry: Registry::default(),
            requests: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            open_streams: Gauge::default(),
            awake_sessions: Gauge::default(),
            store_commits: Gauge::default(),
            store_writes: Gauge::default(),
            store_waiting: Gauge::default(),
            pending_deliveries: Gauge::default(),
        };
        let registry = &mut metrics.registry;
        engine.metrics().register(registry);
        registry.register("petasos_http_requests", "Requests that were answered", metrics.requests.clone());
        registry.register(
            "petasos_http_request_seconds",
            "Seconds until an answer began",
            metrics.seconds.clone(),
        );
        registry.register("petasos_open_connections", "Connections that are open", connections.open.clone());
        let most: Gauge = Gauge::default();
        most.set(i64::try_from(connections.most).unwrap_or(i64::MAX));
        registry.register("petasos_max_connections", "Connections that may be open", most);
        let about = "Connections that were turned away because too many were open";
        registry.register("petasos_connections_turned_away", about, connections.turned_away.clone());
        registry.register("petasos_open_streams", "Streams that are open", metrics.open_streams.clone());
        registry.register(
            "petasos_awake_sessions",
            "Sessions that have an actor",
            metrics.awake_sessions.clone(),
        );
        let about = "Commits of the store since it was opened";
        registry.register("petasos_store_commits", about, metrics.store_commits.clone());
        let about = "Writes in the store's commits; many share one";
        registry.register("petasos_store_writes", about, metrics.store_writes.clone());
        registry.register(
            "petasos_store_waiting",
            "Writes that wait for a commit",
            metrics.store_waiting.clone(),
        );
        let about = "Webhooks and callbacks that are on their way";
        registry.register("petasos_pending_deliveries", about, metrics.pending_deliveries.clone());
        metrics
    }

    /// Counts a request whose answer begins.
    pub(crate) fn request(&self, method: &str, path: &str, status: StatusCode, took: Duration) {
        self.seconds.get_or_create(&Path { path: path.to_owned() }).observe(took.as_secs_f64());
        let route = Route { method: method.to_owned(), path: path.to_owned(), status: status.as_u16() };
        self.requests.get_or_create(&route).inc();
    }

    /// Everything as text.
    fn show(&self, engine: &Engine) -> Result<String, std::fmt::Error> {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let stats = engine.store_stats();
        self.awake_sessions.set(count(engine.awake_sessions()));
        self.store_commits.set(stats.commits);
        self.store_writes.set(stats.writes);
        self.store_waiting.set(i64::try_from(stats.waiting).unwrap_or(i64::MAX));
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// For administrators: figures tell about all tenants.
pub(crate) fn api() -> Api {
    Api::default().get("/metrics", get(show_to_administrators), operation())
}

/// For everybody, if the configuration says so.
pub(crate) fn public_api() -> Api {
    Api::default().get("/metrics", get(show), operation())
}

fn operation() -> Operation {
    let summary = "What the server does, for Prometheus.";
    Operation::new::<String>("metrics", summary, KeyScope::Admin).text()
}

async fn show_to_administrators(_: Administers, state: State<App>) -> Result<Response, Problem> {
    show(state).await
}

async fn show(State(app): State<App>) -> Result<Response, Problem> {
    // A store that fails is when the other figures are wanted most.
    if let Ok(pending) = app.engine.pending_deliveries().await {
        app.settings.metrics.pending_deliveries.set(pending);
    }
    let text =
        app.settings.metrics.show(&app.engine).map_err(|_| Problem::internal("metrics cannot be written"))?;
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, content_type)], text).into_response())
}
