//! The answer to a request, read as it arrives and within bounds.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use crate::encoding::Encoding;
use crate::error::Error;
use crate::plain;
use crate::proxy::Proxy;

/// What may be left of an unwanted body for its connection to be worth keeping.
const MAX_UNREAD: usize = 64 * 1024;
const UNREAD_TIME: Duration = Duration::from_secs(1);

/// An answer whose body has not been read yet.
#[derive(Debug)]
pub struct Response {
    inner: Inner,
    encoding: Encoding,
    /// What errors call the other end.
    host: String,
    /// The proxy that the answer came by.
    proxy: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Inner {
    Pooled(reqwest::Response),
    Plain(Box<plain::Response>),
}

impl Inner {
    fn headers(&self) -> &HeaderMap {
        match self {
            Inner::Pooled(response) => response.headers(),
            Inner::Plain(response) => &response.head.headers,
        }
    }

    async fn chunk(&mut self, host: &str) -> Result<Option<Bytes>, Error> {
        match self {
            Inner::Pooled(response) => {
                response.chunk().await.map_err(|error| Error::from_reqwest(error, host))
            }
            Inner::Plain(response) => response.chunk().await,
        }
    }
}

impl Response {
    pub(crate) fn new(inner: Inner, host: String, proxy: Option<&Proxy>) -> Self {
        let encoding = inner.headers().get(CONTENT_ENCODING).and_then(|name| name.to_str().ok());
        let encoding = Encoding::named(encoding);
        Response { inner, encoding, host, proxy: proxy.map(Proxy::to_string) }
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        match &self.inner {
            Inner::Pooled(response) => response.status().as_u16(),
            Inner::Plain(response) => response.head.status.as_u16(),
        }
    }

    /// The first header of this name, if it is readable text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name)?.to_str().ok()
    }

    /// The proxy that was asked, without user and password. A status may be the proxy's own.
    pub fn proxy(&self) -> Option<&str> {
        self.proxy.as_deref()
    }

    /// The next piece of the body; none at its end. What the other side has compressed is decoded.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let decoder = match &mut self.encoding {
                Encoding::Identity => return self.inner.chunk(&self.host).await,
                Encoding::Unknown(_) => return self.unreadable().await,
                Encoding::Compressed(decoder) => decoder,
            };
            let unreadable =
                |error: io::Error| Error::Encoded { host: self.host.clone(), problem: error.to_string() };
            if let Some(piece) = decoder.next_piece().map_err(unreadable)? {
                return Ok(Some(piece));
            }
            match self.inner.chunk(&self.host).await? {
                Some(input) => decoder.feed(input),
                None => {
                    let last = decoder.finish().map_err(unreadable)?;
                    self.encoding = Encoding::Identity;
                    return Ok((!last.is_empty()).then_some(last));
                }
            }
        }
    }

    /// A body that nothing here can decode is an error, unless there is none.
    async fn unreadable(&mut self) -> Result<Option<Bytes>, Error> {
        let is_empty = self.inner.chunk(&self.host).await?.is_none();
        match &self.encoding {
            Encoding::Unknown(name) if !is_empty => Err(Error::Encoded {
                host: self.host.clone(),
                problem: format!("it is compressed with {name:?}; only gzip and deflate can be read"),
            }),
            _ => Ok(None),
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
