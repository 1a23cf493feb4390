//! The clock is set forward and back while the server runs, with a turn open, a question waiting, a schedule due, deliveries
//! being tried again and streams open: everything goes on, in its order, and again when the clock is right.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use petasos_net::{Client as HttpClient, Method, Options};
use petasos_testkit::client::message;
use petasos_testkit::model_server::RecordedRequest;
use petasos_testkit::receiver::{Receiver, Reception};
use petasos_testkit::{Client, Gate, ModelServer, Reply, within};
use serde_json::{Value, json};

use crate::process::{KEY, Process};
use crate::shim::{Rule, Shim};
use crate::{check, drive, model, recording, webhooks};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// The jumps, in seconds.
const JUMPS: [i64; 3] = [HOUR, -DAY, 365 * DAY];
/// How long a question waits for its answer.
const PATIENCE: i64 = HOUR / 2;
/// The longest pause before a delivery is tried again. A clock that is set back by less can make the pause longer by as
/// much: nothing tells a time in the pause from one that the receiver asked for.
const LONGEST_PAUSE: i64 = 2 * HOUR;
/// The most runs that a schedule of every second may start. A minute of due times is made up for at each jump.
const MOST_RUNS: usize = 400;
/// What a turn is asked that ends when the suite says so.
const HELD: &str = "do held-1";
const RUNS: &str = "/routines/tick/runs?limit=100";

pub(crate) async fn run(binary: &Path) -> Result<()> {
    let began = Instant::now();
    try_join_all(JUMPS.map(|seconds| async move {
        let runs = jump(binary, seconds).await.with_context(|| format!("a jump by {seconds} s"))?;
        println!("clock: a jump by {seconds} s and back: passed, {runs} scheduled runs");
        anyhow::Ok(())
    }))
    .await?;
    println!("clock: {} passed, 0 failed, in {} s", JUMPS.len(), began.elapsed().as_secs());
    Ok(())
}

async fn jump(binary: &Path, seconds: i64) -> Result<usize> {
    let (home, shim, model) = (tempfile::tempdir()?, Shim::build().await?, ModelServer::start().await);
    let (gate, receiver) = (Gate::new(), configure(home.path()).await?);
    let held = gate.clone();
    model.respond(move |request| reply(request, &held));
    let mut server = Process::start_with(binary, home.path(), &model, &shim).await?;
    let client = server.client();
    let sessions = recording::sessions(&client, 4).await;
    let [turn, question, other, quiet] = [&sessions[0], &sessions[1], &sessions[2], &sessions[3]];
    client.put("/routines/tick", routine()).await.expect(201);
    let mut stream = client.stream(turn, "").await;
    client.event(turn, message(HELD)).await.expect(200);
    within("the model to be asked", gate.reached()).await;
    ask(&client, question).await;
    scheduled_after(&client, Timestamp::now().saturating_sub(SignedDuration::from_secs(5))?).await;
    receiver.wait_for(1).await;
    let keep_alives = Bytes::open(&server, quiet).await?;

    shim.set(&[Rule::clock(seconds)])?;
    let there = Timestamp::now().saturating_add(SignedDuration::from_secs(seconds))?;
    let written = drive::steer(&client, other, "What time is it?").await.expect(200);
    let at: Timestamp = written["data"][0]["createdAt"].as_str().unwrap().parse()?;
    assert!(at >= there && at < there + SignedDuration::from_secs(HOUR / 2), "the clock is not set: {at}");
    gate.open();
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    // Another question has the server look at the time.
    ask(&client, other).await;
    if seconds > PATIENCE {
        let mut stream = client.stream(question, "?after=0").await;
        stream.until(|frame| frame.event == "session.action_expired").await;
        stream.until(|frame| frame.stop() == Some("end_turn")).await;
    } else {
        answer(&client, question).await;
    }
    answer(&client, other).await;
    scheduled_after(&client, there).await;
    let mut all = sessions.clone();
    all.extend(recording::sessions(&client, 2).await);
    check::takes_another_turn(&client, &all[4]).await;
    receiver.answer("/hook", Reception::Status(200));
    webhooks::arrived(&client, &all, &receiver).await;
    if seconds.abs() > LONGEST_PAUSE {
        receiver.answer("/hook", Reception::Status(503));
        let received = receiver.received().len();
        check::takes_another_turn(&client, quiet).await;
        receiver.wait_for(received + 1).await;
    }

    shim.set(&[])?;
    let back = Timestamp::now();
    // The schedule goes on at once, and what a receiver did not take comes again.
    client.put("/routines/other", routine_at("0 0 1 1 *")).await.expect(201);
    scheduled_after(&client, back).await;
    for session in [turn, question, &all[4]] {
        check::takes_another_turn(&client, session).await;
    }
    ask(&client, other).await;
    answer(&client, other).await;
    receiver.answer("/hook", Reception::Status(200));
    webhooks::arrived(&client, &all, &receiver).await;
    keep_alives.until_kept_alive().await?;
    let runs = count_runs(&client).await;
    assert!(runs < MOST_RUNS, "{runs} runs");
    client.delete("/routines/tick").await.expect(204);
    check_list(&client, &all).await;
    let logs = logs(&client, &all).await;

    server.kill().await?;
    shim.set(&[Rule::clock(-seconds)])?;
    let server = Process::start_with(binary, home.path(), &model, &shim).await?;
    assert_eq!(logs, self::logs(&server.client(), &all).await, "the logs are as they were");
    check::takes_another_turn(&server.client(), other).await;
    server.stop().await?;
    Ok(runs)
}

