//! The client against servers that behave and servers that do not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs)]

use bytes::Bytes;
use futures_util::StreamExt;
use petasos_net::{Client, Egress, Error, Guard, Method, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Answers one connection with these bytes, closes it, and returns the request.
async fn serve_once(answer: impl Into<Vec<u8>>) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/path?secret=hidden", listener.local_addr().unwrap());
    let answer = answer.into();
    let task = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let length = socket.read(&mut request).await.unwrap();
        request.truncate(length);
        socket.write_all(&answer).await.unwrap();
        socket.shutdown().await.unwrap();
        String::from_utf8(request).unwrap()
    });
    (url, task)
}

fn client() -> Client {
    Client::new(&Options::default())
}

async fn get(url: &str) -> Result<petasos_net::Response, Error> {
    client().request(Method::Get, url, &[], None).await
}

#[tokio::test]
async fn a_request_and_its_answer() {
    let (url, server) = serve_once("HTTP/1.1 201 Created\r\nx-id: 7\r\ncontent-length: 5\r\n\r\nhello").await;
    let headers = [("authorization", "Bearer k"), ("x-own", "yes")];
    let body = Some(Bytes::from_static(b"{}"));
    let response = client().request(Method::Patch, &url, &headers, body).await.unwrap();
    assert_eq!(
        (response.status(), response.header("X-Id"), response.header("x-none")),
        (201, Some("7"), None)
    );
    assert_eq!(response.text_bounded(5).await.unwrap(), "hello");
    let request = server.await.unwrap().to_lowercase();
    assert!(request.starts_with("patch /path?secret=hidden http/1.1\r\n"), "{request}");
    assert!(
        request.contains("authorization: bearer k\r\n") && request.contains("x-own: yes\r\n"),
        "{request}"
    );
    assert!(request.contains("user-agent: petasos/"), "{request}");
}

#[tokio::test]
async fn json_is_posted_without_compression() {
    let (url, server) = serve_once("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    client().post_json(&url, &[], "{\"a\":1}").await.unwrap();
    let request = server.await.unwrap().to_lowercase();
    assert!(request.contains("content-type: application/json\r\n"), "{request}");
    assert!(request.contains("accept-encoding: identity\r\n"), "{request}");
}

/// How often a request has a header, and its value.
fn sent(request: &str, name: &str) -> (usize, String) {
    let lines = || {
        request
            .lines()
            .filter_map(|line| line.to_lowercase().strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
    };
    (lines().count(), lines().next().unwrap_or_default())
}

#[tokio::test]
async fn a_header_that_is_given_takes_the_place_of_ours() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let given = [
        ("User-Agent", "mine/1"),
        ("Host", "models.example"),
        ("Content-Type", "application/x-mine"),
        ("ACCEPT-ENCODING", "br"),
        ("x-twice", "first"),
        ("X-Twice", "last"),
    ];
    let allow = vec!["127.0.0.0/8".parse().unwrap()];
    let guard = Guard::new(Egress { allow, ..Egress::default() });
    let pooled = Client::guarded(&Options::default(), guard);
    for client in [client(), pooled] {
        let (url, server) = serve_once(answer).await;
        client.post_json(&url, &given, "{}").await.unwrap();
        let request = server.await.unwrap();
        for (name, value) in [
            ("user-agent", "mine/1"),
            ("host", "models.example"),
            ("content-type", "application/x-mine"),
            ("accept-encoding", "br"),
            ("x-twice", "last"),
            ("content-length", "2"),
        ] {
            assert_eq!(sent(&request, name), (1, value.to_owned()), "{name}: {request}");
        }
    }
}

#[tokio::test]
async fn bodies_are_bounded() {
    let (url, _server) = serve_once("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
    let error = get(&url).await.unwrap().bytes_bounded(4).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { max: 4, .. }), "{error}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (url, _server) =
        serve_once("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n").await;
    let response = get(&url).await.unwrap();
    assert_eq!((response.status(), response.header("location")), (302, Some("http://127.0.0.1:1/")));
}

#[tokio::test]
async fn chunks_come_one_by_one_until_the_connection_is_lost() {
    let (url, _server) =
        serve_once("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n").await;
    let chunks: Vec<_> = get(&url).await.unwrap().into_chunks().collect().await;
    assert_eq!(chunks.len(), 2);
    assert_eq!(chunks[0].as_deref(), Ok(&b"one"[..]));
    assert!(matches!(chunks[1], Err(Error::Lost { .. })), "{chunks:?}");
}

#[tokio::test]
async fn errors_are_told_apart_and_keep_the_url_to_themselves() {
    let (url, _server) = serve_once("").await;
    let lost = get(&url).await.unwrap_err();
    assert!(matches!(lost, Error::Lost { .. }), "{lost}");

    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let refused = get(&format!("http://{address}/path?secret=hidden")).await.unwrap_err();
    assert!(matches!(&refused, Error::Connect { host, .. } if *host == address.to_string()), "{refused}");

    let key =
        client().request(Method::Get, "http://localhost/", &[("x-key", "hid\nden")], None).await.unwrap_err();
    for error in [lost, refused, key] {
        assert!(!error.to_string().contains("hid"), "{error}");
    }
    for url in ["", "nonsense", "ftp://localhost/", "http://", "data:text/plain,hello"] {
        let error = get(url).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{url}: {error}");
    }
}

mod bounds;
mod compressed;
mod plain;
mod proxies;
