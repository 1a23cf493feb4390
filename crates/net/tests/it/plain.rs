//! Plain HTTP, which the reader of an answer drives itself.

use petasos_net::{Client, Error, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::client;

/// A place to ask, and what is said there.
struct Place {
    listener: TcpListener,
    url: String,
}

impl Place {
    async fn open() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/v1/chat?key=hidden", listener.local_addr().unwrap());
        Place { listener, url }
    }

    async fn accept(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    /// Asks while `serve` answers.
    async fn ask<T>(&self, client: &Client, serve: impl Future<Output = T>) -> (Result<Response, Error>, T) {
        tokio::join!(client.post_json(&self.url, &[("x-own", "yes")], "{}"), serve)
    }
}

/// Takes one request and answers it.
pub(crate) async fn answer(socket: &mut TcpStream, answer: &str) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n{}") {
        assert!(socket.read_buf(&mut request).await.unwrap() > 0, "the request ended early");
    }
    socket.write_all(answer.as_bytes()).await.unwrap();
    String::from_utf8(request).unwrap()
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const END: &str = "0\r\n\r\n";

#[tokio::test]
async fn pieces_come_as_they_were_sent_and_the_connection_is_used_again() {
    let (place, client) = (Place::open().await, client());
    let serve = async {
        let mut socket = place.accept().await;
        let request = answer(&mut socket, &format!("{HEAD}3\r\none\r\n3\r\ntwo\r\n{END}")).await;
        (socket, request)
    };
    let (response, (mut socket, request)) = place.ask(&client, serve).await;
    let mut response = response.unwrap();
    assert_eq!((response.status(), response.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"one"[..]));
    assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"two"[..]));
    assert_eq!(response.chunk().await.unwrap(), None);
    assert_eq!(response.chunk().await.unwrap(), None);
    let request = request.to_lowercase();
    assert!(request.starts_with("post /v1/chat?key=hidden http/1.1\r\n"), "{request}");
    for line in ["host: 127.0.0.1:", "user-agent: petasos/", "x-own: yes", "content-length: 2"] {
        assert!(request.contains(&format!("\r\n{line}")), "{request}");
    }

    let again = answer(&mut socket, "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone");
    let (response, _) = place.ask(&client, again).await;
    let response = response.unwrap();
    assert_eq!((response.status(), response.text_bounded(9).await.unwrap().as_str()), (404, "gone"));
    answered_on_the_same(&place, &client, &mut socket).await;
}

async fn answered_on_the_same(place: &Place, client: &Client, socket: &mut TcpStream) {
    let (response, _) = place.ask(client, answer(socket, &format!("{HEAD}1\r\nx\r\n{END}"))).await;
    let mut response = response.unwrap();
    assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"x"[..]));
    // Its end is there already, and nobody has to wait for it.
    response.finish();
}

#[tokio::test]
async fn a_connection_that_was_closed_in_the_meantime_is_replaced() {
    let (place, client) = (Place::open().await, client());
    for _ in 0..3 {
        let serve = async {
            let mut socket = place.accept().await;
            answer(&mut socket, &format!("{HEAD}{END}")).await;
        };
        let (response, ()) = place.ask(&client, serve).await;
        assert_eq!(response.unwrap().chunk().await.unwrap(), None);
    }
}

/// The system's timer of a connection, as `/proc/net/tcp` has it: 2 is the one that asks whether a quiet peer is there.
#[cfg(target_os = "linux")]
fn timer(port: u16) -> Option<String> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let from = format!(":{port:04X}");
    let mut rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    // The port may have been that of a connection to somebody else, of which the system still keeps a row.
    let is_open = |row: &[&str]| row.get(3) == Some(&"01");
    let row = rows.find(|row| row.get(1).is_some_and(|local| local.ends_with(&from)) && is_open(row))?;
    row.get(5).map(|timer| timer[..2].to_owned())
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_peer_that_goes_quiet_is_asked_whether_it_is_there() {
    let (place, client) = (Place::open().await, client());
    let serve = async {
        let (mut socket, peer) = place.listener.accept().await.unwrap();
        answer(&mut socket, HEAD).await;
        (socket, peer)
    };
    let (response, (_socket, peer)) = place.ask(&client, serve).await;
    let _response = response.unwrap();
    assert_eq!(timer(peer.port()).as_deref(), Some("02"));
}

