//! Cuts and changes the files of a database: the server refuses them and leaves them as they are, answers with errors
//! where they are hit, or serves what was acknowledged. It never serves anything else.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use petasos_net::Method;
use petasos_testkit::{Client, ModelServer};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tempfile::TempDir;

use crate::process::{Process, Start};
use crate::recording::{self, Logs};
use crate::{check, model};

const DATABASE: &str = "petasos.db";
const WAL: &str = "petasos.db-wal";

/// What is done to a file.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Cut { at: u64 },
    Flip { at: u64, bits: u8 },
}

/// How the server took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It did not start, said why, and changed nothing.
    Refused,
    /// Everything is there.
    Whole,
    /// The log ends earlier.
    TailMissing,
    /// It answers some requests with an error.
    Noticed,
    /// It shows something that was never acknowledged.
    Wrong,
}

/// A home of a server that is gone, and what it had acknowledged.
struct Recorded {
    name: &'static str,
    home: TempDir,
    logs: Logs,
    /// Everything else that it showed, by path.
    shown: BTreeMap<String, Value>,
}

pub(crate) async fn run(binary: &Path, times: u32, seed: u64) -> Result<()> {
    println!("damaged databases: {times} times, --seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let model = ModelServer::start().await;
    model.respond(model::reply);
    let recorded = record(binary, &model).await?;
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for number in 1..=times {
        let from = recorded.choose(&mut random).unwrap();
        let file = if random.random_bool(0.5) && length(from.home.path(), WAL) > 0 { WAL } else { DATABASE };
        let damage = Damage::draw(&mut random, number, length(from.home.path(), file));
        let (outcome, detail) = check(binary, &model, from, file, damage).await?;
        println!("{number}: {} {file} {damage}: {outcome}{detail}", from.name);
        // SQLite goes back to the last commit of its log that is whole; the database itself must never lose anything.
        let allowed = outcome != Outcome::Wrong && (outcome != Outcome::TailMissing || file == WAL);
        assert!(allowed, "{damage:?} of {file} went unnoticed{detail}");
        *counts.entry(outcome.to_string()).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    println!("{times} passed, 0 failed ({})", counts.join(", "));
    Ok(())
}

impl Damage {
    fn draw(random: &mut StdRng, number: u32, length: u64) -> Self {
        let at = random.random_range(0..length);
        match number {
            // A file that was cut to nothing is the most common damage, and the easiest to take for a new one.
            1 => Damage::Cut { at: 0 },
            _ if random.random_bool(0.6) => Damage::Cut { at },
            _ => Damage::Flip { at, bits: random.random_range(1..=255) },
        }
    }

    fn apply(self, path: &Path) -> Result<()> {
        let mut bytes = std::fs::read(path)?;
        match self {
            Damage::Cut { at } => bytes.truncate(usize::try_from(at)?),
            Damage::Flip { at, bits } => bytes[usize::try_from(at)?] ^= bits,
        }
        Ok(std::fs::write(path, bytes)?)
    }
}

/// Two homes: of a server that was stopped, whose log is all in the database, and of one that was killed later.
async fn record(binary: &Path, model: &ModelServer) -> Result<[Recorded; 2]> {
    let home = tempfile::tempdir()?;
    let server = Process::start(binary, home.path(), model).await?;
    let sessions = recording::sessions(&server.client(), 6).await;
    let logs = recording::record(&server.client(), &sessions).await;
    recording::keep(&server.client()).await;
    let shown = show(&server.client(), &logs).await;
    server.stop().await?;
    let stopped = Recorded { name: "stopped:", home: tempfile::tempdir()?, logs, shown };
    recording::copy(home.path(), stopped.home.path())?;

    let mut server = Process::start(binary, home.path(), model).await?;
    let mut sessions = sessions;
    sessions.extend(recording::sessions(&server.client(), 4).await);
    let logs = recording::record(&server.client(), &sessions).await;
    let shown = show(&server.client(), &logs).await;
    server.kill().await?;
    Ok([stopped, Recorded { name: "killed:", home, logs, shown }])
}

/// What there is to see beside the logs.
async fn show(client: &Client, logs: &Logs) -> BTreeMap<String, Value> {
    let mut shown = BTreeMap::new();
    let lists = ["/v1/agents?limit=100", "/v1/sessions?limit=100"].map(str::to_owned);
    let sessions = logs.keys().map(|session| format!("/v1/sessions/{session}"));
    for path in lists.into_iter().chain(sessions).chain(recording::kept(client).await) {
        let answer = client.get(&path).await.expect(200);
        shown.insert(path, answer);
    }
    shown
}

/// Damages a copy of a home and starts the server on it.
async fn check(
    binary: &Path,
    model: &ModelServer,
    from: &Recorded,
    file: &str,
    damage: Damage,
) -> Result<(Outcome, String)> {
    let home = tempfile::tempdir()?;
    recording::copy(from.home.path(), home.path())?;
    damage.apply(&home.path().join(file))?;
    let before = contents(home.path());
    let mut server = match Process::try_start(binary, home.path(), model).await? {
        Start::Refused(message) => {
            assert!(message.contains(DATABASE), "the message names no file: {message}");
            assert!(contents(home.path()) == before, "a refused database was changed");
            return Ok((Outcome::Refused, format!(": {message}")));
        }
        Start::Ready(server) => server,
        Start::Killed => panic!("something else killed the server"),
    };
    let mut worst = (Outcome::Whole, String::new());
    for (session, log) in &from.logs {
        let (outcome, detail) = compare(&server.client(), session, log).await;
        if outcome as u8 > worst.0 as u8 {
            worst = (outcome, format!(": {session}: {detail}"));
        }
    }
    for (path, then) in &from.shown {
        let answer = server.client().try_send(Method::Get, path, None).await.expect("the server is gone");
        let outcome = match answer.status {
            200 if answer.body == *then => Outcome::Whole,
            500 => Outcome::Noticed,
            _ if matches!(worst.0, Outcome::TailMissing) => Outcome::TailMissing,
            _ => Outcome::Wrong,
        };
        if outcome as u8 > worst.0 as u8 {
            worst = (outcome, format!(": {path}: {:.300}", answer.body.to_string()));
        }
    }
    if matches!(worst.0, Outcome::Whole | Outcome::TailMissing) {
        let sessions = recording::sessions(&server.client(), 1).await;
        check::takes_another_turn(&server.client(), &sessions[0]).await;
    }
    server.kill().await?;
    Ok(worst)
}

/// What a session shows now, against what it showed before.
async fn compare(client: &Client, session: &str, log: &[Value]) -> (Outcome, String) {
    let path = format!("/v1/sessions/{session}/events?limit=1000");
    let answer = client.try_send(Method::Get, &path, None).await.expect("the server is gone");
    let shown = match answer.status {
        200 => answer.body["data"].as_array().cloned().unwrap_or_default(),
        404 => return (Outcome::TailMissing, "it is not there".into()),
        500 => {
            answer.expect_error(500, "server_error");
            return (Outcome::Noticed, "its log cannot be read".into());
        }
        status => return (Outcome::Wrong, format!("{status}: {}", answer.body)),
    };
    let same = shown.iter().zip(log).take_while(|(now, then)| same(now, then)).count();
    // A turn that lost its end is taken up again, so new events can follow; what they replace is gone all the same.
    let last = log.iter().filter_map(|event| event["createdAt"].as_str()).max().unwrap_or_default();
    let wrong = shown[same..].iter().find(|event| event["createdAt"].as_str().is_none_or(|at| at <= last));
    match wrong {
        Some(event) => (Outcome::Wrong, format!("{:.300}", event.to_string())),
        None if same < log.len() => (Outcome::TailMissing, format!("{same} of {} events", log.len())),
        None => (Outcome::Whole, String::new()),
    }
}

fn same(now: &Value, then: &Value) -> bool {
    ["id", "sequence", "type", "payload", "createdAt"].iter().all(|field| now[field] == then[field])
}

fn length(home: &Path, file: &str) -> u64 {
    std::fs::metadata(home.join(file)).map_or(0, |file| file.len())
}

fn contents(home: &Path) -> [Option<Vec<u8>>; 2] {
    [DATABASE, WAL].map(|file| -> PathBuf { home.join(file) }).map(|path| std::fs::read(path).ok())
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Cut { at } => write!(f, "cut at byte {at}"),
            Damage::Flip { at, .. } => write!(f, "changed at byte {at}"),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Refused => "refused",
            Outcome::Whole => "all there",
            Outcome::TailMissing => "recovered to an earlier commit",
            Outcome::Noticed => "answered with errors",
            Outcome::Wrong => "WRONG",
        })
    }
}
