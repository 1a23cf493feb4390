//! `petasos routines` and `petasos runs`, and routines as files.

use serde_json::{Value, json};

use crate::deliveries::receiver;
use crate::installation::{Installation, PATIENCE, Server};

const KYC: &str = "title: KYC decision
description: Decide whether the applicant passes.
agent: { model: demo/fast }
input_schema: { type: object, required: [applicant] }
output_schema:
  type: object
  required: [decision]
  properties: { decision: { enum: [approved, rejected] } }
";

/// An installation whose callbacks may go to this machine, with the routine `kyc`.
fn installation() -> Installation {
    let installation = Installation::new();
    installation.write("config.yaml", json!({ "egress": { "allow": ["127.0.0.1"] } }).to_string());
    installation.write("routines/kyc.yaml", KYC);
    installation
}

fn trigger(installation: &Installation, url: &str, more: &[&str]) -> Value {
    let given = ["routines", "trigger", "kyc", "--input", r#"{"applicant":"Ada"}"#, "--callback-url", url];
    installation.json(&[&given, more].concat())
}

/// Opens a conversation in which a person answers, so that runs wait.
fn manual_session(server: &Server) -> String {
    let key = server.shown_key().unwrap();
    let (status, session) = server.request("POST", "/conversation/sessions", key, "{}");
    assert_eq!(status, 201, "{session}");
    let path = format!("/conversation/sessions/{}", session["id"].as_str().unwrap());
    assert_eq!(server.request("PATCH", &path, key, r#"{"mode":"manual"}"#).0, 200);
    session["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_routine_is_listed_shown_and_run_without_a_key_of_any_provider() {
    let installation = installation();
    let (url, received) = receiver(&[]);
    let server = installation.serve();
    let listed = installation.json(&["routines", "list"]);
    assert_eq!((&listed["items"][0]["id"], &listed["next_cursor"]), (&json!("kyc"), &Value::Null));
    let table = installation.run(&["routines", "list"]).stdout;
    assert!(table.contains("TITLE") && table.contains("kyc") && table.contains("KYC decision"), "{table}");
    assert_eq!(installation.json(&["routines", "show", "kyc"]), listed["items"][0]);
    let shown = installation.run(&["routines", "show", "kyc"]).stdout;
    assert!(shown.contains("Decide whether the applicant passes.") && shown.contains("60"), "{shown}");

    let accepted = trigger(&installation, &url, &["--idempotency-key", "one"]);
    let run_id = accepted["run_id"].as_str().unwrap();
    let callback = received.recv_timeout(PATIENCE).unwrap();
    assert!(callback.contains(&format!("webhook-id: {run_id}\r\n")), "{callback}");
    let payload: Value = serde_json::from_str(callback.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(
        (&payload["status"], &payload["output"]),
        (&json!("succeeded"), &json!({ "decision": "approved" }))
    );
    assert_eq!(trigger(&installation, &url, &["--idempotency-key", "one"])["run_id"], run_id);

    let run = installation.json(&["runs", "show", run_id]);
    assert_eq!((&run["run_id"], &run["output"]), (&payload["run_id"], &payload["output"]));
    let shown = installation.run(&["runs", "show", run_id]).stdout;
    assert!(shown.contains("succeeded") && shown.contains(r#"{"decision":"approved"}"#), "{shown}");
    let runs = installation.json(&["routines", "runs", "kyc"]);
    assert_eq!((runs["items"].as_array().unwrap().len(), &runs["items"][0]["run_id"]), (1, &run["run_id"]));
    let table = installation.run(&["routines", "runs", "kyc"]).stdout;
    assert!(table.contains("CALLBACK") && table.contains(run_id) && table.contains("succeeded"), "{table}");
    installation.run(&["runs", "cancel", run_id]).assert_refused(&[run_id, "conflict"]);
    server.stop();
}

#[test]
fn a_run_that_waits_is_cancelled() {
    let installation = installation();
    let (url, received) = receiver(&[]);
    let server = installation.serve();
    let session = manual_session(&server);
    let accepted = trigger(&installation, &url, &["--session", &session]);
    let run_id = accepted["run_id"].as_str().unwrap();
    assert_eq!((&accepted["status"], &accepted["session_id"]), (&json!("accepted"), &json!(session)));
    let cancelled = installation.run(&["runs", "cancel", run_id]);
    assert!(cancelled.success && cancelled.stdout.contains("cancelled"), "{cancelled:?}");
    assert!(received.recv_timeout(PATIENCE).unwrap().contains("engine_error"));
    assert_eq!(installation.json(&["runs", "show", run_id])["status"], "failed");
    server.stop();
}

#[test]
fn what_is_wrong_is_said_in_plain_words() {
    let installation = installation();
    let server = installation.serve();
    let given = ["routines", "trigger", "kyc", "--callback-url", "http://127.0.0.1:9/done"];
    installation.run(&given).assert_refused(&["input_validation_failed", "applicant"]);
    let denied = ["routines", "trigger", "kyc", "--input", "{}", "--callback-url", "http://10.0.0.1/done"];
    installation.run(&denied).assert_refused(&["input_validation_failed"]);
    installation.run(&[&given[..], &["--input", "{"]].concat()).assert_refused(&["--input is not JSON"]);
    installation.run(&["routines", "show", "none"]).assert_refused(&["none", "not_found"]);
    installation.run(&["runs", "show", "run_none"]).assert_refused(&["run_none", "not_found"]);
    installation.run(&["routines", "delete", "none"]).assert_refused(&["none", "not_found"]);
    server.stop();
}

#[test]
fn a_routine_may_name_the_agent_that_the_first_start_makes() {
    let installation = Installation::new();
    installation.write("routines/first.yaml", "agent: interactiveAgent\n");
    let server = installation.serve();
    assert_eq!(installation.json(&["routines", "show", "first"])["agent"], "interactiveAgent");
    let log = server.stop();
    assert!(!log.contains("is not used"), "{log}");
}

#[test]
fn routines_follow_their_files_and_stay_when_those_go() {
    let installation = installation();
    let broken = installation
        .write("routines/broken.yaml", "agent: { model: demo/fast }\noutput_schema: { type: objekt }\n");
    let server = installation.serve();
    server.wait_for_log(&format!("{}:2: output_schema", broken.display()));
    let ids = |installation: &Installation| {
        let listed = installation.json(&["routines", "list"]);
        let ids = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|routine| routine["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids(&installation), ["kyc"], "the others load");
    installation.write("routines/broken.yaml", KYC.replace("KYC decision", "Mended"));
    server.wait_for_log("routine=broken");
    assert_eq!(ids(&installation), ["broken", "kyc"]);

    // A file that goes leaves its routine, over a restart too; removing a routine is a command.
    std::fs::remove_file(installation.file("routines/kyc.yaml")).unwrap();
    installation.write("routines/third.yaml", KYC);
    server.wait_for_log("routine=third");
    assert_eq!(ids(&installation), ["broken", "kyc", "third"]);
    server.stop();
    let server = installation.serve();
    assert_eq!(installation.json(&["routines", "show", "kyc"])["title"], "KYC decision");
    assert_eq!(installation.json(&["routines", "delete", "kyc"]), json!({ "id": "kyc", "deleted": true }));
    server.stop();
    let server = installation.serve();
    assert_eq!(ids(&installation), ["broken", "third"]);
    let deleted = installation.run(&["routines", "delete", "third"]);
    assert_eq!(deleted.stdout, "Deleted third\n");
    server.stop();
    // Whose file is there, comes back.
    let _server = installation.serve();
    assert_eq!(ids(&installation), ["broken", "third"]);
}
