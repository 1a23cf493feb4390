//! How fast many sessions write at the same time. Run it with
//! `cargo test --release -p petasos-store --test it -- --ignored --nocapture throughput`.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use petasos_store::suite::{append, session, user_message};
use petasos_store::{EventLog, SessionStore};

use crate::fresh;

const SESSIONS: usize = 200;
const EVENTS: u64 = 50;

#[ignore = "a measurement, not a check"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn throughput() {
    let (store, _directory) = fresh().await;
    let ids: Vec<String> = (0..SESSIONS).map(|number| format!("s{number}")).collect();
    join_all(ids.iter().map(|id| store.create_session(session(id, 0)))).await;
    let text = "x".repeat(600);
    let start = Instant::now();
    let tasks = ids.into_iter().map(|id| {
        let (store, text) = (store.clone(), text.clone());
        tokio::spawn(async move {
            let mut waits = Vec::new();
            for after in 0..EVENTS {
                let begin = Instant::now();
                store.append(append(&id, after, vec![user_message(&text)])).await.unwrap();
                waits.push(begin.elapsed());
            }
            waits
        })
    });
    let waits: Vec<Vec<Duration>> = join_all(tasks).await.into_iter().map(|waits| waits.unwrap()).collect();
    let seconds = start.elapsed().as_secs_f64();
    let mut waits = waits.concat();
    waits.sort();
    let (p50, p99) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
    println!("{:.0} events/s, p50 {p50:?}, p99 {p99:?}", waits.len() as f64 / seconds);
}
