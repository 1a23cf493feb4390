//! Connections: how many, how long, and how they end.
//!
//! A peer that is slow, silent or many costs a bounded amount of memory and nobody else's time.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections at the same time.
const MAX_CONNECTIONS: usize = 20_000;
/// The most bytes of a request's head.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How long open requests may take to end when the server stops.
const CLOSING_TIME: Duration = Duration::from_secs(5);
/// How long to wait when the system has no more file descriptors.
const REST_AFTER_FAILURE: Duration = Duration::from_millis(50);

/// Serves until `stop`, then lets what is being answered end. A peer may take `head_time` to send the head of a
/// request, and a connection may lie idle as long.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    head_time: Duration,
    stop: impl Future<Output = ()>,
) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, _)) => match Arc::clone(&connections).try_acquire_owned() {
                Ok(permit) => serve_connection(stream, &router, head_time, &graceful, permit),
                Err(_) => tracing::warn!("{MAX_CONNECTIONS} connections are open; one more was turned away"),
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
    permit: OwnedSemaphorePermit,
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
        drop(permit);
    });
}
