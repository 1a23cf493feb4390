//! How many webhooks go out in a second, in order within each session, with and without receivers that never answer.
//!
//! The deliveries are there before the receiver takes any, so that what is measured is sending and nothing else.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use memchr::memmem;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::Bench;
use crate::api::{Api, post};
use crate::http::Connection;
use crate::report::{Section, Target, count};
use crate::stub::request_length;

/// Sessions whose receiver answers.
const SESSIONS: usize = 100;
/// Sessions whose receiver never does.
const STUCK: usize = 100;
/// More than a run takes, so that stuck receivers stay stuck.
const TIMEOUT_SECONDS: u32 = 600;

pub(crate) async fn measure(bench: &Bench) -> Result<Section> {
    let each = bench.scale.of(200, 5);
    let mut section = Section::new("Deliveries");
    section.note(&format!(
        "{SESSIONS} sessions with {each} events each, to a receiver on this machine that answers at once. Order within \
         each session is checked. Then the same beside {STUCK} sessions whose receivers take the request and never answer."
    ));
    section.header(&["", "deliveries per second", "processor time of the server per delivery"]);
    for (name, stuck) in [("all receivers answer", 0), ("100 receivers are stuck", STUCK)] {
        let (rate, time) = run(bench, each, stuck).await?;
        section.row([name.to_owned(), count(rate), format!("{:.2} ms", time * 1e3)]);
        section.rate(&format!("Deliveries, {name}"), rate, "/s");
        section.cost(&format!("Processor time of a delivery, {name}"), time * 1e3, "ms");
        section.target(Target::at_least(&format!("deliveries per second, {name}"), rate, 1000.0, "/s"));
    }
    Ok(section)
}

/// Deliveries per second, and seconds of processor time for each.
async fn run(bench: &Bench, each: usize, stuck: usize) -> Result<(f64, f64)> {
    let home = bench.directory()?;
    configure(home.path())?;
    let server = bench.serve(home.path()).await?;
    let receiver = Receiver::start(SESSIONS * each).await?;
    let agent = server.api().await?.agent("single-1").await?;
    fill(server.address, &agent, &receiver.url("stuck"), stuck, 2).await?;
    fill(server.address, &agent, &receiver.url("hook"), SESSIONS, each).await?;
    let before = server.processor_time()?;
    let took = receiver.open().await?;
    let spent = server.processor_time()? - before;
    server.stop().await?;
    let total = (SESSIONS * each) as f64;
    Ok((total / took.as_secs_f64(), spent.as_secs_f64() / total))
}

fn configure(home: &Path) -> Result<()> {
    let retries = json!({ "first_retry_seconds": 0.2, "max_retry_seconds": 0.3, "max_attempts": 100_000 });
    let config = json!({
        "egress": { "allow": ["127.0.0.1"] },
        "deliveries": { "timeout_seconds": TIMEOUT_SECONDS, "events": retries },
    });
    std::fs::write(home.join("config.yaml"), config.to_string()).context("write the configuration")
}

/// Makes sessions whose events go to a URL, and posts messages that nobody answers into each.
async fn fill(server: SocketAddr, agent: &str, url: &str, sessions: usize, each: usize) -> Result<()> {
    let one = async |_: usize| {
        let id = Api::open(server).await?.conversation(agent, json!({ "event_webhook_url": url })).await?;
        let path = format!("/conversation/sessions/{id}");
        let mut connection = Connection::open(server).await?;
        let manual =
            String::from_utf8(post(&path, &json!({ "mode": "manual" })))?.replacen("POST", "PATCH", 1);
        expect(&connection.exchange(manual.as_bytes()).await?, 200)?;
        let said =
            post(&format!("{path}/events"), &json!({ "kind": "user_message", "text": "Is anybody there?" }));
        for _ in 0..each {
            expect(&connection.exchange(&said).await?, 201)?;
        }
        anyhow::Ok(())
    };
    try_join_all((0..sessions).map(one)).await.map(drop)
}

fn expect((status, body): &(u16, Vec<u8>), expected: u16) -> Result<()> {
    ensure!(*status == expected, "{status}: {}", String::from_utf8_lossy(body));
    Ok(())
}

impl Api {
    async fn conversation(&mut self, agent: &str, metadata: Value) -> Result<String> {
        self.create("/conversation/sessions", &json!({ "agent_id": agent, "metadata": metadata })).await
    }
}

/// Takes nothing until it is opened, and then everything at once.
struct Receiver {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    open: AtomicBool,
    expected: usize,
    taken: Mutex<Taken>,
    done: watch::Sender<Option<Result<Duration, String>>>,
}

#[derive(Default)]
struct Taken {
    /// The last offset of each session.
    last: HashMap<String, u64>,
    count: usize,
    first_at: Option<Instant>,
}

impl Receiver {
    async fn start(expected: usize) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            open: AtomicBool::new(false),
            expected,
            taken: Mutex::default(),
            done: watch::channel(None).0,
        });
        let serving = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&serving);
                tokio::spawn(async move { serve(stream, &state).await.ok() });
            }
        });
        Ok(Receiver { address, state })
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Takes everything from now on, and says how long that took from the first to the last.
    async fn open(&self) -> Result<Duration> {
        let mut done = self.state.done.subscribe();
        self.state.open.store(true, Ordering::Relaxed);
        let outcome = tokio::time::timeout(Duration::from_secs(300), done.wait_for(Option::is_some)).await;
        let outcome = outcome.context("deliveries are missing")??.clone();
        outcome.context("nothing came")?.map_err(anyhow::Error::msg)
    }
}

async fn serve(mut stream: TcpStream, state: &State) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut input = Vec::with_capacity(16 * 1024);
    loop {
        let Some(length) = request_length(&input)? else {
            if stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let request: Vec<u8> = input.drain(..length).collect();
        if request.starts_with(b"POST /stuck") {
            return std::future::pending().await;
        }
        let status = if state.open.load(Ordering::Relaxed) {
            take(&request, state)?;
            200
        } else {
            503
        };
        stream.write_all(format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n").as_bytes()).await?;
    }
}

/// Counts a delivery, which must come after those before it.
fn take(request: &[u8], state: &State) -> Result<()> {
    let key = b"webhook-id: evt_";
    let start = memmem::find(request, key).context("no id")? + key.len();
    let length = memmem::find(&request[start..], b"\r\n").context("no id")?;
    let id = std::str::from_utf8(&request[start..start + length])?;
    let (session, offset) = id.rsplit_once('_').context("no offset")?;
    let offset: u64 = offset.parse()?;
    let mut taken = state.taken.lock().unwrap_or_else(PoisonError::into_inner);
    let first_at = *taken.first_at.get_or_insert_with(Instant::now);
    let before = taken.last.insert(session.to_owned(), offset);
    if before.is_some_and(|before| before >= offset) {
        state.done.send_replace(Some(Err(format!("{session}: {offset} came after {before:?}"))));
    }
    taken.count += 1;
    if taken.count == state.expected {
        state.done.send_replace(Some(Ok(first_at.elapsed())));
    }
    Ok(())
}
