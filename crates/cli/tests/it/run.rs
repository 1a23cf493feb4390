//! `petasos run`.

use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::installation::{Finished, Installation};

const FAST: [&str; 3] = ["run", "--model", "demo/fast"];

fn run(installation: &Installation, arguments: &[&str]) -> Finished {
    installation.run(&[&FAST, arguments].concat())
}

#[test]
fn the_text_and_nothing_else_is_printed() {
    let installation = Installation::new();
    let said = installation.run(&["run", "Hello there"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.starts_with("I am the Petasos demo model"), "{said:?}");
    assert!(said.stdout.contains("You said: Hello there\n") && said.stdout.ends_with("what I can do.\n"));
    assert_eq!(said.stderr, "");
    assert!(!said.stdout.contains('\u{1b}'));
}

#[test]
fn one_agent_for_each_model_is_made_and_used_again() {
    let installation = Installation::new();
    for model in ["demo/fast", "demo/echo", "demo/fast", "demo/fast"] {
        assert!(installation.run(&["run", "--model", model, "todo a"]).success);
    }
    let agents = installation.json(&["agents", "list"]);
    let agents = agents["data"].as_array().unwrap();
    assert_eq!(agents.len(), 2, "{agents:?}");
    assert_eq!(agents[0]["metadata"]["madeBy"], "petasos-cli");
    assert_eq!(installation.json(&["sessions", "list"])["data"].as_array().unwrap().len(), 4);
}

#[test]
fn the_prompt_can_come_from_standard_input() {
    let installation = Installation::new();
    for arguments in [&FAST[..], &["run", "--model", "demo/fast", "-"]] {
        let said = installation.run_with_input(arguments, "From a pipe\n");
        assert!(said.success && said.stdout.contains("You said: From a pipe"), "{said:?}");
    }
    let long = "x".repeat(50_000);
    assert!(installation.run_with_input(&FAST, &long).success);
    installation.run_with_input(&FAST, " \n").assert_refused(&["the prompt is empty"]);
}

#[test]
fn the_exit_code_says_how_the_turn_ended() {
    let installation = Installation::new();
    let failed = installation.run(&["run", "--model", "nobody/x", "Hello"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(2), ""));
    assert!(failed.stderr.contains("there is no provider \"nobody\""), "{failed:?}");

    let waits = run(&installation, &["ask me Which? A | B"]);
    assert_eq!((waits.code, waits.stdout.as_str()), (Some(3), ""));
    assert!(waits.stderr.contains("Which? [A | B]"), "{waits:?}");
    let session = waits.stderr.split("chat --session ").nth(1).unwrap().trim();
    // It still waits, and saying more does not help.
    assert_eq!(installation.run(&["run", "--session", session, "Hello"]).code, Some(3));

    let refused = run(&installation, &["refuse"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(4), "I am scripted to decline this.\n"));
    assert!(refused.stderr.contains("the model refused"), "{refused:?}");
    let cut = run(&installation, &["ramble"]);
    assert!(cut.code == Some(4) && cut.stderr.contains("output limit"), "{cut:?}");

    installation.run(&["run", "--session", "session_none", "Hi"]).assert_refused(&["not_found"]);
    installation.run(&["run", "--agent", "none", "Hi"]).assert_refused(&["not_found"]);
    assert_eq!(installation.run(&["run", "--agent", "a", "--model", "demo/echo", "Hi"]).code, Some(1));
    assert_eq!(installation.run(&["run", "--no-such-flag"]).code, Some(1));
    let help = installation.run(&["run", "--help"]);
    assert!(help.success && help.stdout.contains("Exit codes:"), "{help:?}");
}

#[test]
fn json_is_one_object_at_the_end() {
    let installation = Installation::new();
    let done = installation.json(&[&FAST[..], &["count to 3"]].concat());
    assert_eq!((&done["text"], &done["stopReason"]), (&"1 2 3 ".into(), &json!({ "type": "end_turn" })));
    assert_eq!(done["pendingActions"], json!([]));
    assert_eq!(done["usage"]["modelCalls"], 1);

    let session = done["sessionId"].as_str().unwrap();
    let waits = installation.run(&["run", "--json", "--session", session, "ask me Which? A | B"]);
    assert_eq!(waits.code, Some(3));
    let waits: Value = serde_json::from_str(&waits.stdout).unwrap();
    assert_eq!((&waits["sessionId"], &waits["agentId"]), (&done["sessionId"], &done["agentId"]));
    assert_eq!(waits["pendingActions"][0]["question"], "Which?");
}

#[test]
fn what_stands_beside_the_text_is_for_those_who_ask() {
    let installation = Installation::new();
    let quiet = run(&installation, &["think hats\ntodo wash, dry"]);
    assert!(quiet.success && quiet.stderr.is_empty(), "{quiet:?}");
    let verbose = run(&installation, &["--verbose", "think hats\ntodo wash, dry"]);
    assert_eq!(verbose.stdout, quiet.stdout);
    for word in ["think about: hats", "→ todo", "← todo [ ] wash [ ] dry", "session session_"] {
        assert!(verbose.stderr.contains(word), "{word}: {verbose:?}");
    }
}

#[test]
fn the_configuration_names_the_model_and_files_name_agents() {
    let installation = Installation::new();
    installation.write("config.yaml", "default_model: demo/fast\n");
    installation.write("agents/helper.yaml", "name: Helper\nmodel: demo/fast\n");
    assert!(installation.run(&["run", "Hello"]).success);
    assert!(installation.run(&["run", "--agent", "helper", "Hello"]).success);
    let agents = installation.json(&["agents", "list"]);
    let models: Vec<_> = agents["data"].as_array().unwrap().iter().map(|agent| &agent["model"]).collect();
    assert_eq!(models, ["demo/fast", "demo/fast"]);
}

#[test]
fn it_uses_the_server_that_runs() {
    let installation = Installation::new();
    let server = installation.serve();
    let done = installation.json(&[&FAST[..], &["Hello"]].concat());
    let path = format!("/v1/sessions/{}", done["sessionId"].as_str().unwrap());
    let (_, session) = server.request("GET", &path, server.shown_key().unwrap(), "");
    assert_eq!(session["messages"][1]["content"], done["text"]);
    assert_eq!(session["userId"], "local");
}

#[test]
fn ctrl_c_interrupts_the_turn() {
    let installation = Installation::new();
    let mut running = installation.at_terminal(&["run", "count to 10000"]);
    running.wait_for("1 2 ");
    running.signal("INT");
    running.wait_for("Interrupted. Go on with: petasos chat --session ");
    running.wait_for("\n");
    let shown = running.shown();
    assert_eq!(running.finish(), Some(130), "{shown}");
    let (said, session) = shown.split_once("Interrupted. Go on with: petasos chat --session ").unwrap();
    let session = installation.json(&["sessions", "get", session.trim()]);
    assert_eq!(session["stopReason"], json!({ "type": "end_turn", "interrupted": true }));
    // What was said until then is kept, and was shown once.
    assert_eq!(session["messages"][1]["content"].as_str().unwrap().trim(), said.trim());
}

#[test]
fn runs_beside_each_other_take_turns() {
    let installation = Installation::new();
    let mut first = installation.at_terminal(&["run", "count to 10"]);
    first.wait_for("1 ");
    let second = run(&installation, &["Hello"]);
    assert!(second.success && second.stdout.contains("You said: Hello"), "{second:?}");
    first.wait_for("2 3 4 5 6 7 8 9 10 \r\n");
    assert_eq!(first.finish(), Some(0));
}

#[test]
fn a_prompt_and_standard_input_go_together_if_that_is_said() {
    let installation = Installation::new();
    let both = installation.run_with_input(&[&FAST[..], &["Review this:", "-"]].concat(), "a diff\n");
    assert!(both.success && both.stdout.contains("You said: Review this:\n\na diff"), "{both:?}");
    // Otherwise it is not touched: what stands there may belong to a loop in a shell, or never end.
    let mut open = installation.talk(&[&FAST[..], &["Hello"]].concat());
    open.wait_for("You said: Hello");
    assert!(open.finish().success);
    installation.run(&["run", "Review", "this"]).assert_refused(&["'this'"]);
}

#[test]
fn whoever_loses_the_server_learns_where_the_turn_is() {
    let installation = Installation::new();
    let mut server = installation.serve();
    let mut run = installation.at_terminal(&["run", "--server", &server.url, "count to 10000"]);
    run.wait_for("1 2 ");
    server.signal("KILL");
    server.wait();
    // Another server that has never heard of the session.
    let place = server.url.strip_prefix("http://").unwrap();
    let listener = std::net::TcpListener::bind(place).unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let body = r#"{"error":"not_found","message":"No session."}"#;
            let head = format!("HTTP/1.1 404 X\r\ncontent-length: {}\r\nconnection: close", body.len());
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(stream, "{head}\r\n\r\n{body}");
        }
    });
    run.wait_for("error: what became of the turn is not known here; petasos sessions get session_");
    run.wait_for("petasos run --session session_");
    run.wait_for("No session. (not_found)");
    assert_eq!(run.finish(), Some(1));
}

