//! What waits for hooks, and what does not.

use petasos_testkit::Reply;
use serde_json::{Value, json};

use super::world::{Scripts, free_session, result, runs, turn};

#[tokio::test]
async fn observers_never_delay_a_turn() {
    let scripts = Scripts::new();
    let gate = scripts.gate("gate");
    let events = [
        "on_session_start",
        "pre_api_request",
        "post_api_request",
        "post_llm_call",
        "on_session_end",
        "pre_approval_request",
    ];
    let hook = scripts.script("slow.sh", "cat > /dev/null; read x < $HERE/gate; echo done > $HERE/done");
    let hooks: serde_json::Map<String, Value> =
        events.iter().map(|event| ((*event).to_owned(), json!([{ "command": hook }]))).collect();
    let server = scripts.server(hooks.into()).await;
    let session = free_session(&server).await;
    server.model.script(runs("echo ran"));
    turn(&server, &session, "go").await;
    assert!(!scripts.path().join("done").exists(), "the first observer still waits");
    scripts.open(&gate).await;
    assert_eq!(scripts.file("done").await, "done\n");
}

#[tokio::test]
async fn the_next_model_call_waits_for_post_tool_call_unless_it_runs_beside() {
    for runs_beside in [false, true] {
        let scripts = Scripts::new();
        let gate = scripts.gate("gate");
        let body = "cat > /dev/null; echo here > $HERE/here; read x < $HERE/gate; echo done > $HERE/done";
        let hook = json!({ "command": scripts.script("slow.sh", body), "async": runs_beside });
        let server = scripts.server(json!({ "post_tool_call": [hook] })).await;
        let session = free_session(&server).await;
        server.model.script(runs("echo ran"));
        let mut stream = server.client.stream(&session, "").await;
        server.client.message(&session, "go").await.expect(200);
        scripts.file("here").await;
        if runs_beside {
            stream.until_idle().await;
            assert!(!scripts.path().join("done").exists());
            scripts.open(&gate).await;
        } else {
            assert_eq!(server.model.requests().len(), 1);
            scripts.open(&gate).await;
            stream.until_idle().await;
            assert!(scripts.path().join("done").exists());
        }
        scripts.file("done").await;
    }
}

#[tokio::test]
async fn a_hook_that_hangs_holds_up_its_own_session_alone() {
    let scripts = Scripts::new();
    let gate = scripts.gate("gate");
    // Hangs for the one who says so.
    let body = r#"if grep -q hang; then echo here > $HERE/here; read x < $HERE/gate; fi; echo '{}'"#;
    let hook = json!({ "command": scripts.script("hang.sh", body) });
    let server = scripts.server(json!({ "pre_llm_call": [hook] })).await;
    let (slow, quick) = (free_session(&server).await, free_session(&server).await);
    server.model.when("hang", [Reply::text("At last.")]);
    let mut stream = server.client.stream(&slow, "").await;
    server.client.message(&slow, "hang on").await.expect(200);
    scripts.file("here").await;
    for _ in 0..5 {
        server.model.when("hello", [Reply::text("Hello.")]);
        turn(&server, &quick, "hello").await;
    }
    scripts.open(&gate).await;
    stream.until_idle().await;
}

#[tokio::test]
async fn a_turn_whose_hook_hangs_can_be_interrupted() {
    let scripts = Scripts::new();
    scripts.gate("gate");
    let body = "cat > /dev/null; echo here > $HERE/here; read x < $HERE/gate";
    let hook = json!({ "command": scripts.script("hang.sh", body) });
    let server = scripts.server(json!({ "pre_tool_call": [hook] })).await;
    let session = free_session(&server).await;
    server.model.script(runs("echo ran"));
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    scripts.file("here").await;
    server.client.event(&session, json!({ "type": "user.interrupt" })).await.expect(200);
    stream.until_idle().await;
}

#[tokio::test]
async fn command_hooks_transform_nothing() {
    let scripts = Scripts::new();
    let hook = json!([{ "command": scripts.script("text.sh", "cat > /dev/null; echo '\"other\"'") }]);
    let hooks = json!({
        "transform_tool_result": hook, "transform_terminal_output": hook, "transform_llm_output": hook,
    });
    let server = scripts.server(hooks).await;
    let session = free_session(&server).await;
    server.model.script(runs("echo ran"));
    let frames = turn(&server, &session, "go").await;
    assert!(result(&frames).0.contains("ran"));
}

#[tokio::test]
async fn calls_that_are_answered_one_by_one_are_all_told() {
    let scripts = Scripts::new();
    let recorder = scripts.recorder("ended");
    let server = scripts.server(json!({ "post_tool_call": [{ "command": recorder }] })).await;
    let session = server.session_with_custom_tool().await;
    let order = |id: &str| json!({ "order_id": id });
    let calls = Reply::tool_call("check_order", order("1")).and_tool_call("check_order", order("2"));
    server.model.script([calls, Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let pending =
        stream.until_idle().await.last().unwrap().data["payload"]["stop_reason"]["event_ids"].clone();
    for id in pending.as_array().unwrap() {
        let content = json!([{ "type": "text", "text": "shipped" }]);
        let result = json!({ "type": "user.custom_tool_result", "tool_use_id": id, "content": content });
        server.client.event(&session, result).await.expect(200);
        stream.until_idle().await;
    }
    assert_eq!(scripts.wait_for("ended", 2).await.len(), 2);
}
