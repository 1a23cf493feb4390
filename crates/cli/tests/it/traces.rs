//! Traces reach a collector.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use crate::installation::Installation;

/// A collector that keeps what it is sent.
fn collector() -> (String, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let (sender, received) = mpsc::channel();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 65536];
            // The exporter sends one request at a time and waits for the answer.
            while !is_whole(&request) {
                match connection.read(&mut buffer) {
                    Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            let _ =
                connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (url, received)
}

fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    request.len() >= end + 4 + length.unwrap_or(0)
}

#[test]
fn a_turn_is_seen_by_the_collector() {
    let (url, received) = collector();
    let installation = Installation::new();
    installation.write("config.yaml", format!("traces:\n  endpoint: {url}\n  headers: {{x-team: hats}}\n"));
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let session = server.create_session(&key, "demo/fast");
    server.say(&key, &session, "todo one, two");
    crate::kill::until_idle(&server, &key, &session, 1);
    server.stop();
    let sent: Vec<u8> = received.try_iter().flatten().collect();
    let sent = String::from_utf8_lossy(&sent);
    for expected in ["POST /v1/traces", "hats", "petasos", "model_call", "tool_call", &session] {
        assert!(sent.contains(expected), "{expected} was not sent");
    }
    assert!(!sent.contains(&key), "keys stay out of traces");
}

#[test]
fn a_collector_that_is_gone_costs_nothing() {
    let installation = Installation::new();
    installation.write("config.yaml", "traces:\n  endpoint: http://127.0.0.1:9/v1/traces\n");
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let session = server.create_session(&key, "demo/fast");
    server.say(&key, &session, "hello");
    crate::kill::until_idle(&server, &key, &session, 1);
    server.stop();
}
