//! Answers that the other side has compressed, over both ways that a request can take.

use std::io::Write;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use petasos_net::{Client, Error, Method, Response};
use petasos_testkit::within;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::{client, serve_once};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn answer(encoding: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The two ways: through the pool, and driven by the reader.
const WAYS: [bool; 2] = [true, false];

async fn ask(client: &Client, url: &str, is_pooled: bool) -> Result<Response, Error> {
    match is_pooled {
        true => client.request(Method::Post, url, &[("accept-encoding", "identity")], None).await,
        false => client.post_json(url, &[], "{}").await,
    }
}

#[tokio::test]
async fn answers_are_decoded_although_nobody_asked_for_compression() {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(b"the answer").unwrap();
    let zlib = zlib.finish().unwrap();
    for is_pooled in WAYS {
        for (encoding, body) in
            [("gzip", gzip(b"the answer")), ("GZIP", gzip(b"the answer")), ("deflate", zlib.clone())]
        {
            let (url, _server) = serve_once(answer(encoding, &body)).await;
            let response = ask(&client(), &url, is_pooled).await.unwrap();
            assert_eq!(response.text_bounded(10).await.unwrap(), "the answer", "{encoding}");
        }
    }
}

#[tokio::test]
async fn each_piece_of_a_compressed_stream_is_there_when_it_was_sent() {
    for is_pooled in WAYS {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (heard, mut next) = tokio::sync::mpsc::unbounded_channel::<()>();
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            assert_ne!(socket.read(&mut [0; 4096]).await.unwrap(), 0);
            let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n";
            socket.write_all(head.as_bytes()).await.unwrap();
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            for n in 0..5 {
                write!(encoder, "data: {n}\n\n").unwrap();
                encoder.flush().unwrap();
                let piece = std::mem::take(encoder.get_mut());
                let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
                socket.write_all(&chunk).await.unwrap();
                // The next one is sent when this one was read.
                next.recv().await.unwrap();
            }
            let last = encoder.finish().unwrap();
            let chunk = [format!("{:x}\r\n", last.len()).as_bytes(), &last, b"\r\n0\r\n\r\n"].concat();
            socket.write_all(&chunk).await.unwrap();
        });
        let read = async {
            let mut response = ask(&client(), &url, is_pooled).await.unwrap();
            for n in 0..5 {
                assert_eq!(response.chunk().await.unwrap().unwrap(), format!("data: {n}\n\n"));
                heard.send(()).unwrap();
            }
            assert_eq!(response.chunk().await.unwrap(), None);
        };
        within("the pieces of a stream", read).await;
        server.await.unwrap();
    }
}

#[tokio::test]
async fn a_bomb_meets_the_bound_and_not_memory() {
    let bomb = gzip(&vec![0; 16 << 20]);
    for is_pooled in WAYS {
        let (url, _server) = serve_once(answer("gzip", &bomb)).await;
        let response = ask(&client(), &url, is_pooled).await.unwrap();
        let error = response.bytes_bounded(1 << 20).await.unwrap_err();
        assert!(matches!(error, Error::TooLarge { max: 1_048_576, .. }), "{error}");
        let (url, _server) = serve_once(answer("gzip", &bomb)).await;
        let mut response = ask(&client(), &url, is_pooled).await.unwrap();
        let piece = response.chunk().await.unwrap().unwrap();
        assert!(piece.len() <= 2 << 20, "{}", piece.len());
    }
}

#[tokio::test]
async fn what_cannot_be_decoded_is_an_error_that_says_so() {
    let cut = gzip(b"a text that is long enough to be cut");
    for is_pooled in WAYS {
        for (encoding, body, word) in [
            ("br", &b"\x0b\x02\x80abc\x03"[..], "\"br\""),
            ("zstd", b"\x28\xb5\x2f\xfd", "\"zstd\""),
            ("gzip", b"data: plain\n\n", "gzip"),
            ("gzip", &cut[..cut.len() - 9], ""),
        ] {
            let (url, _server) = serve_once(answer(encoding, body)).await;
            let response = ask(&client(), &url, is_pooled).await.unwrap();
            let error = response.bytes_bounded(1000).await.unwrap_err();
            assert!(matches!(error, Error::Encoded { .. }), "{encoding}: {error:?}");
            assert!(error.to_string().contains(word), "{error}");
        }
        let (url, _server) = serve_once(answer("br", b"")).await;
        assert_eq!(ask(&client(), &url, is_pooled).await.unwrap().text_bounded(9).await.unwrap(), "");
        let (url, _server) = serve_once(answer("gzip", b"")).await;
        assert_eq!(ask(&client(), &url, is_pooled).await.unwrap().text_bounded(9).await.unwrap(), "");
    }
}