/// Has every event told to a receiver that takes none yet, and questions wait for a while.
async fn configure(home: &Path) -> Result<Receiver> {
    let receiver = Receiver::start().await;
    receiver.answer("/hook", Reception::Status(503));
    let retries = json!({ "first_retry_seconds": 0.2, "max_retry_seconds": 1, "max_attempts": 1000 });
    let deliveries = json!({ "event_webhook_url": receiver.url, "events": retries, "callbacks": retries });
    let config = json!({ "deliveries": deliveries, "limits": { "action_seconds": PATIENCE } });
    std::fs::write(home.join("config.yaml"), config.to_string())?;
    Ok(receiver)
}

fn routine() -> Value {
    routine_at("* * * * * *")
}

fn routine_at(cron: &str) -> Value {
    let schedule = json!({ "cron": cron, "input": { "n": 7 } });
    json!({ "agent": { "model": "openai/scripted" }, "schedule": schedule, "timeout_seconds": 600 })
}

fn reply(request: &RecordedRequest, held: &Gate) -> Reply {
    match request.last_user_text().as_str() {
        HELD => Reply::text("Done.").gate(held),
        text if text.starts_with('{') => Reply::tool_call("emit_output", json!({ "output": {} })),
        _ => model::reply(request),
    }
}

/// Lets a session wait for an answer.
async fn ask(client: &Client, session: &str) {
    let mut stream = client.stream(session, "").await;
    client.event(session, message("do clarify-1")).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("requires_action"));
}

/// Gives the answer that a session waits for.
async fn answer(client: &Client, session: &str) {
    let shown = client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    let waits = &shown["pendingActions"][0]["id"];
    let mut stream = client.stream(session, "").await;
    let answer = json!({ "type": "user.clarify_result", "request_id": waits, "answer": "a" });
    client.event(session, answer).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
}

/// Waits for a run of a due time in the half hour after this time.
async fn scheduled_after(client: &Client, from: Timestamp) {
    let until = from.saturating_add(SignedDuration::from_secs(HOUR / 2)).unwrap();
    let is_it = |run: &Value| {
        let due = run["metadata"]["scheduled_for"].as_str().unwrap().parse::<Timestamp>().unwrap();
        due >= from && due < until
    };
    within("a scheduled run", async {
        while !client.get(RUNS).await.expect(200)["items"].as_array().unwrap().iter().any(is_it) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn count_runs(client: &Client) -> usize {
    let (mut count, mut path) = (0, RUNS.to_owned());
    loop {
        let page = client.get(&path).await.expect(200);
        count += page["items"].as_array().unwrap().len();
        let Some(cursor) = page["next_cursor"].as_str() else { return count };
        path = format!("{RUNS}&cursor={cursor}");
    }
}

/// The list of sessions is in order, and pages of it are the same.
async fn check_list(client: &Client, sessions: &[String]) {
    let (mut paged, mut path) = (Vec::new(), "/v1/sessions?limit=2".to_owned());
    loop {
        let page = client.get(&path).await.expect(200);
        paged.extend(page["data"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/v1/sessions?limit=2&cursor={cursor}");
    }
    // Sessions of runs come and go.
    let id = |session: &Value| session["id"].as_str().unwrap().to_owned();
    paged.retain(|session| sessions.contains(&id(session)));
    let times: Vec<&str> = paged.iter().map(|session| session["createdAt"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    let mut ids: Vec<String> = paged.iter().map(id).collect();
    let mut expected = sessions.to_vec();
    ids.sort_unstable();
    expected.sort_unstable();
    assert_eq!(ids, expected, "each session is listed once");
}

/// All logs, whose sequences go up whatever the clock said.
async fn logs(client: &Client, sessions: &[String]) -> Vec<Vec<Value>> {
    let mut logs = Vec::new();
    for session in sessions {
        let events = client.events(session).await;
        let sequences: Vec<_> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
        assert!(sequences.is_sorted_by(|a, b| a < b), "{session}: sequences go up");
        for (at, sequence) in sequences.iter().enumerate() {
            let path = format!("/v1/sessions/{session}/events?limit=1000&after={sequence}");
            let rest = client.get(&path).await.expect(200);
            assert_eq!(rest["data"].as_array().unwrap()[..], events[at + 1..], "{session} after {sequence}");
        }
        logs.push(events);
    }
    logs
}

/// A stream as the bytes that come.
struct Bytes(petasos_net::Response);

impl Bytes {
    async fn open(server: &Process, session: &str) -> Result<Self> {
        let url = format!("http://{}/v1/sessions/{session}/events/stream", server.address());
        let key = format!("Bearer {KEY}");
        let http = HttpClient::new(&Options::default());
        Ok(Bytes(http.request(Method::Get, &url, &[("authorization", key.as_str())], None).await?))
    }

    /// Waits for a comment, which says that the server is still there.
    async fn until_kept_alive(mut self) -> Result<()> {
        loop {
            let chunk = within("a sign of life", self.0.chunk()).await?.context("the stream ended")?;
            if chunk.starts_with(b":") || chunk.windows(3).any(|bytes| bytes == b"\n\n:") {
                return Ok(());
            }
        }
    }
}
