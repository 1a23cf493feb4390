//! Connections: how many, how long, and how they end.
//!
//! A peer that is slow, silent or many costs a bounded amount of memory and nobody else's time.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// The most connections at the same time, however many files the system lets a process open.
pub const MAX_CONNECTIONS: usize = 20_000;
/// The most bytes of a request's head.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How long open requests may take to end when the server stops.
const CLOSING_TIME: Duration = Duration::from_secs(5);
/// How long the log says nothing more about connections that are turned away.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);
/// How long to wait when the system has no more file descriptors.
const REST_AFTER_FAILURE: Duration = Duration::from_millis(50);

/// Refuses a request whose head is too large. The HTTP library stops at its own buffer's size, which it may pass by as
/// much as arrives at once.
pub(crate) fn refuse_large_head(request: &Request) -> Result<(), Problem> {
    let line = request.method().as_str().len() + request.uri().to_string().len() + "  HTTP/1.1\r\n".len();
    let field =
        |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + ": \r\n".len();
    let bytes = line + request.headers().iter().map(field).sum::<usize>();
    if bytes <= MAX_HEAD_BYTES {
        return Ok(());
    }
    let message = format!("The head of the request has {bytes} bytes; at most {MAX_HEAD_BYTES} are allowed.");
    Err(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "head_too_large", message))
}

/// Connections: how many may be open, and how many are.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    /// How many may be open.
    pub(crate) most: usize,
    /// Those that are open now.
    pub(crate) open: Gauge,
    /// Those that were turned away because too many were open.
    pub(crate) turned_away: Counter,
}

impl Connections {
    /// At most so many.
    pub(crate) fn new(most: usize) -> Self {
        Connections { most, open: Gauge::default(), turned_away: Counter::default() }
    }
}

/// Bounds of connections.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// How long a peer may take to send the head of a request, and a connection may lie idle.
    pub(crate) head_time: Duration,
    pub(crate) connections: Connections,
}

/// A connection that counts for as long as it is there.
struct OpenConnection {
    open: Gauge,
    _permit: OwnedSemaphorePermit,
}

impl OpenConnection {
    fn count(connections: &Connections, permit: OwnedSemaphorePermit) -> Self {
        connections.open.inc();
        OpenConnection { open: connections.open.clone(), _permit: permit }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.open.dec();
    }
}

/// Says in the log that connections are turned away, once in a while: those who try again at once must not fill it.
#[derive(Default)]
struct Refusals {
    said_at: Option<Instant>,
}

impl Refusals {
    fn say(&mut self, connections: &Connections) {
        connections.turned_away.inc();
        if self.said_at.is_some_and(|said_at| said_at.elapsed() < BETWEEN_WARNINGS) {
            return;
        }
        self.said_at = Some(Instant::now());
        let (most, turned_away) = (connections.most, connections.turned_away.get());
        tracing::warn!(
            most,
            turned_away,
            "{most} connections are open, and more are turned away. The bound is three quarters of the limit of open \
             files (`ulimit -n`, or LimitNOFILE= of the service), and at most {MAX_CONNECTIONS}; /metrics shows \
             petasos_open_connections"
        );
    }
}

/// Serves until `stop`, then lets what is being answered end.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) {
    let Bounds { head_time, connections } = bounds;
    let (permits, mut refusals) = (Arc::new(Semaphore::new(connections.most)), Refusals::default());
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, _)) => match Arc::clone(&permits).try_acquire_owned() {
                Ok(permit) => {
                    let open = OpenConnection::count(&connections, permit);
                    serve_connection(stream, &router, head_time, &graceful, open);
                }
                Err(_) => refusals.say(&connections),
            },
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(REST_AFTER_FAILURE).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(CLOSING_TIME, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time and were cut");
    }
}

fn serve_connection(
    stream: TcpStream,
    router: &Router,
    head_time: Duration,
    graceful: &GracefulShutdown,
    open: OpenConnection,
) {
    // A piece of text on its way to a person must not wait for the next one.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection was gone before it began");
        return;
    }
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        let result: Result<(), hyper::Error> = connection.await;
        if let Err(error) = result {
            tracing::debug!(%error, "a connection ended badly");
        }
        drop(open);
    });
}
