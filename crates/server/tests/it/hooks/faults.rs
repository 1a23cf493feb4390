//! Hooks that are broken: the turn goes on, and a hook that fails closed blocks.

use petasos_testkit::Reply;
use serde_json::{Value, json};

use super::world::{Scripts, free_session, result, runs, turn};

/// What becomes of a call that a hook is asked about, without and with `fail_closed`.
async fn asked(scripts: &Scripts, hook: Value) -> [(String, bool); 2] {
    let mut outcomes = Vec::new();
    for fail_closed in [false, true] {
        let mut hook = hook.clone();
        hook["fail_closed"] = fail_closed.into();
        let server = scripts.server(json!({ "pre_tool_call": [hook] })).await;
        let session = free_session(&server).await;
        server.model.script(runs("echo ran"));
        outcomes.push(result(&turn(&server, &session, "go").await));
    }
    outcomes.try_into().unwrap()
}

/// The call runs, unless the hook fails closed: then the model is told why.
async fn fails(scripts: &Scripts, hook: Value, why: &str) {
    let [open, closed] = asked(scripts, hook.clone()).await;
    assert!(open.0.contains("ran") && !open.1, "{hook}: {}", open.0);
    assert!(closed.1 && closed.0.contains("failed closed") && closed.0.contains(why), "{hook}: {}", closed.0);
}

/// The call runs, unless the hook fails closed: then the model is told that the hook is not available.
async fn is_not_available(scripts: &Scripts, command: &str) {
    let [open, closed] = asked(scripts, json!({ "command": command })).await;
    assert!(open.0.contains("ran") && !open.1, "{command}: {}", open.0);
    assert_eq!(closed, (format!("blocked: {command} is not available"), true));
}

#[tokio::test]
async fn a_command_that_cannot_be_started() {
    let scripts = Scripts::new();
    let plain = scripts.path().join("plain.sh");
    std::fs::write(&plain, "#!/bin/sh\n").unwrap();
    for command in ["/no/such/hook.sh", "no-such-program-anywhere", plain.to_str().unwrap(), "sh -c 'true"] {
        is_not_available(&scripts, command).await;
    }
}

#[tokio::test]
async fn health_follows_a_guard_that_comes_and_goes() {
    let scripts = Scripts::new();
    let command = scripts.script("guard.sh", "cat > /dev/null");
    let guard = json!({ "command": command, "fail_closed": true, "matcher": "terminal" });
    let server = scripts.server(json!({ "pre_tool_call": [guard] })).await;
    let session = free_session(&server).await;
    for is_there in [true, false, true] {
        if is_there {
            scripts.script("guard.sh", "cat > /dev/null");
        } else {
            std::fs::remove_file(&command).unwrap();
        }
        server.model.script(runs("echo ran"));
        let (text, is_error) = result(&turn(&server, &session, "go").await);
        assert_eq!(is_error, !is_there, "{text}");
        let health = server.client.get("/health").await.expect(200);
        assert_eq!(health["status"], if is_there { "ok" } else { "degraded" }, "{health}");
        assert_eq!(health.to_string().contains("guard.sh is not available"), !is_there, "{health}");
    }
}

#[tokio::test]
async fn a_command_that_fails_or_talks_nonsense() {
    let scripts = Scripts::new();
    let script = |name: &str, body: &str| json!({ "command": scripts.script(name, body) });
    fails(&scripts, script("fails.sh", "echo oops >&2; exit 1"), "it returned 1: oops").await;
    fails(&scripts, script("killed.sh", "kill -9 $$"), "signal 9").await;
    fails(&scripts, script("nonsense.sh", "cat > /dev/null; echo not json"), "no JSON: not json").await;
    let huge = "head -c 100000000 /dev/zero | tr '\\\\0' x";
    fails(&scripts, script("huge.sh", huge), "more than 1048576 bytes").await;
}

#[tokio::test]
async fn one_that_answers_too_late_is_stopped_with_all_it_started() {
    let scripts = Scripts::new();
    scripts.gate("never");
    let body = r#"(echo $$ > $HERE/child; read x < $HERE/never) & read x < $HERE/never; echo '{}'"#;
    let late = json!({ "command": scripts.script("late.sh", body), "timeout": 1 });
    fails(&scripts, late, "had not answered after 1 s").await;
    // Nobody reads the pipe any more: a writer that does not wait is turned away.
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
    let gate = scripts.path().join("never");
    petasos_testkit::within("the end of the hook's processes", async {
        while rustix::fs::open(&gate, flags, rustix::fs::Mode::empty()).is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_answer_counts_however_the_script_treats_its_streams() {
    let block = r#"echo '{"decision": "block", "reason": "no"}'"#;
    for (name, body) in [
        ("never reads", block.to_owned()),
        ("closes its input", format!("exec <&-; {block}")),
        ("returns 1", format!("cat > /dev/null; {block}; exit 1")),
        ("leaves a child that holds its output", format!("sh -c 'read x < $0/gate' $HERE & {block}")),
        ("complains a lot", format!("head -c 3000000 /dev/zero >&2; {block}")),
        ("is not UTF-8", r#"printf '{"decision": "block", "reason": "no\377"}'"#.to_owned()),
    ] {
        let scripts = Scripts::new();
        let gate = scripts.gate("gate");
        let hook = json!({ "command": scripts.script("hook.sh", &body) });
        let server = scripts.server(json!({ "pre_tool_call": [hook] })).await;
        let session = free_session(&server).await;
        // More than a pipe holds.
        server.model.script(runs(&format!("echo {}", "x".repeat(300_000))));
        let (text, is_error) = result(&turn(&server, &session, "go").await);
        assert!(is_error && text.starts_with("no"), "{name}: {text}");
        if name.contains("child") {
            scripts.open(&gate).await;
        }
    }
}

#[tokio::test]
async fn a_broken_hook_of_any_event_leaves_the_turn_alone() {
    let scripts = Scripts::new();
    let broken =
        |name: &str| json!([{ "command": scripts.script(name, "exit 1") }, { "command": "/nothing" }]);
    let events = petasos_hooks::HookEvent::ALL;
    let hooks: serde_json::Map<String, Value> =
        events.iter().map(|event| (event.name().to_owned(), broken(event.name()))).collect();
    let server = scripts.server(hooks.into()).await;
    let session = free_session(&server).await;
    for _ in 0..3 {
        server.model.script(runs("echo ran"));
        assert!(result(&turn(&server, &session, "go").await).0.contains("ran"));
    }
    server.model.script([Reply::text("Fine.")]);
    turn(&server, &session, "go").await;
}

#[tokio::test]
async fn a_decision_that_nobody_knows_blocks_if_a_guard_makes_it() {
    let scripts = Scripts::new();
    let answers =
        ["17", "[{}]", r#"{"decision": "BLOCK"}"#, r#"{"action": true}"#, r#"{"decision": "maybe"}"#];
    for (number, answer) in answers.iter().enumerate() {
        let body = format!("cat > /dev/null; echo '{answer}'");
        let hook = json!({ "command": scripts.script(&format!("answer-{number}.sh"), &body) });
        let [without, with] = asked(&scripts, hook).await;
        assert!(!without.1, "{answer}: {without:?}");
        assert!(with.1, "{answer}: {with:?}");
    }
}
