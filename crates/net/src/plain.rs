//! HTTP/1.1, read by whoever waits for the answer.
//!
//! The pooled client drives each connection in a task of its own, which hands a body over piece by piece: for every
//! token of a model that streams, two tasks take turns. Here the reader drives the connection itself, and takes all
//! that has arrived in one go. It is meant for models on the same machine or network, and for everything behind a proxy.
//! TLS and HTTP/2 without a proxy, and what has to be guarded, goes through the pool.

use std::collections::HashMap;
use std::error::Error as _;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper_util::rt::TokioIo;

use crate::dial::Dial;
use crate::error::{Error, innermost};
use crate::stream::Heard;

/// How long a connection is kept for the next request.
const KEPT: Duration = Duration::from_secs(60);

/// What happens to a request that was written to a kept connection which then ended before a byte of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It is sent once more, over a fresh connection: the server had closed the other one before it read anything.
    Unheard,
    /// It fails. The server may have read it, and must not do the same thing twice.
    Never,
}

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
    /// Sends a request and returns as soon as the head of the answer is here. `key` tells connections apart that lead
    /// elsewhere.
    pub(crate) async fn send(
        self: &Arc<Self>,
        key: &str,
        dial: &Dial<'_>,
        mut request: Request,
        repeat: Repeat,
    ) -> Result<Response, Error> {
        let mut kept = self.take(key);
        loop {
            let is_kept = kept.is_some();
            let mut link = match kept.take() {
                Some(link) => link,
                None => connect(dial).await?,
            };
            // A server may close a connection just as it is used again.
            let again = (is_kept && repeat == Repeat::Unheard).then(|| request.clone());
            link.has_answered.store(false, Ordering::Relaxed);
            let mut answer = pin!(link.requests.try_send_request(request));
            match link.until(|context| answer.as_mut().poll(context)).await {
                Ok(answer) => {
                    let (head, body) = answer.into_parts();
                    let home =
                        Home { links: Arc::clone(self), key: key.to_owned(), host: dial.host.to_owned() };
                    return Ok(Response { head, body, link: Some(link), home });
                }
                Err(mut error) => match (error.take_message(), again) {
                    // The other side had closed the connection before it was asked.
                    (Some(unsent), _) if is_kept => {
                        request = unsent;
                        kept = self.take(key);
                    }
                    (None, Some(again)) if link.ended_unheard(error.error()) => request = again,
                    _ => return Err(lost(error.error(), dial.host)),
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
    driver: Option<Connection<TokioIo<Heard>, Full<Bytes>>>,
    /// Whether anything came since the last request.
    has_answered: Arc<AtomicBool>,
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

    /// Whether it was closed before a byte of the answer had come.
    fn ended_unheard(&self, error: &hyper::Error) -> bool {
        !self.has_answered.load(Ordering::Relaxed)
            && (error.is_incomplete_message() || error.is_closed() || has_io_end(error))
    }

    /// Whether it can take a request.
    fn is_ready(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.requests.is_ready()
    }
}

/// Whether the system says that the other side has ended a connection.
fn has_io_end(error: &hyper::Error) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let kind = io.map(io::Error::kind);
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, Some(BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof))
}

async fn connect(dial: &Dial<'_>) -> Result<Link, Error> {
    let has_answered = Arc::new(AtomicBool::new(false));
    let stream = Heard { stream: dial.connect().await?, has_answered: Arc::clone(&has_answered) };
    let (requests, driver) =
        handshake(TokioIo::new(stream)).await.map_err(|error| lost(&error, dial.host))?;
    Ok(Link { requests, driver: Some(driver), has_answered })
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
    home: Home,
}

/// Where a connection goes when its answer was read.
#[derive(Debug)]
struct Home {
    links: Arc<Links>,
    key: String,
    /// What errors call the other end.
    host: String,
}

impl Response {
    /// The next piece of the body; none at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let Home { links, key, host } = &self.home;
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
                        links.put(key, link);
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
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::dial::Way;

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
            let way = Way::Direct(origin.clone());
            let dial = Dial { host: &host, patience: Duration::from_secs(10), way };
            let sent = links.send(&host, &dial, request(), Repeat::Unheard);
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
