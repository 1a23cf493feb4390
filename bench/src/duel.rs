//! Two servers that take turns with every single request.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use tempfile::TempDir;

use crate::Bench;
use crate::api::{get, post};
use crate::conversation::Conversation;
use crate::hooks;
use crate::http::Connection;
use crate::process::Server;
use crate::report::{Figure, Section};
use crate::samples::Samples;
use crate::turn::{TOKENS, TURNS};

/// The figure that has a bound of its own.
pub(crate) const COMMAND: &str = "A command adds, p50";

/// Tokens of an answer where the answer does not matter.
const FEW: usize = 20;
/// How models send their tokens.
const STYLES: [(&str, &str); 3] =
    [("single", "token by token"), ("paced", "token by token, with a pace"), ("burst", "all at once")];

/// Both servers, the older one first.
pub(crate) struct Duel {
    sides: [Side; 2],
    _directory: TempDir,
}

/// One server, with what its requests need.
struct Side {
    server: Server,
    hooked: Server,
    agents: Agents,
    hooked_agent: String,
}

/// The agents of a server.
struct Agents {
    of_styles: [String; 3],
    trusted: String,
    command: String,
}

impl Duel {
    pub(crate) async fn open(bench: &Bench, older: &Path) -> Result<Self> {
        let directory = bench.directory()?;
        let hook = hooks::shell_hook(directory.path())?;
        let older = Side::open(bench, older, &directory.path().join("older"), &hook).await?;
        let newer = Side::open(bench, &bench.binary, &directory.path().join("newer"), &hook).await?;
        Ok(Duel { sides: [older, newer], _directory: directory })
    }

    /// Measures everything once, and returns the figures of both.
    pub(crate) async fn round(&mut self, bench: &Bench) -> Result<[Vec<Figure>; 2]> {
        let mut found = [Section::new(""), Section::new("")];
        for (index, (_, style)) in STYLES.iter().enumerate() {
            let turns = self
                .turns(bench.scale.of(200, 10), |side| (&side.server, &side.agents.of_styles[index]))
                .await?;
            for (times, section) in turns.iter().zip(&mut found) {
                section.cost(&format!("A turn, {style}, p50"), times.whole.p50(), "ms");
                section.cost(&format!("Its first token, {style}, p50"), times.first.p50(), "ms");
                section.cost(&format!("Its processor time, {style}, p50"), times.processor.p50(), "ms");
            }
        }
        let count = bench.scale.of(100, 5);
        let plain = self.turns(count, |side| (&side.server, &side.agents.trusted)).await?;
        let command = self.turns(count, |side| (&side.server, &side.agents.command)).await?;
        let hooked = self.turns(count, |side| (&side.hooked, &side.hooked_agent)).await?;
        for (index, section) in found.iter_mut().enumerate() {
            section.cost(COMMAND, command[index].whole.p50() - plain[index].whole.p50(), "ms");
            section.cost("A turn with a shell hook, p50", hooked[index].whole.p50(), "ms");
        }
        for (name, times) in self.requests(bench.scale.of(200, 10)).await? {
            for (samples, section) in times.iter().zip(&mut found) {
                section.cost(name, samples.p50(), "ms");
            }
        }
        Ok(found.map(|section| section.figures))
    }

    /// Runs turns of an agent of each, one of one and then one of the other.
    async fn turns(&self, count: usize, of: impl Fn(&Side) -> (&Server, &String)) -> Result<[Times; 2]> {
        let mut times = [Times::default(), Times::default()];
        let mut open: [Option<Conversation>; 2] = [None, None];
        for index in 0..count + TURNS {
            for place in order(index) {
                let (server, agent) = of(&self.sides[place]);
                if index % TURNS == 0 {
                    let session = server.api().await?.session(agent).await?;
                    let is_styled = self.sides[place].agents.of_styles.contains(agent);
                    let tokens = if is_styled { TOKENS } else { FEW };
                    open[place] = Some(Conversation::open(server.address, &session, tokens).await?);
                }
                let Some(conversation) = &mut open[place] else { continue };
                let before = server.processor_time()?;
                let heard = conversation.turn().await?;
                let processor = server.processor_time()? - before;
                // The first turns warm everything up.
                if index >= TURNS {
                    times[place].whole.time(heard.whole);
                    times[place].first.time(heard.first);
                    times[place].processor.time(processor);
                }
            }
        }
        Ok(times)
    }

    /// Makes requests that read and write, to one and then to the other.
    async fn requests(&self, count: usize) -> Result<Vec<(&'static str, [Samples; 2])>> {
        let names = ["An append, p50", "A page of 100 events, p50", "The newest sessions, p50"];
        let mut all: Vec<_> =
            names.into_iter().map(|name| (name, [Samples::default(), Samples::default()])).collect();
        let mut connections = Vec::new();
        for side in &self.sides {
            let session = side.server.api().await?.session(&side.agents.of_styles[0]).await?;
            connections.push((Connection::open(side.server.address).await?, session));
        }
        for index in 0..count {
            for place in order(index) {
                let (connection, session) = &mut connections[place];
                let events = format!("/v1/sessions/{session}/events");
                let steer = json!({ "type": "user.steer", "message": "Shorter, please." });
                let requests = [
                    post(&events, &steer),
                    get(&format!("{events}?order=desc&limit=100"), ""),
                    get("/v1/sessions", ""),
                ];
                for (request, (_, samples)) in requests.iter().zip(&mut all) {
                    samples[place].time(timed(connection, request).await?);
                }
            }
        }
        Ok(all)
    }

    pub(crate) async fn close(self) -> Result<()> {
        for side in self.sides {
            side.server.stop().await?;
            side.hooked.stop().await?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Times {
    whole: Samples,
    first: Samples,
    processor: Samples,
}

impl Side {
    async fn open(bench: &Bench, binary: &Path, home: &Path, hook: &str) -> Result<Self> {
        let server = Server::start(binary, &home.join("plain"), bench.stub.address).await?;
        let mut api = server.api().await?;
        let mut of_styles = [const { String::new() }; 3];
        for (agent, (style, _)) in of_styles.iter_mut().zip(STYLES) {
            *agent = api.agent(&format!("{style}-{TOKENS}")).await?;
        }
        let trusted = api.trusted_agent(&format!("burst-{FEW}")).await?;
        let command = api.trusted_agent(&format!("command-{FEW}")).await?;
        let with_hook = home.join("hooked");
        std::fs::create_dir_all(&with_hook)?;
        std::fs::write(with_hook.join("config.yaml"), hook)?;
        let hooked = Server::start(binary, &with_hook, bench.stub.address).await?;
        let hooked_agent = hooked.api().await?.agent(&format!("burst-{FEW}")).await?;
        Ok(Side { server, hooked, agents: Agents { of_styles, trusted, command }, hooked_agent })
    }
}

/// Who goes first: each in every other turn.
fn order(index: usize) -> [usize; 2] {
    if index.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

async fn timed(connection: &mut Connection, request: &[u8]) -> Result<Duration> {
    let started = Instant::now();
    let (status, answer) = connection.exchange(request).await?;
    let time = started.elapsed();
    ensure!(status == 200, "a request was answered with {status}: {}", String::from_utf8_lossy(&answer));
    Ok(time)
}
