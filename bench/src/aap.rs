//! The Agent Application Protocol beside the Herm stream: what a streamed turn costs, and how soon its first text is
//! on its way.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use memchr::memmem;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::Bench;
use crate::api::{message, post};
use crate::conversation::{Conversation, Direct, Ear, Heard};
use crate::http::Connection;
use crate::process::Server;
use crate::report::{Section, Target, milliseconds, percent};
use crate::samples::Samples;
use crate::stub;
use crate::turn::{TOKENS, TURNS};

/// How long the model is silent, so that nothing but its first byte is waited for.
const SILENCE: Duration = Duration::from_millis(25);

pub(crate) async fn measure(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("The Agent Application Protocol");
    section.note(&format!(
        "A turn of {TOKENS} tokens in the mode `delta` and the same turn over the Herm stream, {TURNS} of one and then of \
         the other: processor time of the server, medians. Below, the time from the first byte that leaves the model to the \
         first `text_delta` at the client, with a model that is silent for {} ms before and for {} ms after its first \
         token; and the same with a client that reads straight from the model.",
        SILENCE.as_millis(),
        stub::PAUSE.as_millis()
    ));
    section.header(&["", "Herm", "AAP", "ratio"]);
    let (herm, aap) = processor_times(bench).await?;
    let ratio = aap.p50() / herm.p50();
    section.row([
        "processor time of a turn".to_owned(),
        milliseconds(herm.p50()),
        milliseconds(aap.p50()),
        percent(ratio),
    ]);
    section.target(Target::at_most(
        "AAP turn beside the Herm stream, processor time",
        ratio * 100.0,
        105.0,
        "%",
    ));
    section.cost("Processor time of a turn, Herm", herm.p50(), "ms");
    section.cost("Processor time of a turn, AAP", aap.p50(), "ms");
    let (first, direct) = first_texts(bench).await?;
    for (name, time) in [
        ("first text after the model's first byte, p50", first.p50()),
        ("first text after the model's first byte, p99", first.p99()),
        ("the same without the server, p50", direct.p50()),
    ] {
        section.row([name.to_owned(), String::new(), milliseconds(time), String::new()]);
    }
    section.target(Target::at_most(
        "AAP first text after the model's first byte, p50",
        first.p50(),
        1.0,
        "ms",
    ));
    section.cost("AAP, first text after the model's first byte, p50", first.p50(), "ms");
    Ok(section)
}

/// Processor time of a turn over either surface. They take turns with a session each, so that both meet the same machine.
async fn processor_times(bench: &Bench) -> Result<(Samples, Samples)> {
    let directory = bench.directory()?;
    let server = bench.serve(&directory.path().join("home")).await?;
    let mut api = server.api().await?;
    let agent = api.agent(&format!("single-{TOKENS}")).await?;
    let (mut herm, mut aap) = (Samples::default(), Samples::default());
    let sessions = bench.scale.of(240, 4);
    for session in 0..sessions {
        let used = herm_session(&server, &api.session(&agent).await?).await?;
        let used_by_aap = aap_session(&server, &api.session(&agent).await?).await?;
        // The first ones warm both sides up.
        if session >= sessions / 12 {
            herm.add(used.as_secs_f64() * 1e3 / TURNS as f64);
            aap.add(used_by_aap.as_secs_f64() * 1e3 / TURNS as f64);
        }
    }
    server.stop().await?;
    Ok((herm, aap))
}

async fn herm_session(server: &Server, session: &str) -> Result<Duration> {
    let mut conversation = Conversation::open(server.address, session, TOKENS).await?;
    let before = server.processor_time()?;
    for _ in 0..TURNS {
        conversation.turn().await?;
    }
    Ok(server.processor_time()? - before)
}

async fn aap_session(server: &Server, session: &str) -> Result<Duration> {
    let mut application = Application::open(server.address, session).await?;
    let before = server.processor_time()?;
    for _ in 0..TURNS {
        application.turn().await?;
    }
    Ok(server.processor_time()? - before)
}

/// An application with one session.
struct Application {
    connection: Connection,
    request: Vec<u8>,
}

impl Application {
    async fn open(server: SocketAddr, session: &str) -> Result<Self> {
        let text = message()["content"][0]["text"].clone();
        let body = json!({ "stream": "delta", "messages": [{ "role": "user", "content": text }] });
        let request = post(&format!("/aap/sessions/{session}/turns"), &body);
        Ok(Application { connection: Connection::open(server).await?, request })
    }

    /// One turn: from the request until the stream ends.
    async fn turn(&mut self) -> Result<Heard> {
        let mut ear = Ear::new();
        self.connection.send(&self.request).await?;
        self.connection.begin_stream().await?;
        while let Some(frame) = self.connection.frame().await? {
            if memmem::find(frame, b"event: text_delta").is_some() {
                ear.hear(frame, b"\"delta\":\"");
            }
        }
        ear.heard(TOKENS)
    }
}

/// Times from the model's first byte to the first text at the client, through the server and without it.
async fn first_texts(bench: &Bench) -> Result<(Samples, Samples)> {
    let directory = bench.directory()?;
    let (model, mut first_bytes) = noting_model().await?;
    let server = Server::start(&bench.binary, &directory.path().join("home"), model).await?;
    let mut api = server.api().await?;
    let agent = api.agent(&format!("single-{TOKENS}")).await?;
    let mut straight = Direct::open(model, "single", TOKENS).await?;
    let (mut times, mut direct) = (Samples::default(), Samples::default());
    for session in 0..bench.scale.of(21, 2) {
        let mut application = Application::open(server.address, &api.session(&agent).await?).await?;
        for _ in 0..TURNS {
            let started = Instant::now();
            let heard = application.turn().await?;
            let left = first_bytes.recv().await.context("the model is gone")?;
            if session > 0 {
                times.time((started + heard.first).saturating_duration_since(left));
            }
            let started = Instant::now();
            let heard = straight.turn().await?;
            let left = first_bytes.recv().await.context("the model is gone")?;
            direct.time((started + heard.first).saturating_duration_since(left));
        }
    }
    server.stop().await?;
    Ok((times, direct))
}

/// A model in this process that notes when the first byte of each answer leaves.
async fn noting_model() -> Result<(SocketAddr, mpsc::UnboundedReceiver<Instant>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (notes, noted) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let notes = notes.clone();
            // A connection that breaks is the other side's affair.
            tokio::spawn(async move { answer_all(stream, notes).await.ok() });
        }
    });
    Ok((address, noted))
}

async fn answer_all(mut stream: TcpStream, notes: mpsc::UnboundedSender<Instant>) -> Result<()> {
    stream.set_nodelay(true)?;
    let answer = stub::answer(&format!("paced-{TOKENS}"))?;
    let mut input = Vec::with_capacity(16 * 1024);
    loop {
        let Some(length) = stub::request_length(&input)? else {
            if stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
            continue;
        };
        input.drain(..length);
        tokio::time::sleep(SILENCE).await;
        notes.send(Instant::now())?;
        answer.write(&mut stream).await?;
    }
}
