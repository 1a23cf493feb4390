//! Whether a long log makes anything slower: append, resume and list in sessions of different lengths.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::Bench;
use crate::api::{get, post};
use crate::fill::Filling;
use crate::http::Connection;
use crate::report::{Section, Target, milliseconds, whole};
use crate::samples::Samples;
use crate::startup::Filled;

const OPERATIONS: [&str; 4] = ["append", "resume", "list", "list of sessions"];

pub(crate) async fn measure(bench: &Bench, _: &Path, filled: &Filled) -> Result<Section> {
    let lengths: [u64; 3] = [100, 10_000, bench.scale.of(1_000_000, 50_000)];
    let (database, agent) = (filled.home.join("petasos.db"), filled.agent.clone());
    let sessions = tokio::task::spawn_blocking(move || {
        let filling = Filling::open(&database, &agent)?;
        let sessions = lengths.map(|length| filling.session(length));
        filling.finish()?;
        sessions.into_iter().collect::<Result<Vec<_>>>()
    })
    .await??;
    let server = bench.serve(&filled.home).await?;
    let mut requests = Connection::open(server.address).await?;
    let mut figures: [[Samples; 4]; 3] = Default::default();
    // The sessions take turns, so that whatever else the machine does hits all of them alike.
    for round in 0..bench.scale.of(120, 20) {
        for ((session, length), samples) in sessions.iter().zip(lengths).zip(&mut figures) {
            let session = session.as_str();
            let [appends, resumes, lists, listings] = samples;
            let appended = round + 1;
            appends.add(append(&mut requests, session).await?);
            resumes.add(resume(server.address, session, length + appended - 5).await?);
            let path = format!("/v1/sessions/{session}/events?order=desc&limit=100");
            lists.add(list(&mut requests, &path).await?);
            listings.add(list(&mut requests, "/v1/sessions").await?);
        }
    }
    server.stop().await?;
    Ok(section(&lengths, &figures))
}

fn section(lengths: &[u64; 3], figures: &[[Samples; 4]; 3]) -> Section {
    let mut section = Section::new("Long logs");
    section.note(
        "p50 of: `POST` of a `user.steer` to an idle session (one commit), a stream with a `Last-Event-ID` five events \
         back until its first event (with its connection), the last 100 events, the newest 20 sessions. The sessions \
         are in one store with all those of the measurement above, and asleep before each request.");
    let names = lengths.map(|length| format!("{} events", whole(length)));
    section.header(&["", &names[0], &names[1], &names[2], "longest / shortest"]);
    for (index, name) in OPERATIONS.into_iter().enumerate() {
        let p50: Vec<f64> = figures.iter().map(|samples| samples[index].p50()).collect();
        let ratio = p50[2] / p50[0];
        section.row([
            name.to_owned(),
            milliseconds(p50[0]),
            milliseconds(p50[1]),
            milliseconds(p50[2]),
            format!("{ratio:.2}×"),
        ]);
        section.target(Target::at_most(&format!("A long log: {name}"), ratio, 1.5, "×"));
    }
    section
}

async fn append(requests: &mut Connection, session: &str) -> Result<f64> {
    let body = json!({ "type": "user.steer", "message": "Shorter, please." });
    let request = post(&format!("/v1/sessions/{session}/events"), &body);
    let started = Instant::now();
    let (status, answer) = requests.exchange(&request).await?;
    let time = started.elapsed();
    ensure!(status == 200, "a steer was answered with {status}: {}", String::from_utf8_lossy(&answer));
    Ok(time.as_secs_f64() * 1e3)
}

async fn resume(server: SocketAddr, session: &str, after: u64) -> Result<f64> {
    let headers = format!("last-event-id: {after}\r\n");
    let request = get(&format!("/v1/sessions/{session}/events/stream"), &headers);
    let started = Instant::now();
    let mut stream = Connection::open(server).await?;
    stream.send(&request).await?;
    stream.begin_stream().await?;
    stream.frame().await?.context("the stream ended")?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

async fn list(requests: &mut Connection, path: &str) -> Result<f64> {
    let request = get(path, "");
    let started = Instant::now();
    let (status, answer) = requests.exchange(&request).await?;
    let time = started.elapsed();
    ensure!(status == 200, "{path} answered {status}: {}", String::from_utf8_lossy(&answer));
    Ok(time.as_secs_f64() * 1e3)
}
