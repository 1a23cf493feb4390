//! Triggers runs while the server is killed, and checks that none is lost and none is doubled.
//!
//! Applications repeat a trigger with its idempotency key until it is acknowledged, as they should.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result};
use petasos_net::Method;
use petasos_testkit::model_server::RecordedRequest;
use petasos_testkit::receiver::Receiver;
use petasos_testkit::{Client, ModelServer, Reply, within};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::process::Process;

/// How many applications trigger at the same time.
const APPLICATIONS: usize = 16;

/// How much is triggered and killed.
#[derive(clap::Args)]
pub(crate) struct Triggers {
    /// How many runs are triggered.
    #[arg(long, default_value_t = 1000)]
    triggers: usize,
    /// How often the server is killed meanwhile.
    #[arg(long, default_value_t = 3)]
    kills: usize,
}

/// What the applications share.
struct Work {
    /// Numbers that are still to be triggered.
    open: Mutex<Vec<usize>>,
    /// The run that each number became.
    runs: Mutex<BTreeMap<usize, String>>,
    acknowledged: watch::Sender<usize>,
    /// The server as it is reached now.
    client: watch::Sender<Client>,
    callback_url: String,
}

pub(crate) async fn run(binary: &Path, options: &Triggers) -> Result<()> {
    println!("runs: {} triggers, {} kills", options.triggers, options.kills);
    let home = tempfile::tempdir()?;
    let receiver = Receiver::start().await;
    configure(home.path())?;
    let model = ModelServer::start().await;
    model.respond(reply);
    let started = Instant::now();
    let mut server = Process::start(binary, home.path(), &model).await?;
    server.client().put("/routines/echo", routine()).await.expect(201);
    let work = Arc::new(Work {
        open: Mutex::new((0..options.triggers).rev().collect()),
        runs: Mutex::default(),
        acknowledged: watch::channel(0).0,
        client: watch::channel(server.client()).0,
        callback_url: receiver.url.clone(),
    });
    let applications: Vec<_> =
        (0..APPLICATIONS).map(|_| tokio::spawn(trigger_all(Arc::clone(&work)))).collect();
    for kill in 1..=options.kills {
        let moment = options.triggers * kill / (options.kills + 1);
        within("triggers", work.acknowledged.subscribe().wait_for(|count| *count >= moment)).await?;
        server.kill().await?;
        server =
            Process::start(binary, home.path(), &model).await.context("the server does not start again")?;
        work.client.send_replace(server.client());
    }
    for application in applications {
        application.await.context("an application failed")?;
    }
    check(&server.client(), &work, &receiver, options.triggers).await;
    server.kill().await?;
    let seconds = started.elapsed().as_secs();
    println!(
        "{} runs over {} kills, each settled and reported, in {seconds} s",
        options.triggers, options.kills
    );
    Ok(())
}

/// Lets callbacks reach this machine, and come again soon.
fn configure(home: &Path) -> Result<()> {
    let retries = json!({ "first_retry_seconds": 0.05, "max_retry_seconds": 1, "max_attempts": 1000 });
    let config = json!({ "egress": { "allow": ["127.0.0.1"] }, "deliveries": { "callbacks": retries } });
    std::fs::write(home.join("config.yaml"), config.to_string()).context("cannot write the configuration")
}

fn routine() -> Value {
    let number = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    json!({
        "agent": { "model": "openai/scripted" }, "input_schema": number, "output_schema": number,
        "timeout_seconds": 600,
    })
}

/// The output is the input, after one answer that forgets about it.
fn reply(request: &RecordedRequest) -> Reply {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let input = messages.iter().filter(|message| message["role"] == "user").find_map(number);
    match input {
        Some(n) if messages.len() > 2 || n % 2 == 0 => {
            Reply::tool_call("emit_output", json!({ "output": { "n": n } }))
        }
        _ => Reply::text("Let me think."),
    }
}

fn number(message: &Value) -> Option<u64> {
    let content = &message["content"];
    let text = content.as_str().or_else(|| content[0]["text"].as_str())?;
    serde_json::from_str::<Value>(text).ok()?["n"].as_u64()
}

/// One application: triggers one number after another until there are none.
async fn trigger_all(work: Arc<Work>) {
    loop {
        let Some(n) = work.open.lock().unwrap().pop() else { return };
        let run_id = trigger(&work, n).await;
        let other = work.runs.lock().unwrap().insert(n, run_id);
        assert_eq!(other, None);
        work.acknowledged.send_modify(|count| *count += 1);
    }
}

/// Repeats a trigger until it is acknowledged, by whichever server.
async fn trigger(work: &Work, n: usize) -> String {
    let key = format!("key-{n}");
    let body =
        json!({ "input": { "n": n }, "callback_url": work.callback_url, "idempotency_key": key }).to_string();
    let mut clients = work.client.subscribe();
    loop {
        let client = clients.borrow_and_update().clone();
        let answer = client.try_send(Method::Post, "/routines/echo/trigger", Some(body.clone().into())).await;
        match answer {
            Some(answer) if answer.status == 202 || answer.status == 200 => {
                return answer.body["run_id"].as_str().unwrap().to_owned();
            }
            Some(answer) => panic!("{}: {}", answer.status, answer.body),
            // It may have been accepted all the same; the key says so to the next server.
            None => within("another server", clients.changed()).await.unwrap(),
        }
    }
}

async fn check(client: &Client, work: &Work, receiver: &Receiver, triggers: usize) {
    let runs = work.runs.lock().unwrap().clone();
    assert_eq!(runs.len(), triggers, "every trigger was acknowledged");
    for (n, run_id) in &runs {
        let run = settled(client, run_id).await;
        assert_eq!((&run["status"], &run["output"]), (&json!("succeeded"), &json!({ "n": n })), "{run}");
    }
    assert_eq!(listed(client).await, triggers, "no run was doubled");
    let all = receiver.wait_until(|received| ids(received).len() >= triggers).await;
    let mut bodies: HashMap<&str, &[u8]> = HashMap::new();
    for request in &all {
        let first = bodies.entry(request.header("webhook-id")).or_insert(&request.body);
        assert_eq!(*first, request.body, "a callback that came again has other bytes");
        let body = request.json();
        let n = usize::try_from(body["output"]["n"].as_u64().unwrap()).unwrap();
        assert_eq!(runs[&n], request.header("webhook-id"), "a callback is about another run");
    }
    assert_eq!(bodies.len(), triggers, "each run reported, and nothing else did");
    within("the sessions of all runs to go", async {
        while !client.get("/v1/sessions").await.expect(200)["data"].as_array().unwrap().is_empty() {}
    })
    .await;
}

fn ids(received: &[petasos_testkit::receiver::Received]) -> std::collections::HashSet<&str> {
    received.iter().map(|request| request.header("webhook-id")).collect()
}

async fn settled(client: &Client, run_id: &str) -> Value {
    within("a run to settle", async {
        loop {
            let run = client.get(&format!("/runs/{run_id}")).await.expect(200);
            if run["completed_at"].is_string() {
                return run;
            }
        }
    })
    .await
}

/// How many runs there are, over as many pages as it takes.
async fn listed(client: &Client) -> usize {
    let (mut count, mut path) = (0, "/routines/echo/runs?limit=100".to_owned());
    loop {
        let page = client.get(&path).await.expect(200);
        count += page["items"].as_array().unwrap().len();
        let Some(cursor) = page["next_cursor"].as_str() else { return count };
        path = format!("/routines/echo/runs?limit=100&cursor={cursor}");
    }
}