#[test]
fn a_server_may_be_named_without_a_scheme_and_gets_no_key_that_is_not_meant_for_it() {
    let installation = Installation::new();
    let server = installation.serve();
    let place = server.url.strip_prefix("http://").unwrap();
    let listed = installation.run(&["agents", "list", "--server", place]);
    assert!(listed.success, "{listed:?}");
    let elsewhere = installation.run(&["agents", "list", "--server", "agents.invalid:80"]);
    elsewhere.assert_refused(&["there is no key for the server at http://agents.invalid:80", "--key"]);
}

#[test]
fn nobody_waits_for_an_agent_that_stays_silent() {
    let installation = Installation::new();
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let session = server.create_session(&key, "demo/fast");
    let path = format!("/conversation/sessions/{session}");
    assert_eq!(server.request("PATCH", &path, &key, r#"{"mode":"manual"}"#).0, 200);
    let kept = installation.run(&["run", "--session", &session, "Hello"]);
    assert_eq!((kept.code, kept.stdout.as_str()), (Some(3), ""), "{kept:?}");
    assert!(kept.stderr.contains("A person answers in this session"), "{kept:?}");
    let mut chat = installation.talk(&["chat", "--session", &session]);
    chat.say("Anybody?");
    chat.wait_for("A person answers in this session");
    assert_eq!(chat.finish().code, Some(0));
}
