//! Peers that mean harm, or are broken enough to look like it: clear answers, and everyone else is served.

use std::time::Duration;

use petasos_server::Patience;
use petasos_testkit::{Reply, Setup, TestServer, within};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const KEY: &str = "authorization: Bearer pk_admin_key_of_tests\r\n";

#[expect(clippy::disallowed_methods, reason = "these tests speak raw HTTP")]
async fn connect(server: &TestServer) -> TcpStream {
    within("a connection", TcpStream::connect(server.url.strip_prefix("http://").unwrap())).await.unwrap()
}

/// Everything that the server sends until it closes or has sent a whole head.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        match within("an answer", stream.read(&mut buffer)).await {
            Ok(0) | Err(_) => break,
            Ok(count) => head.extend_from_slice(&buffer[..count]),
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

async fn others_are_served(server: &TestServer) {
    server.client.get("/v1/agents").await.expect(200);
    let session = server.session().await;
    server.model.script([Reply::text("Still here.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "hello").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
}

#[tokio::test]
async fn a_body_of_100_megabytes() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let path = format!("/v1/sessions/{session}/events");
    let mut announced = connect(&server).await;
    let request = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{KEY}content-length: 104857600\r\n\r\n");
    announced.write_all(request.as_bytes()).await.unwrap();
    assert!(head(&mut announced).await.starts_with("HTTP/1.1 413"), "an announced size is refused at once");

    let mut chunked = connect(&server).await;
    let request = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{KEY}transfer-encoding: chunked\r\n\r\n");
    chunked.write_all(request.as_bytes()).await.unwrap();
    let (mut answers, mut sends) = chunked.into_split();
    let sending = tokio::spawn(async move {
        let mut chunk = b"10000\r\n".to_vec();
        chunk.resize(chunk.len() + 0x10000, b'x');
        chunk.extend_from_slice(b"\r\n");
        for _ in 0..1600 {
            if sends.write_all(&chunk).await.is_err() {
                return;
            }
        }
    });
    let mut buffer = [0; 12];
    within("an answer", answers.read_exact(&mut buffer)).await.unwrap();
    assert_eq!(&buffer, b"HTTP/1.1 413", "a growing one is refused when it is too large");
    drop(answers);
    sending.abort();
    others_are_served(&server).await;
}

/// Sends all of a request before it reads anything, as many clients do, and returns the answer's head.
async fn insistent(stream: &mut TcpStream, method: &str, path: &str, key: &str, bytes: usize) -> String {
    let start = format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{key}content-length: {bytes}\r\n\r\n");
    stream.write_all(start.as_bytes()).await.unwrap();
    within("the body to be taken", stream.write_all(&vec![b' '; bytes])).await.unwrap();
    head(stream).await
}

#[tokio::test]
async fn an_answer_that_needs_no_body_reaches_a_client_that_sends_it_first() {
    let server = TestServer::start().await;
    let made = server.client.post("/v1/keys", json!({ "name": "r", "scopes": ["sessions:read"] })).await;
    let reader = format!("authorization: Bearer {}\r\n", made.expect(201)["key"].as_str().unwrap());
    // No more than it takes, since the server drops what comes for some seconds only, and not all machines are fast.
    for (method, path, key, megabytes, status) in [
        ("POST", "/v1/agents", "", 2, 401),
        ("POST", "/v1/agents", KEY, 17, 413),
        ("POST", "/v1/agents", &reader, 2, 403),
        ("POST", "/v1/nothing", KEY, 2, 404),
        ("PUT", "/v1/agents", KEY, 2, 405),
    ] {
        let mut stream = connect(&server).await;
        let answer = insistent(&mut stream, method, path, key, megabytes << 20).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path}: {answer}");
    }
    // Not everything is taken, and not for ever.
    let mut stream = connect(&server).await;
    let request = "POST /v1/agents HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let sending = async { while stream.write_all(&[b' '; 65536]).await.is_ok() {} };
    within("the server to hang up", sending).await;
    others_are_served(&server).await;
}

#[tokio::test]
async fn headers_of_a_megabyte() {
    let server = TestServer::start().await;
    let mut stream = connect(&server).await;
    let request =
        format!("GET /v1/agents HTTP/1.1\r\nhost: x\r\n{KEY}x-long: {}\r\n\r\n", "x".repeat(1 << 20));
    // The server may hang up before it has read everything.
    let _ = stream.write_all(request.as_bytes()).await;
    let answer = head(&mut stream).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    others_are_served(&server).await;
}

#[tokio::test]
async fn heads_over_64_kilobytes_are_refused() {
    let server = TestServer::start().await;
    for path in ["/health", "/v1/agents"] {
        for (count, length) in [(1, 100_000), (10, 7_000), (1, 66_000)] {
            let mut stream = connect(&server).await;
            let fields: String =
                (0..count).map(|n| format!("x-long-{n}: {}\r\n", "x".repeat(length))).collect();
            let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n{KEY}{fields}\r\n");
            let _ = stream.write_all(request.as_bytes()).await;
            let answer = head(&mut stream).await;
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{path} {count}: {answer}");
        }
    }
    let mut stream = connect(&server).await;
    let request =
        format!("GET /v1/agents HTTP/1.1\r\nhost: x\r\n{KEY}x-long: {}\r\n\r\n", "x".repeat(50_000));
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(head(&mut stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn connections_beyond_the_bound_are_turned_away() {
    let server = TestServer::start_with(Setup { max_connections: 3, ..Setup::default() }).await;
    let health = "GET /health HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(&server).await;
        stream.write_all(health.as_bytes()).await.unwrap();
        assert!(head(&mut stream).await.starts_with("HTTP/1.1 200"));
        open.push(stream);
    }
    let mut one_more = connect(&server).await;
    let _ = one_more.write_all(health.as_bytes()).await;
    assert_eq!(head(&mut one_more).await, "", "it is closed without an answer");
    drop(open.pop());
    within("a place", async {
        loop {
            let mut stream = connect(&server).await;
            let _ = stream.write_all(health.as_bytes()).await;
            if head(&mut stream).await.starts_with("HTTP/1.1 200") {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn requests_that_never_end_and_nonsense() {
    let server = TestServer::start().await;
    let mut unfinished = Vec::new();
    for part in [
        "G",
        "GET /v1/agents HTTP/1.1\r\nhost",
        "POST /v1/agents HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{",
    ] {
        let mut stream = connect(&server).await;
        stream.write_all(part.as_bytes()).await.unwrap();
        unfinished.push(stream);
    }
    for nonsense in ["\0\0\0\0", "HELLO\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /\u{1F600} HTTP/1.1\r\n\r\n"]
    {
        let mut stream = connect(&server).await;
        let _ = stream.write_all(nonsense.as_bytes()).await;
        let answer = head(&mut stream).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.0 4"),
            "{answer}"
        );
    }
    others_are_served(&server).await;
}

/// Sends a byte now and then, for as long as the server takes them.
async fn trickle(mut sends: tokio::net::tcp::OwnedWriteHalf, bytes: &'static [u8]) {
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    for byte in bytes.iter().cycle() {
        pace.tick().await;
        if sends.write_all(&[*byte]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_client_that_sends_a_byte_now_and_then() {
    let patience = Patience { head: Duration::from_millis(300), body: Duration::from_millis(300) };
    let server = TestServer::start_with(Setup { patience, ..Setup::default() }).await;
    let post = format!("POST /v1/agents HTTP/1.1\r\nhost: x\r\n{KEY}content-length: 1000000\r\n\r\n");
    for (start, bytes, answered) in [
        ("GET /v1/agents HTTP/1.1\r\nx-long: ", b"x".as_slice(), ""),
        (&post, b" ".as_slice(), "HTTP/1.1 408"),
        (&post.replace(KEY, ""), b" ".as_slice(), "HTTP/1.1 401"),
    ] {
        let mut stream = connect(&server).await;
        stream.write_all(start.as_bytes()).await.unwrap();
        let (mut answers, sends) = stream.into_split();
        let sending = tokio::spawn(trickle(sends, bytes));
        let mut answer = Vec::new();
        // A server that closes while bytes arrive may reset the connection; what it said before counts.
        let _ = within("the server to hang up", answers.read_to_end(&mut answer)).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(answered), "{answer}");
        assert_eq!(answer.is_empty(), answered.is_empty(), "{answer}");
        drop(answers);
        within("the client to notice", sending).await.unwrap();
    }
    others_are_served(&server).await;
}

#[tokio::test]
async fn readers_that_never_read() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let mut deaf = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(&server).await;
        let path = format!("/v1/sessions/{session}/events/stream?after=0");
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{KEY}\r\n").as_bytes()).await.unwrap();
        deaf.push(stream);
    }
    // Far more than the buffers between the two can hold.
    let block = json!({ "type": "text", "text": "x".repeat(20_000) });
    let message = json!({ "type": "user.message", "content": vec![block; 50] });
    let mut reader = server.client.stream(&session, "").await;
    for _ in 0..12 {
        server.model.script([Reply::text("I see.")]);
        server.client.event(&session, message.clone()).await.expect(200);
        assert_eq!(reader.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    }
    others_are_served(&server).await;
}

#[tokio::test]
async fn readers_that_leave_at_every_byte() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.model.script([Reply::thinking("Hm.").and_text("A short answer."), Reply::text("Fine.")]);
    let mut reader = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    reader.until_idle().await;
    let path = format!("/v1/sessions/{session}/events/stream?after=0");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n{KEY}\r\n");
    let whole: usize = server.client.events(&session).await.iter().map(|event| event.to_string().len()).sum();
    for bytes in (0..whole).step_by(7) {
        let mut stream = connect(&server).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut buffer = vec![0; bytes];
        within("some bytes", stream.read_exact(&mut buffer)).await.unwrap();
    }
    server.client.message(&session, "still there?").await.expect(200);
    assert_eq!(reader.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    drop(reader);
    within("all readers to be gone", async {
        while server.engine.held_sessions() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn many_requests_at_once_for_one_session() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let steer = json!({ "type": "user.steer", "message": "x" });
    let sends = (0..400).map(|_| server.client.event(&session, steer.clone()));
    let answers = futures_util::future::join_all(sends).await;
    let accepted = answers.iter().filter(|answer| answer.status == 200).count();
    for answer in answers.into_iter().filter(|answer| answer.status != 200) {
        answer.expect_error(429, "rate_limited");
    }
    assert_eq!(server.client.events(&session).await.len(), accepted);
    server.client.event(&session, steer).await.expect(200);
}