#[tokio::test]
async fn a_dropped_answer_closes_its_connection() {
    let (place, client) = (Place::open().await, client());
    let serve = async {
        let mut socket = place.accept().await;
        answer(&mut socket, HEAD).await;
        socket
    };
    let (response, mut socket) = place.ask(&client, serve).await;
    drop(response.unwrap());
    assert_eq!(socket.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn what_fails_is_told_apart_and_keeps_the_url_to_itself() {
    let (place, client) = (Place::open().await, client());
    let serve = async { drop(place.accept().await) };
    let (unanswered, ()) = place.ask(&client, serve).await;
    let unanswered = unanswered.unwrap_err();
    assert!(matches!(unanswered, Error::Lost { .. }), "{unanswered}");

    let serve = async { answer(&mut place.accept().await, &format!("{HEAD}3\r\none\r\n5\r\n")).await };
    let (response, _) = place.ask(&client, serve).await;
    let mut response = response.unwrap();
    assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"one"[..]));
    let cut = response.chunk().await.unwrap_err();
    assert!(matches!(cut, Error::Lost { .. }), "{cut}");

    let serve = async { answer(&mut place.accept().await, "nonsense\r\n\r\n").await };
    let (nonsense, _) = place.ask(&client, serve).await;
    let nonsense = nonsense.unwrap_err();
    assert!(matches!(nonsense, Error::Lost { .. }), "{nonsense}");

    let Place { listener, url } = place;
    drop(listener);
    let refused = client.post_json(&url, &[], "{}").await.unwrap_err();
    assert!(matches!(&refused, Error::Connect { problem, .. } if problem.contains("refused")), "{refused}");
    let header = client.post_json(&url, &[("x-key", "hid\nden")], "{}").await.unwrap_err();
    assert!(matches!(header, Error::Invalid { .. }), "{header}");
    for error in [unanswered, cut, nonsense, refused, header] {
        assert!(!error.to_string().contains("hid"), "{error}");
    }
}

/// Reads a request and closes the connection in the same moment.
async fn take_and_close(mut socket: TcpStream, said: &str) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n{}") {
        assert!(socket.read_buf(&mut request).await.unwrap() > 0, "the request ended early");
    }
    socket.write_all(said.as_bytes()).await.unwrap();
}

/// Asks once, and hands back the server's end of the connection, which is kept.
async fn kept(place: &Place, client: &Client) -> TcpStream {
    let serve = async {
        let mut socket = place.accept().await;
        answer(&mut socket, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        socket
    };
    let (response, socket) = place.ask(client, serve).await;
    assert_eq!(response.unwrap().chunk().await.unwrap(), None);
    socket
}

#[tokio::test]
async fn a_kept_connection_that_closes_on_a_request_costs_one_try_that_is_free() {
    let (place, client) = (Place::open().await, client());
    let socket = kept(&place, &client).await;
    let serve = async {
        take_and_close(socket, "").await;
        let mut socket = place.accept().await;
        answer(&mut socket, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await
    };
    let (response, again) = petasos_testkit::within("the second try", place.ask(&client, serve)).await;
    assert_eq!(response.unwrap().text_bounded(9).await.unwrap(), "ok");
    assert!(again.ends_with("\r\n\r\n{}"), "{again}");
}

#[tokio::test]
async fn there_is_no_second_try_over_a_fresh_connection_or_after_the_first_byte() {
    let (place, client) = (Place::open().await, client());
    let (response, ()) = place.ask(&client, async { take_and_close(place.accept().await, "").await }).await;
    assert!(matches!(response, Err(Error::Lost { .. })), "{response:?}");

    let socket = kept(&place, &client).await;
    let (response, ()) = place.ask(&client, take_and_close(socket, "HTTP/1.1 2")).await;
    assert!(matches!(response, Err(Error::Lost { .. })), "{response:?}");

    let socket = kept(&place, &client).await;
    let serve = async {
        take_and_close(socket, "").await;
        take_and_close(place.accept().await, "").await;
    };
    let (response, ()) = place.ask(&client, serve).await;
    assert!(matches!(response, Err(Error::Lost { .. })), "{response:?}");
}
