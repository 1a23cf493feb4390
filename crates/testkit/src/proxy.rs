//! A proxy as companies have one: it takes requests with a whole URL and passes them on, makes tunnels with CONNECT
//! (RFC 9110, 9.3.6; RFC 9112, 3.2), asks for a password, and fails as a test wants.
//!
//! Whatever it is asked for, it reaches one upstream on this machine: tests have no other.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "a proxy dials")]

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::authority::Identity;

/// How a proxy treats requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyMood {
    /// It passes them on.
    Serves,
    /// It passes on those with this user and password, and answers 407 to others.
    Demands(&'static str, &'static str),
    /// It answers with this status.
    Answers(u16),
    /// It reads them and says nothing.
    Hangs,
    /// It reads them and closes the connection.
    Closes,
}

/// A request that a proxy was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its first line without the version, such as `CONNECT models.example:443`.
    pub line: String,
    /// Its headers, as they were sent.
    pub head: String,
}

/// A proxy on a port of its own. Clones are the same.
#[derive(Clone)]
pub struct ProxyServer {
    /// Host and port.
    pub address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl ProxyServer {
    /// Starts one that reaches `upstream`, a host and a port.
    pub async fn start(upstream: &str, mood: ProxyMood) -> Self {
        ProxyServer::start_with(upstream, mood, None).await
    }

    /// Starts one that is itself reached over TLS.
    pub async fn start_encrypted(upstream: &str, mood: ProxyMood, identity: &Identity) -> Self {
        ProxyServer::start_with(upstream, mood, Some(identity.acceptor())).await
    }

    async fn start_with(upstream: &str, mood: ProxyMood, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (asked, upstream) = (Arc::<Mutex<Vec<Asked>>>::default(), upstream.to_owned());
        let proxy = ProxyServer { address, asked };
        let serving = proxy.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (serving, upstream, mood, tls) =
                    (serving.clone(), upstream.clone(), mood.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serving.serve(stream, &upstream, &mood).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serving.serve(stream, &upstream, &mood).await,
                            Err(_) => None,
                        },
                    }
                });
            }
        });
        proxy
    }

    /// Its address as settings have it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its address with a user and a password.
    pub fn url_with(&self, user: &str, password: &str) -> String {
        format!("http://{user}:{password}@{}", self.address)
    }

    /// What it was asked for so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The first lines of what it was asked for so far.
    pub fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }

    async fn serve(
        &self,
        mut client: impl AsyncRead + AsyncWrite + Unpin,
        upstream: &str,
        mood: &ProxyMood,
    ) -> Option<()> {
        let (head, body) = read_head(&mut client).await?;
        let (line, headers) = head.split_once("\r\n")?;
        let line = line.strip_suffix(" HTTP/1.1")?;
        self.asked.lock().unwrap().push(Asked { line: line.to_owned(), head: headers.to_owned() });
        match mood {
            ProxyMood::Demands(user, password) if !is_from(headers, user, password) => {
                let answer = "HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic \
                              realm=\"x\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                return client.write_all(answer.as_bytes()).await.ok();
            }
            ProxyMood::Answers(status) => {
                let answer =
                    format!("HTTP/1.1 {status} Refused\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                return client.write_all(answer.as_bytes()).await.ok();
            }
            ProxyMood::Hangs => std::future::pending().await,
            ProxyMood::Closes => return None,
            ProxyMood::Demands(..) | ProxyMood::Serves => {}
        }
        let (method, target) = line.split_once(' ')?;
        let mut server = TcpStream::connect(upstream).await.ok()?;
        if method == "CONNECT" {
            // The target of CONNECT is a host and a port, and so is its Host.
            let is_authority = target.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            if !is_authority || header(headers, "host") != Some(target) {
                return bad_request(&mut client).await;
            }
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.ok()?;
        } else {
            // A request to a proxy has the whole URL, and a Host that says the same.
            let Some((host, path)) = target.strip_prefix("http://").and_then(|rest| {
                let slash = rest.find('/')?;
                Some(rest.split_at(slash))
            }) else {
                return bad_request(&mut client).await;
            };
            if header(headers, "host") != Some(host) {
                return bad_request(&mut client).await;
            }
            let kept = headers.lines().filter(|line| !line.to_ascii_lowercase().starts_with("proxy-"));
            let kept: String = kept.map(|line| format!("{line}\r\n")).collect();
            let head = format!("{method} {path} HTTP/1.1\r\n{kept}connection: close\r\n\r\n");
            server.write_all(head.as_bytes()).await.ok()?;
        }
        server.write_all(&body).await.ok()?;
        copy_bidirectional(&mut client, &mut server).await.ok()?;
        Some(())
    }
}

async fn bad_request(client: &mut (impl AsyncWrite + Unpin)) -> Option<()> {
    client.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await.ok()
}

/// The head of a request without the empty line, and what came after it.
async fn read_head(client: &mut (impl AsyncRead + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let body = read.split_off(end + 4);
            read.truncate(end);
            return Some((String::from_utf8(read).ok()?, body));
        }
        if client.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}

fn header<'a>(headers: &'a str, name: &str) -> Option<&'a str> {
    let lines = headers.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
}

fn is_from(headers: &str, user: &str, password: &str) -> bool {
    let expected = format!("Basic {}", BASE64.encode(format!("{user}:{password}")));
    header(headers, "proxy-authorization") == Some(&expected)
}
