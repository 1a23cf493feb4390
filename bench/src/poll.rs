//! Long polls of conversations: what many cost that wait, and how soon one is answered after an append.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::Bench;
use crate::api::{get, post, sessions};
use crate::http::Connection;
use crate::memory::settled;
use crate::process::Server;
use crate::report::{Section, Target, milliseconds, whole};
use crate::samples::Samples;

/// Connections that are opened at once.
const AT_ONCE: usize = 50;
/// How long the processor is watched while everybody waits.
const WATCHED: Duration = Duration::from_secs(5);

pub(crate) async fn measure(bench: &Bench) -> Result<Section> {
    let (_, allowed) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, allowed, allowed)?;
    let directory = bench.directory()?;
    let server = bench.serve(&directory.path().join("home")).await?;
    let agent = server.api().await?.agent("single-1").await?;
    let count = bench.scale.of(10_000, 500);
    let sessions = sessions(server.address, &agent, count).await?;
    // The first polls make the server grow in ways that have nothing to do with their number.
    drop(waiting(&server, &sessions[..AT_ONCE]).await?);
    let before = settled(&server).await?;
    let mut polls = waiting(&server, &sessions).await?;
    let after = settled(&server).await?;
    let busy = server.processor_time()?;
    tokio::time::sleep(WATCHED).await;
    let busy = server.processor_time()? - busy;
    let megabytes = after.resident.saturating_sub(before.resident) as f64 / 1024.0;
    let share = busy.as_secs_f64() / WATCHED.as_secs_f64() * 100.0;

    let (mut appended, mut answered) = (Samples::default(), Samples::default());
    let mut writer = Connection::open(server.address).await?;
    for (session, poll) in sessions.iter().zip(&mut polls).take(bench.scale.of(1000, 100)) {
        let message = json!({ "kind": "human_agent_message", "text": "I am here.", "author": "Ann" });
        let request = post(&format!("/conversation/sessions/{session}/events"), &message);
        let started = Instant::now();
        let (posted, polled) = tokio::join!(
            async {
                let (status, _) = writer.exchange(&request).await?;
                ensure!(status == 201, "a message was answered with {status}");
                anyhow::Ok(started.elapsed())
            },
            async {
                let (status, _) = poll.answer().await?;
                ensure!(status == 200, "a poll was answered with {status}");
                anyhow::Ok(started.elapsed())
            }
        );
        let (posted, polled) = (posted?, polled?);
        appended.time(posted);
        answered.time(polled.saturating_sub(posted));
    }
    server.stop().await?;

    let mut section = Section::new("Long polls");
    section.note(&format!(
        "{} polls wait, each on a session of its own, while 1,000 of them are answered one after another. A message is \
         acknowledged when it is on the disk; the poll's answer is timed from there.",
        whole(count as u64)
    ));
    section.header(&["", "p50", "p99"]);
    let row = |name: &str, samples: &Samples| {
        [name.to_owned(), milliseconds(samples.p50()), milliseconds(samples.p99())]
    };
    section.row(row("a message is acknowledged", &appended));
    section.row(row("the poll is answered, after that", &answered));
    section.row([
        format!("memory of {} polls", whole(count as u64)),
        format!("{megabytes:.1} MB"),
        String::new(),
    ]);
    section.row(["processor while they wait".to_owned(), format!("{share:.1} %"), String::new()]);
    section.cost("A message of a conversation, p50", appended.p50(), "ms");
    section.cost("10,000 waiting polls", megabytes, "MB");
    section.target(Target::at_most("A poll after the append, p50", answered.p50(), 5.0, "ms"));
    section.target(Target::at_most("10,000 waiting polls", megabytes, 200.0, "MB"));
    section.target(Target::at_most("The processor while they wait", share, 1.0, "%"));
    Ok(section)
}

/// A poll of each session, which waits when this returns.
async fn waiting(server: &Server, sessions: &[String]) -> Result<Vec<Connection>> {
    let mut all = Vec::with_capacity(sessions.len());
    for some in sessions.chunks(AT_ONCE) {
        let polls = some.iter().map(|session| async move {
            let mut connection = Connection::open(server.address).await?;
            let path = format!("/conversation/sessions/{session}/events?wait_for_data=600");
            connection.send(&get(&path, "")).await?;
            anyhow::Ok(connection)
        });
        all.extend(try_join_all(polls).await?);
    }
    // Whatever was sent before this on any connection has been taken up by then, or will be in a moment.
    let health = b"GET /health HTTP/1.1\r\nhost: bench\r\n\r\n";
    Connection::open(server.address).await?.exchange(health).await?;
    Ok(all)
}
