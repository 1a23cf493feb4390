//! Plain HTTP/1.1, read by whoever waits for the answer.
//!
//! The pooled client drives each connection in a task of its own, which hands a body over piece by piece: for every
//! token of a model that streams, two tasks take turns. Here the reader drives the connection itself, and takes all
//! that has arrived in one go. It is meant for models on the same machine or network; TLS, HTTP/2 and everything
//! that has to be guarded goes through the pool.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::ServiceExt;

use crate::error::{Error, innermost};

/// How long a connection is kept for the next request.
const KEPT: Duration = Duration::from_secs(60);

/// How long nothing comes over a connection before the system asks whether the other side is still there.
pub(crate) const PROBED: Duration = Duration::from_secs(30);

pub(crate) type Request = http::Request<Full<Bytes>>;

/// Connections that wait for their next request, by host and port.
#[derive(Debug, Default)]
pub(crate) struct Links {
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    links: HashMap<String, Vec<(Instant, Link)>>,
    is_swept: bool,
}

impl Links {
    /// Sends a request to `origin` and returns as soon as the head of the answer is here. `host` is what errors and
    /// this pool call it.
    pub(crate) async fn send(
        self: &Arc<Self>,
        origin: &http::Uri,
        host: &str,
        mut request: Request,
        connect_timeout: Duration,
    ) -> Result<Response, Error> {
        loop {
            let (mut link, is_used) = match self.take(host) {
                Some(link) => (link, true),
                None => (connect(origin, host, connect_timeout).await?, false),
            };
            let mut answer = pin!(link.requests.try_send_request(request));
            match link.until(|context| answer.as_mut().poll(context)).await {
                Ok(answer) => {
                    let (head, body) = answer.into_parts();
                    let home = (Arc::clone(self), host.to_owned());
                    return Ok(Response { head, body, link: Some(link), home });
                }
                Err(mut error) => match error.take_message() {
                    // The other side had closed the connection before it was asked.
                    Some(unsent) if is_used => request = unsent,
                    _ => return Err(lost(error.error(), host)),
                },
            }
        }
    }

    fn take(&self, host: &str) -> Option<Link> {
        let mut idle = self.lock();
        let links = idle.links.get_mut(host)?;
        while let Some((since, mut link)) = links.pop() {
            if since.elapsed() < KEPT && link.is_ready() {
                return Some(link);
            }
        }
        None
    }

    fn put(self: &Arc<Self>, host: &str, link: Link) {
        let mut idle = self.lock();
        idle.links.entry(host.to_owned()).or_default().push((Instant::now(), link));
        if !std::mem::replace(&mut idle.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes connections that nobody has used for long, until there are none.
async fn sweep(links: Weak<Links>) {
    loop {
        tokio::time::sleep(KEPT).await;
        let Some(links) = links.upgrade() else { return };
        let mut idle = links.lock();
        idle.links.retain(|_, links| {
            links.retain(|(since, _)| since.elapsed() < KEPT);
            !links.is_empty()
        });
        if idle.links.is_empty() {
            idle.is_swept = false;
            return;
        }
    }
}

/// One connection.
#[derive(Debug)]
struct Link {
    requests: SendRequest<Full<Bytes>>,
    /// None after its end. Only then is a request given back that it had not taken.
    driver: Option<Connection<TokioIo<TcpStream>, Full<Bytes>>>,
}

impl Link {
    /// Waits for something that comes over this connection, which is kept going in the meantime.
    async fn until<T>(&mut self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        poll_fn(|context| match poll(context) {
            Poll::Pending => {
                self.drive(context);
                poll(context)
            }
            ready => ready,
        })
        .await
    }

    /// Reads and writes what can be now. If it fails, whoever waits for the answer is told.
    fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(context).is_ready()
        {
            self.driver = None;
        }
    }

    /// Whether it can take a request.
    fn is_ready(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.requests.is_ready()
    }
}

async fn connect(origin: &http::Uri, host: &str, patience: Duration) -> Result<Link, Error> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_keepalive(Some(PROBED));
    let connecting = tokio::time::timeout(patience, connector.oneshot(origin.clone()));
    let connected = connecting.await.map_err(|_| Error::Timeout { host: host.to_owned() })?;
    let io =
        connected.map_err(|error| Error::Connect { host: host.to_owned(), problem: innermost(&error) })?;
    let (requests, driver) = handshake(io).await.map_err(|error| lost(&error, host))?;
    Ok(Link { requests, driver: Some(driver) })
}

fn lost(error: &hyper::Error, host: &str) -> Error {
    Error::Lost { host: host.to_owned(), problem: innermost(error) }
}

/// An answer whose body has not been read yet. Dropping it closes its connection.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) head: http::response::Parts,
    body: Incoming,
    link: Option<Link>,
    home: (Arc<Links>, String),
}

impl Response {
    /// The next piece of the body; none at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let (links, host) = &self.home;
        while let Some(link) = &mut self.link {
            match link.until(|context| Pin::new(&mut self.body).poll_frame(context)).await {
                // Trailers are of no use to anybody.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => return Ok(Some(data)),
                    Err(_) => continue,
                },
                Some(Err(error)) => return Err(lost(&error, host)),
                None => {
                    if let Some(mut link) = self.link.take()
                        && link.is_ready()
                    {
                        links.put(host, link);
                    }
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one request on each connection, and keeps it.
    async fn answer(listener: &TcpListener) -> TcpStream {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        assert_ne!(stream.read(&mut request).await.unwrap(), 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        stream
    }

    #[tokio::test]
    async fn a_request_that_meets_the_end_of_its_connection_is_given_back() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let origin: http::Uri = format!("http://{host}/").parse().unwrap();
        let links = Arc::new(Links::default());
        let request = || http::Request::get("/").header("host", &host).body(Full::default()).unwrap();
        let ask = async || {
            let sent = links.send(&origin, &host, request(), Duration::from_secs(10));
            let (answer, stream) = tokio::join!(sent, answer(&listener));
            assert!(answer.unwrap().chunk().await.unwrap().is_none());
            stream
        };
        let peer = ask().await;
        let mut link = links.take(&host).unwrap();
        drop(peer);
        // What comes over another connection later says that the end of the first one has been seen.
        ask().await;
        let mut answer = pin!(link.requests.try_send_request(request()));
        let answer = link.until(|context| answer.as_mut().poll(context)).await;
        assert!(answer.unwrap_err().take_message().is_some());
    }
}
