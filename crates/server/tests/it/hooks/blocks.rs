//! What a hook can do about a tool call.

use petasos_testkit::{Setup, TestServer};
use serde_json::json;

use super::world::{Scripts, free_session, result, runs, turn};
use crate::mcp;

const CLAUDE_ALLOWS: &str = r#"{"continue": true, "hookSpecificOutput": {"permissionDecision": "allow"}}"#;

#[tokio::test]
async fn every_shape_blocks() {
    for (answer, told) in [
        (r#"{"decision": "block", "reason": "Not here."}"#, "Not here."),
        (r#"{"action": "block", "message": "Not here."}"#, "Not here."),
        (r#"{"action": "block", "message": "a", "decision": "block", "reason": "b"}"#, "a"),
        (r#"{"decision": "block", "message": "only a message"}"#, "only a message"),
        (r#"{"decision": "block"}"#, "Blocked by a hook."),
        (r#"{"decision": "deny", "reason": "Not here."}"#, "Not here."),
        (
            r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "Not here."}}"#,
            "Not here.",
        ),
        (r#"{"hookSpecificOutput": {"permissionDecision": "deny"}, "reason": "outside"}"#, "outside"),
        (r#"{"continue": false, "stopReason": "Enough."}"#, "Enough."),
    ] {
        let scripts = Scripts::new();
        let hook = scripts.script("block.sh", &format!("cat > /dev/null; echo '{answer}'"));
        let server = scripts.server(json!({ "pre_tool_call": [{ "command": hook }] })).await;
        let session = free_session(&server).await;
        server.model.script(runs("echo ran > ran"));
        let frames = turn(&server, &session, "go").await;
        assert_eq!(result(&frames), (told.to_owned(), true));
        let second = server.model.requests()[1].body.to_string();
        assert!(second.contains(told), "the model is told: {second}");
    }
}

#[tokio::test]
async fn a_blocked_call_of_an_mcp_server_is_still_one_of_that_server() {
    let scripts = Scripts::new();
    let hook =
        scripts.script("block.sh", r#"cat > /dev/null; echo '{"decision": "block", "reason": "No."}'"#);
    let hooks = scripts.hooks(&json!({ "pre_tool_call": [{ "command": hook }] }));
    let setup = mcp::setup([("py", mcp::program(&[]))], mcp::settings(), &[]);
    let server = TestServer::start_with(Setup { hooks, ..setup }).await;
    let session = mcp::session_with(&server, "py", json!({})).await;
    let frames = mcp::turn(&server, &session, "mcp_py_echo", json!({ "text": "hello" })).await;
    assert_eq!(mcp::result(&frames), ("No.".to_owned(), true));
    assert!(frames.iter().any(|frame| frame.event == "agent.mcp_tool_use"));
}

#[tokio::test]
async fn anything_else_lets_it_run() {
    for answer in
        ["", "{}", "[]", "null", r#"{"decision": "allow"}"#, r#"{"action": "blocked"}"#, CLAUDE_ALLOWS]
    {
        let scripts = Scripts::new();
        let hook = scripts.script("allow.sh", &format!("cat > /dev/null; printf '{answer}'"));
        let server = scripts.server(json!({ "pre_tool_call": [{ "command": hook }] })).await;
        let session = free_session(&server).await;
        server.model.script(runs("echo ran"));
        let (text, is_error) = result(&turn(&server, &session, "go").await);
        assert!(text.contains("ran") && !is_error, "{answer}: {text}");
    }
}

#[tokio::test]
async fn all_run_in_order_and_the_first_block_wins() {
    let scripts = Scripts::new();
    let hook = |name: &str, answer: &str| {
        let command =
            scripts.script(name, &format!("cat > /dev/null; echo {name} >> $HERE/order; echo '{answer}'"));
        json!({ "command": command })
    };
    let hooks = [
        hook("first", "{}"),
        hook("second", r#"{"decision": "block", "reason": "second"}"#),
        hook("third", r#"{"decision": "block", "reason": "third"}"#),
    ];
    let server = scripts.server(json!({ "pre_tool_call": hooks })).await;
    let session = free_session(&server).await;
    server.model.script(runs("true"));
    assert_eq!(result(&turn(&server, &session, "go").await).0, "second");
    assert_eq!(scripts.file("order").await, "first\nsecond\nthird\n");
}

#[tokio::test]
async fn a_matcher_matches_whole_names() {
    let scripts = Scripts::new();
    let block =
        scripts.script("block.sh", r#"cat > /dev/null; echo '{"decision": "block", "reason": "no"}'"#);
    for (matcher, blocks) in [
        ("terminal", true),
        ("term", false),
        ("write_file|terminal", true),
        ("(?!read_).*", true),
        ("(?!term).*", false),
        ("  ", true),
    ] {
        let hook = json!({ "matcher": matcher, "command": block });
        let server = scripts.server(json!({ "pre_tool_call": [hook] })).await;
        let session = free_session(&server).await;
        server.model.script(runs("true"));
        assert_eq!(result(&turn(&server, &session, "go").await).1, blocks, "{matcher}");
    }
}

#[tokio::test]
async fn arguments_are_changed_only_by_a_hook_that_may() {
    for answer in [
        r#"{"action": "modify", "args": {"command": "echo changed"}}"#,
        r#"{"decision": "modify", "tool_input": {"command": "echo changed"}}"#,
    ] {
        for (modify, shown) in [(true, "changed"), (false, "original")] {
            let scripts = Scripts::new();
            let hook = scripts.script("modify.sh", &format!("cat > /dev/null; echo '{answer}'"));
            let second = scripts.recorder("second");
            let hooks = json!([{ "command": hook, "modify": modify }, { "command": second }]);
            let server = scripts.server(json!({ "pre_tool_call": hooks })).await;
            let session = free_session(&server).await;
            server.model.script(runs("echo original"));
            let (text, _) = result(&turn(&server, &session, "go").await);
            assert!(text.contains(shown), "{text}");
            let seen = &scripts.recorded("second")[0]["tool_input"]["command"];
            assert_eq!(seen, &json!(format!("echo {shown}")), "the next hook sees it");
        }
    }
}

#[tokio::test]
async fn exit_code_2_blocks_only_where_it_may() {
    for (opted_in, body, told) in [
        (true, "echo 'Not on Sundays.' >&2; exit 2", Some("Not on Sundays.")),
        (true, r#"echo '{"decision": "block", "reason": "From JSON."}'; exit 2"#, Some("From JSON.")),
        (true, "exit 2", Some("Blocked by a hook.")),
        (true, "exit 3", None),
        (false, "exit 2", None),
    ] {
        let scripts = Scripts::new();
        let hook = scripts.script("exit.sh", body);
        let hook = json!({ "command": hook, "exit_code_2_blocks": opted_in });
        let server = scripts.server(json!({ "pre_tool_call": [hook] })).await;
        let session = free_session(&server).await;
        server.model.script(runs("echo ran"));
        let (text, is_error) = result(&turn(&server, &session, "go").await);
        assert_eq!(is_error.then_some(text.as_str()), told, "{body}");
    }
}

#[tokio::test]
async fn every_tool_and_every_surface_is_guarded() {
    let scripts = Scripts::new();
    let hook = scripts.script("block.sh", r#"cat > /dev/null; echo '{"decision": "block", "reason": "no"}'"#);
    let server = scripts.server(json!({ "pre_tool_call": [{ "command": hook }] })).await;
    let session = free_session(&server).await;
    for (tool, input) in [
        ("todo", json!({ "todos": ["x"] })),
        ("clarify", json!({ "question": "Sure?" })),
        ("delegate_task", json!({ "goal": "x" })),
        ("no_such_tool", json!({})),
    ] {
        server
            .model
            .script([petasos_testkit::Reply::tool_call(tool, input), petasos_testkit::Reply::text("Done.")]);
        assert_eq!(result(&turn(&server, &session, "go").await), ("no".to_owned(), true), "{tool}");
    }
    // A tool that the application runs never gets there either.
    let session = server.session_with_custom_tool().await;
    let call = petasos_testkit::Reply::tool_call("check_order", json!({}));
    server.model.script([call, petasos_testkit::Reply::text("Done.")]);
    assert_eq!(result(&turn(&server, &session, "go").await).0, "no");
    // Nor does one of another surface's session.
    server.model.script(runs("true"));
    let agent = server.agent_with(json!({})).await;
    let made = server.client.post("/aap/sessions", json!({ "agent": { "name": agent } })).await;
    let session = made.body["sessionId"].as_str().unwrap().to_owned();
    let messages = json!({ "messages": [{ "role": "user", "content": "go" }] });
    let answer = server.client.post(&format!("/aap/sessions/{session}/turns"), messages).await.expect(200);
    assert!(answer["messages"].to_string().contains(r#""content":"no""#), "{answer}");
}
