//! Many sessions at once: how many tokens go through the server, against the same client reading the stub directly.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures_util::future::try_join_all;

use crate::api::sessions;
use crate::conversation::{Conversation, Direct, Heard};
use crate::machine;
use crate::process::Server;
use crate::report::{Section, Target, count, percent};
use crate::samples::Samples;
use crate::turn::{TOKENS, TURNS};
use crate::{Bench, Scale};

/// Tokens of a long answer, in which the relay weighs more than the turn around it.
const LONG: usize = 1000;
const CONCURRENCY: [usize; 3] = [1, 32, 256];

pub(crate) async fn measure(bench: &Bench) -> Result<Section> {
    let directory = bench.directory()?;
    let server = bench.serve(&directory.path().join("home")).await?;
    let mut section = Section::new("Many sessions at once");
    section.note(&format!(
        "Answers, back to back; the same client reads the stub directly and through the server, in \
         turns of a few seconds, medians. Client, stub, server and disk share the {} cores. A token is counted by its \
         text: a reader that is behind gets several in one frame. The last columns say how much processor time the \
         server took for a token, and how much the stub and the client took together when they talk directly.",
        machine::cores()
    ));
    section.header(&[
        "model sends",
        "tokens of an answer",
        "sessions",
        "direct tokens/s",
        "through the server tokens/s",
        "ratio",
        "turns/s",
        "tokens per frame",
        "server µs/token",
        "direct µs/token",
    ]);
    for (style, tokens) in [("single", LONG), ("single", TOKENS), ("burst", LONG)] {
        let agent = server.api().await?.agent(&format!("{style}-{tokens}")).await?;
        for concurrency in CONCURRENCY {
            let round = Round { bench, server: &server, style, tokens, agent: &agent, concurrency };
            let (direct, through) = round.run(bench.scale).await?;
            let ratio = through.tokens.p50() / direct.tokens.p50();
            section.row([
                if style == "single" { "token by token" } else { "all at once" }.to_owned(),
                count(tokens as f64),
                concurrency.to_string(),
                count(direct.tokens.p50()),
                count(through.tokens.p50()),
                percent(ratio),
                count(through.tokens.p50() / tokens as f64),
                format!("{:.1}", through.merged.p50()),
                format!("{:.1}", through.processor.p50()),
                format!("{:.1}", direct.processor.p50()),
            ]);
            let style_and_count = format!("{style}, answers of {tokens} tokens, {concurrency} sessions");
            section.rate(
                &format!("Tokens through the server, {style_and_count}"),
                through.tokens.p50(),
                "/s",
            );
            section.cost(
                &format!("Processor time of a token, {style_and_count}"),
                through.processor.p50(),
                "µs",
            );
            if (style, tokens, concurrency) == ("single", LONG, 256) {
                section.target(Target::at_least("Relay at 256 sessions", ratio * 100.0, 60.0, "%"));
            }
        }
    }
    server.stop().await?;
    Ok(section)
}

/// Tokens per second, tokens per frame and processor time per token, over several rounds.
#[derive(Default)]
struct Figures {
    tokens: Samples,
    merged: Samples,
    processor: Samples,
}

impl Figures {
    fn add(&mut self, tally: &Tally, processor: Duration) {
        let tokens = tally.tokens as f64;
        self.tokens.add(tokens / tally.time.as_secs_f64());
        self.merged.add(tokens / tally.frames as f64);
        self.processor.add(processor.as_secs_f64() * 1e6 / tokens);
    }
}

struct Round<'a> {
    bench: &'a Bench,
    server: &'a Server,
    style: &'a str,
    tokens: usize,
    agent: &'a str,
    concurrency: usize,
}

impl Round<'_> {
    async fn run(&self, scale: Scale) -> Result<(Figures, Figures)> {
        let time = scale.of(Duration::from_millis(2500), Duration::from_millis(400));
        let (mut direct, mut through) = (Figures::default(), Figures::default());
        let own = std::process::id();
        for _ in 0..scale.of(3, 1) {
            let before = self.bench.stub.processor_time()? + machine::processor_time(own)?;
            let tally = self.direct(time).await?;
            let after = self.bench.stub.processor_time()? + machine::processor_time(own)?;
            direct.add(&tally, after - before);
            // So many that no session gets more than its turns.
            let turns = 2500.0 * time.as_secs_f64() / TURNS as f64;
            let wanted = self.concurrency * 2 + turns as usize;
            let sessions = sessions(self.server.address, self.agent, wanted).await?;
            let before = self.server.processor_time()?;
            let tally = self.through(time, sessions).await?;
            through.add(&tally, self.server.processor_time()? - before);
        }
        Ok((direct, through))
    }

    async fn direct(&self, time: Duration) -> Result<Tally> {
        let (stub, style) = (self.bench.stub.address, self.style.to_owned());
        let opening = (0..self.concurrency).map(|_| Direct::open(stub, &style, self.tokens));
        let readers = try_join_all(opening).await?;
        let end = Instant::now() + time;
        let tasks = readers.into_iter().map(|mut reader| {
            tokio::spawn(async move {
                let mut tally = Tally::default();
                while Instant::now() < end {
                    tally.add(&reader.turn().await?);
                }
                anyhow::Ok(tally)
            })
        });
        gather(tasks.collect(), end - time).await
    }

    async fn through(&self, time: Duration, sessions: Vec<String>) -> Result<Tally> {
        let pool = Arc::new(Pool { server: self.server.address, sessions, next: AtomicUsize::new(0) });
        let opening = (0..self.concurrency)
            .map(|_| async { Conversation::open(pool.server, pool.next()?, self.tokens).await });
        let conversations = try_join_all(opening).await?;
        let end = Instant::now() + time;
        let tasks = conversations.into_iter().map(|conversation| {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move { talk(conversation, &pool, end).await })
        });
        gather(tasks.collect(), end - time).await
    }
}

/// Sessions that are still unused.
struct Pool {
    server: SocketAddr,
    sessions: Vec<String>,
    next: AtomicUsize,
}

impl Pool {
    fn next(&self) -> Result<&str> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        self.sessions.get(index).map(String::as_str).context("there are too few sessions")
    }
}

async fn talk(mut conversation: Conversation, pool: &Pool, end: Instant) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut turns = 0;
    while Instant::now() < end {
        if turns == TURNS {
            conversation = conversation.switch(pool.server, pool.next()?).await?;
            turns = 0;
        }
        tally.add(&conversation.turn().await?);
        turns += 1;
    }
    Ok(tally)
}

#[derive(Default)]
struct Tally {
    tokens: usize,
    frames: usize,
    time: Duration,
}

impl Tally {
    fn add(&mut self, heard: &Heard) {
        self.tokens += heard.tokens;
        self.frames += heard.frames;
    }
}

/// Adds up what all tasks heard, over the time until the last of them was done.
async fn gather(tasks: Vec<tokio::task::JoinHandle<Result<Tally>>>, started: Instant) -> Result<Tally> {
    let mut all = Tally::default();
    for task in tasks {
        let tally = task.await??;
        all.tokens += tally.tokens;
        all.frames += tally.frames;
    }
    all.time = started.elapsed();
    Ok(all)
}
