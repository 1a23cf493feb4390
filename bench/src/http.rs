//! A lean HTTP/1.1 client: one connection, no more parsing than needed, so that it is never what is measured.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const READ: usize = 64 * 1024;

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Bytes(usize),
    Chunked,
}

/// A connection that is kept open from request to request.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes from the wire that were not looked at.
    raw: Vec<u8>,
    /// The decoded part of a chunked body that was not handed out.
    body: Vec<u8>,
    /// How much of `body` was handed out.
    taken: usize,
    /// How much of the current chunk is still to come.
    chunk: usize,
    ended: bool,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("connect")?;
        stream.set_nodelay(true)?;
        let (raw, body) = (Vec::with_capacity(READ), Vec::new());
        Ok(Connection { stream, raw, body, taken: 0, chunk: 0, ended: true })
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await.context("send")
    }

    /// Sends a request and reads the whole answer: its status and body.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<(u16, Vec<u8>)> {
        self.send(request).await?;
        self.answer().await
    }

    /// Reads a whole answer.
    pub(crate) async fn answer(&mut self) -> Result<(u16, Vec<u8>)> {
        let (status, length) = self.head().await?;
        match length {
            Length::Bytes(length) => {
                while self.raw.len() < length {
                    self.fill().await?;
                }
                Ok((status, self.raw.drain(..length).collect()))
            }
            Length::Chunked => {
                let mut body = Vec::new();
                while !self.ended {
                    self.decode()?;
                    body.append(&mut self.body);
                    if !self.ended {
                        self.fill().await?;
                    }
                }
                Ok((status, body))
            }
        }
    }

    /// Reads the head of an answer that is a stream of events.
    pub(crate) async fn begin_stream(&mut self) -> Result<()> {
        match self.head().await? {
            (200, Length::Chunked) => Ok(()),
            (status, _) => bail!("expected a stream, got status {status}"),
        }
    }

    /// The next frame of a stream of events, and none at its end.
    pub(crate) async fn frame(&mut self) -> Result<Option<&[u8]>> {
        loop {
            if let Some(length) = memmem::find(&self.body[self.taken..], b"\n\n") {
                let start = self.taken;
                self.taken += length + 2;
                return Ok(Some(&self.body[start..start + length]));
            }
            if self.ended {
                return Ok(None);
            }
            self.body.drain(..self.taken);
            self.taken = 0;
            if self.raw.is_empty() {
                self.fill().await?;
            }
            if !self.decode()? && !self.ended {
                self.fill().await?;
            }
        }
    }

    async fn head(&mut self) -> Result<(u16, Length)> {
        let end = loop {
            if let Some(end) = memmem::find(&self.raw, b"\r\n\r\n") {
                break end + 4;
            }
            self.fill().await?;
        };
        let head: Vec<u8> = self.raw.drain(..end).collect();
        let head = std::str::from_utf8(&head)?.to_ascii_lowercase();
        let status = head.get(9..12).and_then(|status| status.parse().ok()).context("no status")?;
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let length = match header("content-length:") {
            Some(length) => Length::Bytes(length.parse()?),
            None if header("transfer-encoding:") == Some("chunked") => Length::Chunked,
            None => bail!("an answer without a length"),
        };
        self.body.clear();
        (self.taken, self.chunk, self.ended) = (0, 0, length != Length::Chunked);
        Ok((status, length))
    }

    /// Decodes what is there of a chunked body, and says whether that was anything.
    fn decode(&mut self) -> Result<bool> {
        let (mut at, mut found) = (0, false);
        while !self.ended {
            let rest = &self.raw[at..];
            if self.chunk > 0 {
                // The line end after a chunk counts as a part of it.
                let length = self.chunk.min(rest.len());
                let content = length.min(self.chunk.saturating_sub(2));
                self.body.extend_from_slice(&rest[..content]);
                found |= content > 0;
                self.chunk -= length;
                at += length;
                if self.chunk > 0 {
                    break;
                }
            } else {
                let Some(line) = memmem::find(rest, b"\r\n") else { break };
                let size = usize::from_str_radix(std::str::from_utf8(&rest[..line])?.trim(), 16)?;
                if size == 0 {
                    if rest.len() < line + 4 {
                        break;
                    }
                    (at, self.ended) = (at + line + 4, true);
                } else {
                    (at, self.chunk) = (at + line + 2, size + 2);
                }
            }
        }
        self.raw.drain(..at);
        Ok(found)
    }

    async fn fill(&mut self) -> Result<()> {
        self.raw.reserve(READ);
        match self.stream.read_buf(&mut self.raw).await.context("receive")? {
            0 => bail!("the connection was closed"),
            _ => Ok(()),
        }
    }
}
