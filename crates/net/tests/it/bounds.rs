//! Whole answers within bounds.

use std::time::Duration;

use petasos_net::{Answer, Bounds, Client, Egress, Error, Guard, Method, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::serve_once;

const BOUNDS: Bounds = Bounds { time: Duration::from_secs(30), body_bytes: 100_000, redirects: 2 };

/// A guarded client that may reach the servers of these tests.
fn client() -> Client {
    let egress = Egress { allow: vec!["127.0.0.0/8".parse().unwrap()], only_hosts: Vec::new() };
    Client::guarded(&Options::default(), Guard::new(egress))
}

async fn get(url: &str, headers: &[(&str, &str)], bounds: Bounds) -> Result<Answer, Error> {
    client().send(Method::Get, url, headers, None, bounds).await
}

#[tokio::test]
async fn an_endless_body_is_read_only_as_far_as_it_is_wanted() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = socket.read(&mut request).await.unwrap();
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n").await.unwrap();
        let mut sent = 0_usize;
        while socket.write_all(&[b'a'; 65536]).await.is_ok() {
            sent += 65536;
        }
        sent
    });
    let answer = get(&url, &[], BOUNDS).await.unwrap();
    assert!(answer.cut);
    assert_eq!((answer.body.len(), answer.content_type.as_deref()), (100_000, Some("text/html")));
    let sent = server.await.unwrap();
    assert!(sent < 100_000_000, "the server could send {sent} bytes");
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_given_up() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let bounds = Bounds { time: Duration::from_millis(50), ..BOUNDS };
    let error = get(&url, &[], bounds).await.unwrap_err();
    assert!(matches!(error, Error::Slow { .. }), "{error}");
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_they_may_be_and_keys_stay_behind() {
    let (last, last_request) = serve_once("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhere").await;
    let redirect = format!("HTTP/1.1 301 Moved\r\nlocation: {last}\r\ncontent-length: 0\r\n\r\n");
    let (first, first_request) = serve_once(redirect.clone()).await;
    let headers = [("authorization", "Bearer key"), ("x-own", "yes")];
    let answer = get(&first, &headers, BOUNDS).await.unwrap();
    assert_eq!((&answer.body[..], answer.url.as_str()), (&b"here"[..], last.as_str()));
    assert!(first_request.await.unwrap().contains("authorization: Bearer key"));
    let request = last_request.await.unwrap();
    assert!(!request.contains("authorization") && request.contains("x-own: yes"), "{request}");

    let (first, _request) = serve_once(redirect).await;
    let answer = get(&first, &[], Bounds { redirects: 0, ..BOUNDS }).await.unwrap();
    assert_eq!(answer.status, 301);
}
