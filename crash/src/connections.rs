//! Thousands of connections and streams that say nothing: each costs little, and others are served.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use petasos_testkit::{ModelServer, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::process::{KEY, Process};
use crate::{check, model, recording};

/// What a quiet stream may cost the server.
const MAX_STREAM_BYTES: u64 = 20 * 1024;
/// What a connection that has said nothing may cost.
const MAX_IDLE_BYTES: u64 = 16 * 1024;
/// Files that either process needs besides its connections.
const OTHER_FILES: u64 = 200;
/// Sessions that the streams follow.
const SESSIONS: usize = 100;

/// How many there are.
#[derive(clap::Args)]
pub(crate) struct Crowd {
    /// Connections that send nothing.
    #[arg(long, default_value_t = 10_000)]
    idle: u64,
    /// Streams of sessions in which nothing happens.
    #[arg(long, default_value_t = 1_000)]
    streams: u64,
}

pub(crate) async fn run(binary: &Path, crowd: &Crowd) -> Result<()> {
    let (_, allowed) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, allowed, allowed)?;
    let streams = crowd.streams.min(allowed.saturating_sub(OTHER_FILES));
    let idle = crowd.idle.min(allowed.saturating_sub(OTHER_FILES + streams));
    if (idle, streams) != (crowd.idle, crowd.streams) {
        println!("connections: only {allowed} open files are allowed here, so there are fewer");
    }
    let model = ModelServer::start().await;
    model.respond(model::reply);
    let home = tempfile::tempdir()?;
    let mut server = Process::start(binary, home.path(), &model).await?;
    let client = server.client();
    let sessions = recording::sessions(&client, SESSIONS).await;
    check::takes_another_turn(&client, &sessions[0]).await;

    let alone = resident(&server)?;
    let mut connections = Vec::new();
    for _ in 0..idle {
        connections.push(connect(&server).await?);
    }
    // Connections are accepted in their order, so a later one that is served has the others before it.
    let mut last = connect(&server).await?;
    last.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").await?;
    read_head(&mut last).await?;
    let crowded = resident(&server)?;
    for session in sessions.iter().cycle().take(usize::try_from(streams)?) {
        let mut stream = connect(&server).await?;
        let path = format!("/v1/sessions/{session}/events/stream");
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        read_head(&mut stream).await?;
        connections.push(stream);
    }
    let streaming = resident(&server)?;

    let started = Instant::now();
    check::takes_another_turn(&client, &sessions[1]).await;
    let turn = started.elapsed();
    // Nobody was turned away or hung up on to get there.
    for connection in &mut connections[..usize::try_from(idle)?] {
        let read = connection.try_read(&mut [0]);
        assert!(read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "one was closed");
    }
    let (per_idle, per_stream) = (each(alone, crowded, idle), each(crowded, streaming, streams));
    println!(
        "connections: VmRSS {} KB; {idle} idle connections: {} KB, {per_idle} bytes each; {streams} quiet streams: \
         {} KB, {per_stream} bytes each; another client's turn took {} ms",
        alone / 1024,
        crowded / 1024,
        streaming / 1024,
        turn.as_millis()
    );
    assert!(per_idle <= MAX_IDLE_BYTES, "an idle connection costs more than {MAX_IDLE_BYTES} bytes");
    assert!(per_stream <= MAX_STREAM_BYTES, "a quiet stream costs more than {MAX_STREAM_BYTES} bytes");
    drop(connections);
    check::takes_another_turn(&client, &sessions[2]).await;
    server.kill().await?;
    println!("connections: 1 passed, 0 failed");
    Ok(())
}

async fn connect(server: &Process) -> Result<TcpStream> {
    #[expect(clippy::disallowed_methods, reason = "these connections are no requests")]
    let stream = within("a connection", TcpStream::connect(server.address())).await;
    stream.context("the server takes no more connections")
}

/// Reads until the head of an answer has arrived, which must be a good one.
async fn read_head(stream: &mut TcpStream) -> Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        within("an answer", stream.read_buf(&mut head)).await?;
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", head.escape_ascii());
    Ok(())
}

/// The server's resident memory in bytes.
fn resident(server: &Process) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024)
}

fn each(before: u64, after: u64, count: u64) -> u64 {
    after.saturating_sub(before) / count.max(1)
}
