//! Memory of the server: idle, with many sessions stored, with many quiet streams open.

use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;

use crate::Bench;
use crate::api::{get, sessions};
use crate::http::Connection;
use crate::machine::Memory;
use crate::process::Server;
use crate::report::{Section, Target};

const STREAMS: usize = 1000;

pub(crate) async fn measure(bench: &Bench) -> Result<Section> {
    let directory = bench.directory()?;
    let home = directory.path().join("home");
    let server = bench.serve(&home).await?;
    let mut section = Section::new("Memory");
    section.note(
        "Resident memory of the server (VmRSS), and the part that is its own (RssAnon): the rest is the program file, \
         which the system can drop and share.");
    section.header(&["", "resident", "own"]);
    let idle = settled(&server).await?;
    row(&mut section, "idle, nothing stored", idle);

    let agent = server.api().await?.agent("single-1").await?;
    let few = sessions(server.address, &agent, 1000).await?;
    row(&mut section, "1,000 sessions stored", settled(&server).await?);
    let more = bench.scale.of(9000, 1000);
    sessions(server.address, &agent, more).await?;
    row(&mut section, &format!("{} sessions stored, by this process", 1000 + more), settled(&server).await?);
    server.stop().await?;
    let server = bench.serve(&home).await?;
    let stored = settled(&server).await?;
    row(&mut section, &format!("{} sessions stored, after a restart", 1000 + more), stored);

    // The first streams make the server grow in ways that have nothing to do with their number.
    let warm = open(&server, &few[..50]).await?;
    let before = settled(&server).await?;
    let streams = open(&server, &few).await?;
    let after = settled(&server).await?;
    drop((warm, streams));
    row(&mut section, &format!("{STREAMS} quiet streams open"), after);
    let each = (after.resident.saturating_sub(before.resident)) as f64 / few.len() as f64;
    section.row(["per quiet stream".to_owned(), format!("{each:.1} KB"), String::new()]);
    section.cost("Idle", idle.resident as f64 / 1024.0, "MB");
    section.cost("Idle with 10,000 sessions stored", stored.resident as f64 / 1024.0, "MB");
    section.cost("A quiet stream", each, "KB");
    section.target(Target::at_most("Idle", idle.resident as f64 / 1024.0, 25.0, "MB"));
    let added = (stored.resident as f64 - idle.resident as f64) / 1024.0;
    section.target(Target::at_most("Added by stored sessions", added, 1.0, "MB"));
    section.target(Target::at_most("An open, quiet stream", each, 20.0, "KB"));
    server.stop().await?;
    Ok(section)
}

async fn open(server: &Server, sessions: &[String]) -> Result<Vec<Connection>> {
    let streams = sessions.iter().map(|session| async move {
        let mut connection = Connection::open(server.address).await?;
        connection.send(&get(&format!("/v1/sessions/{session}/events/stream"), "")).await?;
        connection.begin_stream().await?;
        anyhow::Ok(connection)
    });
    let mut all = Vec::with_capacity(sessions.len());
    for some in streams.collect::<Vec<_>>().into_iter().map(Box::pin).collect::<Vec<_>>().chunks_mut(50) {
        all.extend(try_join_all(some.iter_mut()).await?);
    }
    Ok(all)
}

/// What the server uses once it has finished what it was doing.
pub(crate) async fn settled(server: &Server) -> Result<Memory> {
    let mut last = server.memory()?;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = server.memory()?;
        if now.resident == last.resident {
            break;
        }
        last = now;
    }
    Ok(last)
}

fn row(section: &mut Section, name: &str, memory: Memory) {
    let megabytes = |kilobytes: u64| format!("{:.1} MB", kilobytes as f64 / 1024.0);
    section.row([name.to_owned(), megabytes(memory.resident), megabytes(memory.own)]);
}
