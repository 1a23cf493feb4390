//! Guards, which are hooks with `fail_closed`: one that is not available blocks, and everybody is told.

use crate::hooks::script;
use crate::installation::{Finished, Installation};

const TODO: [&str; 4] = ["run", "--model", "demo/fast", "todo buy milk"];

/// An installation with a configuration in which `{home}` is the home.
fn configured(config: &str) -> Installation {
    let installation = Installation::new();
    script(&installation, "good.sh", "cat > /dev/null");
    installation.write("agent-hooks/plain.sh", "#!/bin/sh\n");
    script(&installation, "python.sh", "x");
    let strange = installation.write("agent-hooks/strange.sh", "#!/usr/bin/env no-such-language\n");
    std::fs::set_permissions(strange, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let home = installation.home().display().to_string();
    installation.write("config.yaml", config.replace("{home}", &home));
    installation
}

/// Runs a turn in which `todo` is called, with or without consent to all hooks.
fn turn(installation: &Installation, flags: &[&str]) -> Finished {
    let finished = installation.run(&[flags, &TODO].concat());
    assert!(finished.success, "{finished:?}");
    finished
}

/// A guard of the configuration.
fn guard(fields: &str) -> String {
    format!("hooks:\n  pre_tool_call:\n    - {{fail_closed: true, {fields}}}\n")
}

#[track_caller]
fn assert_blocks(config: &str, name: &str) {
    let installation = configured(config);
    let name = name.replace("{home}", &installation.home().display().to_string());
    let told = turn(&installation, &["--accept-hooks"]);
    let blocked = format!("blocked: {name} is not available");
    assert!(told.stdout.contains(&blocked), "{config}: {told:?}");
    let listed = installation.run(&["--accept-hooks", "hooks", "list"]);
    // Of some it is known only when they are asked.
    let is_known_before =
        !["url: 'http://", "persistent", "sh -c \"no"].iter().any(|kind| config.contains(kind));
    let is_named = listed.stdout.contains(&format!("the hook {name} is not available"));
    assert!(is_named || !is_known_before, "{config}: {listed:?}");
}

#[test]
fn a_guard_that_cannot_be_started_blocks() {
    assert_blocks(&guard("command: /no/such/guard.sh"), "/no/such/guard.sh");
    assert_blocks(&guard("command: no-such-guard --fast"), "no-such-guard --fast");
    assert_blocks(&guard("command: '{home}/agent-hooks/plain.sh'"), "{home}/agent-hooks/plain.sh");
    assert_blocks(&guard("command: '{home}/agent-hooks/strange.sh'"), "{home}/agent-hooks/strange.sh");
    assert_blocks(&guard("command: sh /no/such/guard.sh"), "sh /no/such/guard.sh");
    // Everybody sees the name, so no secret is in it.
    assert_blocks(
        &guard("command: '/no/such/guard --api-key 5x --all'"),
        "/no/such/guard --api-key *** --all",
    );
    assert_blocks(&guard("command: '/no/such/guard TOKEN=5x'"), "/no/such/guard TOKEN=***");
    assert_blocks(&guard("command: 'sh -c \"no-such-guard\"'"), "sh -c \"no-such-guard\"");
    assert_blocks(&guard("command: \"sh -c 'x\""), "sh -c 'x");
    assert_blocks(&guard("persistent: true, command: 'sh -c \"exit 1\"'"), "sh -c \"exit 1\"");
    assert_blocks(&guard("persistent: true, command: /no/such/guard"), "/no/such/guard");
    let unreachable = format!("{}egress:\n  allow: [127.0.0.1]\n", guard("url: 'http://127.0.0.1:1/guard'"));
    assert_blocks(&unreachable, "http://127.0.0.1:1/guard");
    let secret =
        format!("{}egress:\n  allow: [127.0.0.1]\n", guard("url: 'http://me:5x@127.0.0.1:1/guard?token=5x'"));
    assert_blocks(&secret, "http://127.0.0.1:1/guard");
}

#[test]
fn a_guard_that_is_misspelt_blocks() {
    let good = "{home}/agent-hooks/good.sh";
    for event in ["pre_tool_cal", "PreToolUse", "pre_tool_calls"] {
        let config = guard(&format!("command: '{good}'")).replace("pre_tool_call", event);
        assert_blocks(&config, good);
    }
    assert_blocks(&guard("command: ''"), "hooks.pre_tool_call[0]");
    assert_blocks(&guard(&format!("comand: '{good}'")), "hooks.pre_tool_call[0]");
    assert_blocks(&guard("url: ftp://example.com/guard"), "ftp://example.com/guard");
    assert_blocks(&guard(&format!("command: '{good}', url: 'https://example.com'")), good);
    assert_blocks(&guard("url: 'https://example.com', secret_env: NOT_SET_ANYWHERE"), "https://example.com");
    // A matcher that is no expression names nobody knows which calls.
    assert_blocks(&guard(&format!("command: '{good}', matcher: 'term[inal'")), good);
    let mapping = format!("hooks:\n  pre_tool_call:\n    command: '{good}'\n    fail_closed: true\n");
    assert_blocks(&mapping, good);
    assert_blocks(&format!("hooks:\n  - command: '{good}'\n    failClosed: true\n"), good);
    assert_blocks(&guard("command: /no/such/guard.sh").replace("true", "'yes'"), "/no/such/guard.sh");
    // Named twice, a hook is a guard if either says so.
    let twice =
        "hooks:\n  pre_tool_call:\n    - command: /no/such\n    - {command: /no/such, fail_closed: true}\n";
    assert_blocks(twice, "/no/such");
}

#[test]
fn a_guard_without_consent_blocks_what_its_matcher_names() {
    let command = "{home}/agent-hooks/good.sh";
    for (matcher, blocks) in
        [("todo", true), ("t.d.|x", true), ("'(todo'", true), ("terminal", false), ("todoo", false)]
    {
        let installation = configured(&guard(&format!("command: '{command}', matcher: {matcher}")));
        let told = turn(&installation, &[]);
        assert_eq!(told.stdout.contains("good.sh is not available"), blocks, "{matcher}: {told:?}");
        assert!(told.stderr.contains("good.sh is not available and blocks"), "{matcher}: {told:?}");
        assert_eq!(told.stdout.contains("buy milk"), !blocks, "{matcher}: {told:?}");
    }
    // With a yes it is asked, and lets the call pass.
    let installation = configured(&guard(&format!("command: '{command}', matcher: todo")));
    let told = turn(&installation, &["--accept-hooks"]);
    assert!(told.stdout.contains("buy milk") && !told.stderr.contains("not available"), "{told:?}");
}

#[test]
fn a_hook_that_is_no_guard_blocks_nothing() {
    let config = "hooks:\n  pre_tool_call:\n    - {command: /no/such/hook.sh}\n    - {matcher: '(todo', command: x}\n  \
                  post_tool_call:\n    - {fail_closed: true}\n  pre_tool_cal:\n    - {command: /no/such/other.sh}\n";
    let installation = configured(config);
    let told = turn(&installation, &["--accept-hooks"]);
    assert!(told.stdout.contains("buy milk"), "{told:?}");
}

#[test]
fn health_doctor_list_and_log_name_a_guard_that_is_not_available() {
    let config = "hooks:\n  pre_tool_call:\n    - {fail_closed: true, command: /no/such/guard.sh, matcher: terminal}\n    \
                  - {fail_closed: true, command: '{home}/agent-hooks/good.sh'}\n  pre_tool_cal:\n    \
                  - {fail_closed: true, command: misspelt-guard}\n";
    let installation = configured(config);
    let names = ["/no/such/guard.sh", "agent-hooks/good.sh", "misspelt-guard"];
    let server = installation.serve();
    let (status, health) = server.request("GET", "/health", "", "");
    assert_eq!((status, health["status"].as_str()), (200, Some("degraded")), "{health}");
    for name in names {
        let problems = health["problems"].as_array().unwrap();
        let names_it = |problem: &serde_json::Value| problem.as_str().unwrap().contains(name);
        assert_eq!(problems.iter().filter(|problem| names_it(problem)).count(), 1, "{name}: {health}");
    }
    let log = server.stop();
    for name in names {
        assert!(log.contains(&format!("{name} is not available and blocks")), "{log}");
    }
    let doctor = installation.run(&["doctor"]);
    let listed = installation.run(&["hooks", "list"]).stdout;
    for name in names {
        assert!(doctor.stdout.contains(&format!("{name} is not available and blocks")), "{doctor:?}");
        assert!(listed.contains(&format!("{name} is not available and blocks")), "{listed}");
    }
    let listed = installation.json(&["hooks", "list"]);
    for hook in listed["hooks"].as_array().unwrap() {
        assert_eq!(hook["available"], false, "{hook}");
    }
    assert_eq!(installation.run(&["hooks", "doctor"]).code, Some(1));
}
