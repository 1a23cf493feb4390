//! `petasos hooks`, and what is wrong in the block that it is about.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::sys::stat::Mode;
use serde_json::{Value, json};

use crate::consent::one_turn;
use crate::installation::Installation;

/// Makes a script in `agent-hooks/` of the home and returns its path.
pub(crate) fn script(installation: &Installation, name: &str, body: &str) -> String {
    let path = installation.write(&format!("agent-hooks/{name}"), format!("#!/bin/sh\n{body}\n"));
    allow_to_run(&path);
    path.display().to_string()
}

fn allow_to_run(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_is_wrong_in_the_block_is_left_out_with_a_word() {
    let installation = Installation::new();
    let good = script(&installation, "good.sh", "cat > /dev/null");
    let config = format!(
        "hooks_auto_accept: true
hooks:
  pre_tool_cal:
    - command: x
  post_tool_call: {{}}
  on_session_end:
    - just a text
    - matcher: terminal
    - command: {good}
      matcher: terminal
      timeout: 900
      fail_closed: true
      async: perhaps
    -
"
    );
    installation.write("config.yaml", config);
    let warnings = [
        "there is no event pre_tool_cal; its hooks are left out. Did you mean pre_tool_call?",
        "hooks.post_tool_call must be a list",
        "hooks.on_session_end[0] must be a mapping",
        "hooks.on_session_end[1] has no command",
        "hooks.on_session_end[2]: a matcher works for pre_tool_call and post_tool_call only",
        "hooks.on_session_end[2]: timeout is 900; 300 s is the most",
        "hooks.on_session_end[2]: fail_closed works for pre_tool_call only",
        "hooks.on_session_end[2]: async must be true or false",
    ];
    let listed = installation.run(&["hooks", "list"]);
    for warning in warnings {
        assert!(listed.stderr.contains(warning), "{warning}: {}", listed.stderr);
    }
    assert!(listed.stdout.contains("timeout=300s"), "{}", listed.stdout);
    assert_eq!(listed.stdout.lines().filter(|line| line.contains("  - ")).count(), 1);
    let server = installation.serve();
    server.wait_for_log("Did you mean pre_tool_call?");
    server.stop();
    installation.write("config.yaml", "hooks: [1, 2]\n");
    assert!(installation.run(&["hooks", "list"]).stderr.contains("hooks must be a mapping"));
}

#[test]
fn the_list_shows_what_is_configured_and_what_may_run() {
    let installation = Installation::new();
    let block = script(&installation, "block.sh", "cat > /dev/null");
    let notes = script(&installation, "notes.sh", "while read -r payload; do echo '{}'; done");
    let config = format!(
        "hooks:
  pre_tool_call:
    - matcher: terminal|patch
      command: {block}
      timeout: 5
      fail_closed: true
    - url: https://policy.example.com/hook
  on_session_end:
    - command: {notes}
      persistent: true
"
    );
    installation.write("config.yaml", config);
    let text = installation.run(&["hooks", "list"]).stdout;
    let line = format!("  - {block} [matcher='terminal|patch'] (timeout=5s, fail_closed, not allowed)");
    assert!(text.contains(&line), "{text}");
    assert!(text.contains("https://policy.example.com/hook (timeout=60s, UNSIGNED)"), "{text}");
    let listed = installation.json(&["hooks", "list"]);
    let hooks = listed["hooks"].as_array().unwrap();
    assert_eq!(hooks.len(), 3);
    assert_eq!(
        (&hooks[0]["matcher"], &hooks[0]["timeout"], &hooks[0]["allowed"]),
        (&json!("terminal|patch"), &json!(5), &json!(false))
    );
    assert_eq!((&hooks[1]["kind"], &hooks[2]["kind"]), (&json!("url"), &json!("persistent")));

    assert!(installation.run(&["--accept-hooks", "run", "--model", "demo/fast", "hello"]).success);
    let listed = installation.json(&["hooks", "list"]);
    assert_eq!(listed["hooks"][0]["allowed"], true);
    assert!(installation.run(&["hooks", "list"]).stdout.contains("fail_closed, allowed)"));
}

#[test]
fn a_consent_to_all_is_shown_where_it_counts() {
    let installation = Installation::new();
    let command = script(&installation, "note.sh", "cat > /dev/null");
    let block = format!("hooks:\n  pre_tool_call:\n    - command: {command}\n      matcher: 'term[inal'\n");
    installation.write("config.yaml", &block);
    let flagged = installation.run(&["--accept-hooks", "hooks", "list"]);
    assert!(flagged.stdout.contains("allowed by --accept-hooks)"), "{flagged:?}");
    assert!(flagged.stderr.contains("the matcher term[inal is no regular expression"), "{flagged:?}");
    assert!(installation.run(&["hooks", "list"]).stdout.contains("not allowed)"), "a list agrees to nothing");

    let block = block.replace("term[inal", "terminal");
    installation.write("config.yaml", format!("{block}hooks_auto_accept: true\n"));
    assert!(installation.run(&["hooks", "list"]).stdout.contains("allowed by hooks_auto_accept)"));
    let listed = installation.json(&["hooks", "list"]);
    let hook = &listed["hooks"][0];
    assert_eq!((&hook["allowed"], &hook["allowedBy"]), (&json!(true), &json!("hooks_auto_accept")));
    let well = installation.run(&["hooks", "doctor"]);
    assert!(well.success && well.stdout.contains("given to all by hooks_auto_accept"), "{well:?}");
}

#[test]
fn a_test_fires_what_matches_and_shows_what_came_back() {
    let installation = Installation::new();
    let record = installation.file("payload").display().to_string();
    let block = script(
        &installation,
        "block.sh",
        &format!(
            r#"tee {record} | grep -q 'rm -rf' && echo '{{"decision": "block", "reason": "no"}}'; echo note >&2"#
        ),
    );
    let context = script(&installation, "context.sh", r#"echo '{"context": "It rains."}'"#);
    let broken = script(&installation, "broken.sh", "echo nonsense; exit 3");
    let config = format!(
        "hooks:
  pre_tool_call:
    - matcher: terminal
      command: {block}
  pre_llm_call:
    - command: {context}
  on_session_end:
    - command: {broken}
"
    );
    installation.write("config.yaml", config);
    // It is tried out although nobody has agreed to it yet.
    let allowed = installation.json(&["hooks", "test", "pre_tool_call"]);
    let result = &allowed["results"][0];
    assert_eq!(
        (&result["exitCode"], &result["parsed"], &result["stderr"]),
        (&json!(0), &Value::Null, &json!("note\n"))
    );
    let payload: Value = serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
    assert_eq!((&payload["tool_name"], &payload["session_id"]), (&json!("terminal"), &json!("test-session")));
    let other = installation.run(&["hooks", "test", "pre_tool_call", "--for-tool", "read_file"]);
    assert!(
        other.success && other.stderr.contains("There is no hook for pre_tool_call and read_file"),
        "{other:?}"
    );

    for given in [
        json!({ "args": { "command": "rm -rf /" } }),
        json!({ "hook_event_name": "pre_tool_call", "tool_name": "terminal", "tool_input": { "command": "rm -rf /" }, "extra": {} }),
    ] {
        let file = installation.write("call.json", given.to_string()).display().to_string();
        let arguments = ["hooks", "test", "pre_tool_call", "--payload-file", &file];
        let blocked = installation.json(&arguments);
        assert_eq!(blocked["results"][0]["parsed"], json!({ "action": "block", "message": "no" }));
        let text = installation.run(&arguments).stdout;
        assert!(
            text.contains("exit code 0") && text.contains(r#"answer: {"action":"block","message":"no"}"#),
            "{text}"
        );
    }
    let context = installation.json(&["hooks", "test", "pre_llm_call"]);
    assert_eq!(context["results"][0]["parsed"], json!({ "context": "It rains." }));
    let broken = installation.run(&["hooks", "test", "on_session_end"]);
    assert!(
        broken.stdout.contains("exit code 3") && broken.stdout.contains("no JSON: nonsense"),
        "{broken:?}"
    );
    installation
        .run(&["hooks", "test", "pre_tool"])
        .assert_refused(&["there is no event pre_tool", "pre_tool_call"]);
    installation
        .run(&["hooks", "test", "pre_tool_call", "--payload-file", "/nothing"])
        .assert_refused(&["/nothing"]);
}

#[test]
fn the_doctor_finds_what_is_wrong_and_runs_only_what_may_run() {
    let installation = Installation::new();
    let ran = installation.file("ran").display().to_string();
    let stranger = script(&installation, "stranger.sh", &format!("echo ran > {ran}"));
    installation.write("config.yaml", format!("hooks:\n  pre_llm_call:\n    - command: {stranger}\n"));
    let checked = installation.run(&["hooks", "doctor"]);
    assert_eq!(checked.code, Some(1));
    assert!(
        checked.stdout.contains("nobody has agreed") && checked.stdout.contains("Problems: 1"),
        "{checked:?}"
    );
    assert!(!Path::new(&ran).exists(), "the doctor ran what nobody agreed to");

    assert!(installation.run(&["--accept-hooks", "run", "--model", "demo/fast", "hello"]).success);
    let well = installation.run(&["hooks", "doctor"]);
    assert!(well.success && well.stdout.contains("All is well."), "{well:?}");

    script(&installation, "stranger.sh", "echo nonsense");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    std::fs::File::options().write(true).open(&stranger).unwrap().set_modified(old).unwrap();
    let changed = installation.run(&["hooks", "doctor", "--json"]);
    let report: Value = serde_json::from_str(&changed.stdout).unwrap();
    assert_eq!((changed.code, &report["ok"]), (Some(1), &json!(false)));
    let text = report["hooks"][0]["checks"].to_string();
    assert!(text.contains("was changed after") && text.contains("no JSON"), "{text}");

    std::fs::set_permissions(&stranger, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(installation.run(&["hooks", "doctor"]).stdout.contains("is not executable"));
    std::fs::remove_file(&stranger).unwrap();
    assert!(installation.run(&["hooks", "doctor"]).stdout.contains("was not found"));
}

#[test]
fn the_general_doctor_says_what_keeps_hooks_from_running() {
    let installation = Installation::new();
    let command = script(&installation, "note.sh", "cat > /dev/null");
    let config = |hooks: &str| installation.write("config.yaml", format!("hooks:\n{hooks}"));
    let says = |status: &str, words: &[&str]| {
        let checked = installation.run(&["doctor"]).stdout;
        let line = checked.lines().find(|line| line.starts_with(status) && line.contains("hook"));
        let line = line.unwrap_or_else(|| panic!("{checked}"));
        assert!(words.iter().all(|word| line.contains(word)), "{words:?}: {checked}");
    };
    config(&format!("  pre_llm_call:\n    - command: {command}\n"));
    says("warn", &["hook pre_llm_call", &command, "consent: nobody has agreed"]);
    one_turn(&installation, &["--accept-hooks"]);
    says("ok", &["hooks: 1 may run"]);
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    std::fs::File::options().write(true).open(&command).unwrap().set_modified(old).unwrap();
    says("warn", &[&command, "script: was changed after somebody agreed"]);
    std::fs::set_permissions(&command, std::fs::Permissions::from_mode(0o644)).unwrap();
    says("fail", &[&command, "command:", "is not executable"]);
    config("  pre_llm_cal: []\n");
    says("warn", &["Did you mean pre_llm_call?"]);
}

#[test]
fn a_command_ends_when_the_hooks_that_nobody_waits_for_have() {
    let installation = Installation::new();
    let (gate, mark) = (installation.file("gate"), installation.file("mark"));
    let body = format!("cat > /dev/null; read x < {}; echo fired > {}", gate.display(), mark.display());
    let command = script(&installation, "slow.sh", &body);
    let hook = format!("    - command: {command}\n      async: true\n");
    installation.write("config.yaml", format!("hooks_auto_accept: true\nhooks:\n  on_session_end:\n{hook}"));
    nix::unistd::mkfifo(&gate, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let mut turn = installation.talk(&["run", "--model", "demo/fast", "hello"]);
    turn.wait_for("You said: hello");
    // Open for both, so that this does not wait for the hook.
    let mut gate = std::fs::File::options().read(true).write(true).open(&gate).unwrap();
    writeln!(gate, "go").unwrap();
    let finished = turn.finish();
    assert!(finished.success, "{finished:?}");
    assert_eq!(std::fs::read_to_string(&mark).unwrap(), "fired\n");

    // One that never ends is stopped at its own limit.
    drop(gate);
    let hook = format!("{hook}      timeout: 1\n");
    installation.write("config.yaml", format!("hooks_auto_accept: true\nhooks:\n  on_session_end:\n{hook}"));
    let finished = one_turn(&installation, &[]);
    assert!(finished.stderr.contains("it had not answered after 1 s and was stopped"), "{finished:?}");
}

#[test]
fn hooks_inherit_the_environment_without_the_key() {
    let installation =
        Installation::new().with_env("PETASOS_API_KEY", "pk_of_the_server").with_env("MARK", "seen");
    let seen = installation.file("seen").display().to_string();
    let command = script(&installation, "env.sh", &format!("cat > /dev/null; env > {seen}"));
    installation.write("config.yaml", format!("hooks:\n  pre_llm_call:\n    - command: {command}\n"));
    one_turn(&installation, &["--accept-hooks"]);
    let env = std::fs::read_to_string(&seen).unwrap();
    assert!(env.contains("MARK=seen") && env.contains("PETASOS_HOME="), "{env}");
    assert!(!env.contains("pk_of_the_server"), "{env}");
}

#[test]
fn a_hook_that_fails_at_every_turn_is_mentioned_once() {
    let installation = Installation::new();
    let command = script(&installation, "fails.sh", "cat > /dev/null; exit 7");
    let config = format!("hooks_auto_accept: true\nhooks:\n  pre_llm_call:\n    - command: {command}\n");
    installation.write("config.yaml", config);
    let server = installation.serve();
    for _ in 0..4 {
        one_turn(&installation, &[]);
    }
    server.wait_for_log("it returned 7");
    let log = server.stop();
    assert!(!log.contains("it returned 7"), "it was said again: {log}");
}
