//! Commands that run on.

use petasos_testkit::Reply;
use serde_json::{Value, json};

use super::world::{Scripts, free_session, result, runs, turn};

/// Says who it is, and blocks what says so.
const GUARD: &str = r#"
while read -r line; do
  echo $$ >> $HERE/processes
  case "$line" in
    *forbidden*) echo '{"decision": "block", "reason": "forbidden"}' ;;
    *die*) exit 1 ;;
    *hang*) read x < $HERE/gate; echo '{}' ;;
    *chatty*) echo '{}'; echo '{}' ;;
    *) echo '{}' ;;
  esac
done"#;

fn processes(scripts: &Scripts) -> Vec<String> {
    let text = std::fs::read_to_string(scripts.path().join("processes")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn guard(scripts: &Scripts) -> Value {
    json!({ "command": scripts.script("guard.sh", GUARD), "persistent": true, "timeout": 1, "fail_closed": true })
}

#[tokio::test]
async fn one_process_answers_many_firings() {
    let scripts = Scripts::new();
    let server = scripts.server(json!({ "pre_tool_call": [guard(&scripts)] })).await;
    let session = free_session(&server).await;
    for (command, blocked) in [("echo a", false), ("echo forbidden", true), ("echo b", false)] {
        server.model.script(runs(command));
        assert_eq!(result(&turn(&server, &session, "go").await).1, blocked, "{command}");
    }
    let processes = processes(&scripts);
    assert_eq!(processes.len(), 3);
    assert!(processes.iter().all(|process| *process == processes[0]), "{processes:?}");
}

#[tokio::test]
async fn one_that_dies_or_hangs_or_chats_costs_its_firing_and_another_takes_over() {
    for (word, why) in [("die", "is not available"), ("hang", "had not answered"), ("chatty", "")] {
        let scripts = Scripts::new();
        scripts.gate("gate");
        let server = scripts.server(json!({ "pre_tool_call": [guard(&scripts)] })).await;
        let session = free_session(&server).await;
        server.model.script(runs(&format!("echo {word}")));
        let (text, is_error) = result(&turn(&server, &session, "go").await);
        assert_eq!(is_error, !why.is_empty(), "{text}");
        assert!(text.contains(why), "{text}");
        // A process that said too much is not asked again.
        for command in ["echo one", "echo two"] {
            server.model.script(runs(command));
            turn(&server, &session, "go").await;
        }
        server.model.script(runs("echo forbidden"));
        assert_eq!(result(&turn(&server, &session, "go").await), ("forbidden".to_owned(), true));
        let processes = processes(&scripts);
        assert_ne!(processes.first(), processes.last(), "{word}");
    }
}

#[tokio::test]
async fn one_that_ended_while_it_had_nothing_to_do_is_started_again() {
    let scripts = Scripts::new();
    // It answers one line and ends, so that each firing finds it gone, or just about to go.
    let body = "echo $$ >> $HERE/processes; read -r payload; echo '{}'";
    let hook = json!({ "command": scripts.script("once.sh", body), "persistent": true, "fail_closed": true });
    let server = scripts.server(json!({ "pre_tool_call": [hook] })).await;
    let session = free_session(&server).await;
    for _ in 0..5 {
        server.model.script(runs("echo fine"));
        let (text, is_error) = result(&turn(&server, &session, "go").await);
        assert!(!is_error, "{text}");
    }
    assert_eq!(processes(&scripts).len(), 5);
}

#[tokio::test]
async fn no_session_waits_for_what_it_does_for_another() {
    let scripts = Scripts::new();
    let gate = scripts.gate("gate");
    let hook = json!({ "command": scripts.script("guard.sh", GUARD), "persistent": true });
    let server = scripts.server(json!({ "pre_tool_call": [hook] })).await;
    let (slow, quick) = (free_session(&server).await, free_session(&server).await);
    server.model.when("slow", runs("echo hang"));
    let mut stream = server.client.stream(&slow, "").await;
    server.client.message(&slow, "slow").await.expect(200);
    scripts.file("processes").await;
    server.model.when("quick", runs("echo quick"));
    turn(&server, &quick, "quick").await;
    scripts.open(&gate).await;
    stream.until_idle().await;
}

#[tokio::test]
async fn one_that_keeps_ending_is_left_alone_for_a_while() {
    let scripts = Scripts::new();
    let body = "echo start >> $HERE/starts; exit 1";
    let hook = json!({ "command": scripts.script("dies.sh", body), "persistent": true });
    let server = scripts.server(json!({ "pre_api_request": [hook] })).await;
    let session = free_session(&server).await;
    for _ in 0..20 {
        server.model.script([Reply::text("Hello.")]);
        turn(&server, &session, "hello").await;
    }
    let starts = scripts.file("starts").await.lines().count();
    assert!(starts < 10, "{starts}");
}
