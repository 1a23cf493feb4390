//! Routines and their runs.

mod bad_input;
mod callbacks;
mod definitions;
mod endings;
mod hostile_schemas;
mod keys;
mod restarts;
mod schedules;
mod sessions;
mod unattended;

use std::time::Duration;

use petasos_engine::{DeliverySettings, Retries};
use petasos_net::{Egress, Guard};
use petasos_testkit::{Answer, Gate, Reply, Setup, TestServer, within};
use serde_json::{Map, Value, json};

/// Where runs report when nobody looks.
const CALLBACK: &str = "http://127.0.0.1:9/callback";

/// A reply that ends a run.
fn emits(output: Value) -> Reply {
    Reply::tool_call("emit_output", json!({ "output": output }))
}

fn approved() -> Reply {
    emits(json!({ "decision": "approved" }))
}

/// A routine that decides, with an agent of its own on the scripted model, and these fields besides.
fn decides(fields: Value) -> Value {
    let mut routine = json!({
        "title": "KYC decision",
        "description": "Decide whether the applicant passes.",
        "agent": { "model": "openai/scripted", "instructions": "Be fair." },
        "output_schema": { "type": "object", "required": ["decision"], "properties": {
            "decision": { "type": "string", "enum": ["approved", "rejected"] },
        } },
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        routine[name] = value.clone();
    }
    routine
}

/// Receivers on this machine are allowed, and tried again soon.
fn setup() -> Setup {
    let soon = |max_attempts| Retries {
        first_delay: Duration::from_millis(10),
        max_delay: Duration::from_millis(10),
        max_attempts,
    };
    let deliveries = DeliverySettings { callbacks: soon(1_000_000), ..DeliverySettings::default() };
    let guard = Guard::new(Egress { allow: vec!["127.0.0.1".parse().unwrap()], only_hosts: Vec::new() });
    Setup { guard, deliveries, ..Setup::default() }
}

/// A server with the routine `kyc`.
async fn start(fields: Value) -> TestServer {
    let server = TestServer::start_with(setup()).await;
    put(&server, fields).await;
    server
}

async fn put(server: &TestServer, fields: Value) {
    server.client.put("/routines/kyc", decides(fields)).await.expect(201);
}

/// Asks for a run of `kyc` with these fields besides the callback.
async fn trigger(server: &TestServer, fields: Value) -> Answer {
    let mut body = json!({ "callback_url": CALLBACK });
    for (name, value) in fields.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    server.client.post("/routines/kyc/trigger", body).await
}

/// Asks for a run of `kyc` and returns its id.
async fn triggered(server: &TestServer, fields: Value) -> String {
    id(&trigger(server, fields).await.expect(202))
}

fn id(run: &Value) -> String {
    run["run_id"].as_str().unwrap().to_owned()
}

async fn run(server: &TestServer, id: &str) -> Value {
    server.client.get(&format!("/runs/{id}")).await.expect(200)
}

/// The run, once it fits.
async fn run_until(server: &TestServer, id: &str, fits: impl Fn(&Value) -> bool) -> Value {
    within("the run", async {
        loop {
            let run = run(server, id).await;
            if fits(&run) {
                return run;
            }
        }
    })
    .await
}

/// The run, once it is settled.
async fn settled(server: &TestServer, id: &str) -> Value {
    run_until(server, id, |run| run["status"] == "succeeded" || run["status"] == "failed").await
}

/// The error of a run that failed.
async fn failure(server: &TestServer, id: &str) -> Value {
    let run = settled(server, id).await;
    assert_eq!((&run["status"], &run["output"]), (&json!("failed"), &Value::Null), "{run}");
    assert!(run["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{run}");
    run["error"].clone()
}

/// All runs of `kyc`, newest first.
async fn runs(server: &TestServer) -> Vec<Value> {
    let page = server.client.get("/routines/kyc/runs?limit=100").await.expect(200);
    assert_eq!(page["next_cursor"], Value::Null);
    page["items"].as_array().unwrap().clone()
}

/// Checks that an answer is this error, in the shape of this surface, and returns its details.
fn refused(answer: Answer, status: u16, code: &str) -> Map<String, Value> {
    let body = &answer.body;
    assert_eq!((answer.status, body["code"].as_str()), (status, Some(code)), "{body}");
    assert!(body["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
    assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
    body["details"].as_object().unwrap().clone()
}

/// A model that thinks until the gate opens, and then approves.
fn approved_at(gate: &Gate) -> Reply {
    Reply::empty().gate(gate).and_tool_call("emit_output", json!({ "output": { "decision": "approved" } }))
}
