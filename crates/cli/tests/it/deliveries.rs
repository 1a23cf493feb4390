//! `petasos deliveries`, and the secret in the home.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

use crate::installation::{Installation, PATIENCE, Server, mode};

/// A receiver that answers with these statuses in turn, then with 200.
pub(crate) fn receiver(statuses: &'static [u16]) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, received) = mpsc::channel();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let status = statuses.get(number).copied().unwrap_or(200);
            let mut request = String::new();
            let mut buffer = [0; 4096];
            while !request.ends_with('}') {
                let count = stream.read(&mut buffer).unwrap();
                request.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
            }
            let answer = format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (url, received)
}

fn configure(installation: &Installation, url: &str) {
    let config = json!({ "deliveries": { "event_webhook_url": url } });
    installation.write("config.yaml", config.to_string());
}

fn turn(server: &Server, received: &mpsc::Receiver<String>) -> Vec<String> {
    let key = server.shown_key().unwrap();
    let session = server.create_session(key, "demo/fast");
    server.say(key, &session, "hello");
    (0..5).map(|_| received.recv_timeout(PATIENCE).unwrap()).collect()
}

#[test]
fn deliveries_are_listed_shown_and_replayed() {
    let installation = Installation::new();
    let (url, received) = receiver(&[410]);
    configure(&installation, &url);
    let server = installation.serve();
    let requests = turn(&server, &received);
    assert!(requests[0].contains("\"kind\":\"user_message\""), "{}", requests[0]);

    let dead = installation.json(&["deliveries", "list", "--status", "dead"]);
    let delivery = &dead["items"][0];
    let (id, session) = (delivery["id"].as_str().unwrap(), delivery["session_id"].as_str().unwrap());
    assert_eq!(dead["items"].as_array().unwrap().len(), 1);
    let all = installation.json(&["deliveries", "list", "--session", session]);
    assert_eq!((all["items"].as_array().unwrap().len(), &all["next_cursor"]), (5, &Value::Null));
    let table = installation.run(&["deliveries", "list"]).stdout;
    assert!(table.contains("dead") && table.contains("410") && table.contains(id), "{table}");
    assert_eq!(installation.json(&["deliveries", "show", id]), *delivery);
    let shown = installation.run(&["deliveries", "show", id]).stdout;
    assert!(shown.contains("410 the receiver answered 410"), "{shown}");

    let replay = installation.json(&["deliveries", "replay", id]);
    assert_eq!(replay["replay_of"], id);
    let again = received.recv_timeout(PATIENCE).unwrap();
    let body = |request: &str| request.split_once("\r\n\r\n").unwrap().1.to_owned();
    assert_eq!(body(&again), body(&requests[0]));
    installation.run(&["deliveries", "show", "dlv_none"]).assert_refused(&["dlv_none", "not_found"]);
    server.stop();
}

#[test]
fn credentials_are_printed_and_no_key_is_sent() {
    let installation = Installation::new();
    let (url, received) = receiver(&[]);
    configure(&installation, &url);
    let server = installation.serve();
    let own = installation.json(&["deliveries", "credentials"]);
    let secret = std::fs::read_to_string(installation.file("delivery.secret")).unwrap();
    assert_eq!(own["secret"], secret.trim());
    let token = own["token"].as_str().unwrap();
    let key = std::fs::read_to_string(installation.file("admin.key")).unwrap();
    for request in turn(&server, &received) {
        assert!(request.contains(&format!("authorization: Bearer {token}\r\n")), "{request}");
        assert!(!request.contains(key.trim()), "{request}");
    }
    let acme = installation.json(&["deliveries", "credentials", "--tenant", "acme"]);
    assert!(acme["token"] != own["token"] && acme["secret"] != own["secret"], "{acme}");
    let shown = installation.run(&["deliveries", "credentials", "--tenant", "acme"]).stdout;
    assert!(shown.contains(acme["token"].as_str().unwrap()), "{shown}");
    assert!(shown.contains(acme["secret"].as_str().unwrap()), "{shown}");
    server.stop();
}

#[test]
fn the_first_start_makes_a_secret_that_stays() {
    let installation = Installation::new();
    installation.serve().stop();
    let path = installation.file("delivery.secret");
    assert_eq!(mode(&path), 0o600);
    let secret = std::fs::read_to_string(&path).unwrap();
    assert!(secret.starts_with("whsec_"), "{secret}");
    installation.serve().stop();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), secret);
    std::fs::write(&path, "nonsense").unwrap();
    let refused = installation.run(&["serve", "--listen", "127.0.0.1:0"]);
    refused.assert_refused(&["delivery.secret", "whsec_"]);
    assert!(!refused.stderr.contains("nonsense"), "{}", refused.stderr);
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    let installation = Installation::new();
    for (settings, words) in [
        (json!({ "secret": "short" }), "deliveries.secret"),
        (json!({ "event_webhook_url": "hook" }), "deliveries.event_webhook_url"),
        (json!({ "timeout_seconds": 0 }), "greater than 0"),
    ] {
        installation.write("config.yaml", json!({ "deliveries": settings }).to_string());
        installation.run(&["serve", "--listen", "127.0.0.1:0"]).assert_refused(&[words]);
    }
}

#[test]
fn what_was_committed_before_a_kill_is_delivered_by_the_next_process() {
    let installation = Installation::new();
    // Nobody listens there yet.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    configure(&installation, &format!("http://{free}/hook"));
    let mut server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let session = server.create_session(&key, "demo/fast");
    server.say(&key, &session, "hello");
    crate::kill::until_idle(&server, &key, &session, 1);
    server.signal("KILL");
    server.wait();
    let (url, received) = receiver(&[]);
    configure(&installation, &url);
    let server = installation.serve();
    // What was committed goes where it was to go then, until the session says otherwise.
    let change = json!({ "metadata": { "event_webhook_url": url } }).to_string();
    assert_eq!(server.request("PATCH", &format!("/v1/sessions/{session}"), &key, &change).0, 200);
    for offset in ["0", "1"] {
        let request = received.recv_timeout(PATIENCE).unwrap();
        assert!(request.contains(&format!("webhook-id: evt_{session}_{offset}\r\n")), "{request}");
    }
}
