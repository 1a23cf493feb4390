//! What hooks are told, to the letter.

use petasos_testkit::{Reply, Setup, TestServer};
use serde_json::{Value, json};

use super::world::{Scripts, free_session, result, runs, turn};

/// The keys of an object, in order.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_turn_with_a_tool_call() {
    let scripts = Scripts::new();
    let events = [
        "on_session_start",
        "pre_llm_call",
        "pre_api_request",
        "pre_tool_call",
        "post_tool_call",
        "transform_terminal_output",
        "transform_tool_result",
        "post_api_request",
        "transform_llm_output",
        "post_llm_call",
        "on_session_end",
        "on_session_finalize",
    ];
    let hooks: serde_json::Map<String, Value> = events
        .iter()
        .map(|event| ((*event).to_owned(), json!([{ "command": scripts.recorder(event) }])))
        .collect();
    let server = scripts.server(hooks.into()).await;
    let session = free_session(&server).await;
    server.model.script(runs("echo hello"));
    turn(&server, &session, "Größe?").await;
    server.client.delete(&format!("/v1/sessions/{session}")).await.expect(200);

    scripts.wait_for("on_session_finalize", 1).await;
    for event in events {
        for told in scripts.recorded(event) {
            let expected = ["hook_event_name", "tool_name", "tool_input", "session_id", "cwd", "extra"];
            assert_eq!(keys(&told), expected);
            assert_eq!((&told["hook_event_name"], &told["session_id"]), (&json!(event), &json!(session)));
            let is_about_tool = ["pre_tool_call", "post_tool_call", "transform_tool_result"].contains(&event);
            assert_eq!(told["tool_name"].is_null(), !is_about_tool, "{event}");
        }
    }
    let one = |event: &str| {
        let all = scripts.recorded(event);
        assert_eq!(all.len(), 1, "{event}");
        all.into_iter().next().unwrap()
    };
    let pre = one("pre_tool_call");
    assert_eq!(pre["tool_input"], json!({ "command": "echo hello" }));
    assert_eq!(keys(&pre["extra"]), ["task_id", "tool_call_id", "turn_id"]);
    let log = server.model.requests()[1].body.to_string();
    assert!(log.contains("hello"), "{log}");

    let post = one("post_tool_call");
    assert_eq!(post["extra"]["tool_call_id"], pre["extra"]["tool_call_id"]);
    assert_eq!((&post["extra"]["status"], &post["extra"]["error_message"]), (&json!("ok"), &Value::Null));
    assert!(post["extra"]["duration_ms"].is_u64());
    let told: Value = serde_json::from_str(post["extra"]["result"].as_str().unwrap()).unwrap();
    assert_eq!((&told["output"], &told["exit_code"]), (&json!("hello\n"), &json!(0)));

    let transform = one("transform_tool_result");
    assert_eq!(transform["extra"]["arguments"], json!({ "command": "echo hello" }));
    let terminal = one("transform_terminal_output");
    assert_eq!(terminal["extra"]["output"], "hello\n");
    assert_eq!((&terminal["extra"]["exit_code"], &terminal["extra"]["returncode"]), (&json!(0), &json!(0)));
    assert_eq!(
        (&terminal["extra"]["command"], &terminal["extra"]["cwd"]),
        (&json!("echo hello"), &pre["cwd"])
    );

    let start = one("pre_llm_call");
    assert_eq!(start["extra"]["user_message"], "Größe?");
    assert_eq!(start["extra"]["conversation_history"], json!([{ "role": "user", "content": "Größe?" }]));
    assert_eq!(
        (&start["extra"]["is_first_turn"], &start["extra"]["model"]),
        (&json!(true), &json!("openai/scripted"))
    );
    assert_eq!(start["extra"]["platform"], "api");

    let end = one("post_llm_call");
    assert_eq!(
        (&end["extra"]["user_message"], &end["extra"]["assistant_response"]),
        (&json!("Größe?"), &json!("Done."))
    );
    let history = end["extra"]["conversation_history"].as_array().unwrap();
    let roles: Vec<&str> = history.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert_eq!(history[1]["tool_calls"][0]["id"], history[2]["tool_call_id"]);

    let ended = one("on_session_end");
    assert_eq!((&ended["extra"]["completed"], &ended["extra"]["interrupted"]), (&json!(true), &json!(false)));
    assert_eq!(keys(&one("on_session_finalize")["extra"]), ["platform"]);
    assert_eq!(keys(&one("on_session_start")["extra"]), ["model", "platform"]);
    assert_eq!(scripts.recorded("pre_api_request").len(), 2);
    assert_eq!(scripts.recorded("post_api_request")[0]["extra"]["api_call_count"], 1);
}

#[tokio::test]
async fn a_hook_runs_in_the_workspace_with_the_environment_it_was_given() {
    let scripts = Scripts::new();
    let hook = scripts.script("look.sh", "cat > /dev/null; echo \"$MARK $(pwd)\" > $HERE/looked");
    let record = scripts.recorder("pre_tool_call");
    let hooks = json!({ "pre_tool_call": [{ "command": hook }, { "command": record }] });
    let server = scripts.server(hooks).await;
    let session = free_session(&server).await;
    server.model.script(runs("pwd"));
    let (text, _) = result(&turn(&server, &session, "go").await);
    let output: Value = serde_json::from_str(&text).unwrap();
    let workspace = output["output"].as_str().unwrap().trim();
    assert_eq!(scripts.file("looked").await, format!("inherited {workspace}\n"));
    assert_eq!(scripts.recorded("pre_tool_call")[0]["cwd"], workspace);
}

#[tokio::test]
async fn the_end_of_a_blocked_and_of_a_failed_call_is_told() {
    let scripts = Scripts::new();
    let block = r#"cat > /dev/null; echo '{"decision": "block", "reason": "no"}'"#;
    let block = json!({ "matcher": "terminal", "command": scripts.script("block.sh", block) });
    let post = json!([{ "command": scripts.recorder("post_tool_call") }]);
    let transform = json!([{ "command": scripts.recorder("transform_tool_result") }]);
    let hooks =
        json!({ "pre_tool_call": [block], "post_tool_call": post, "transform_tool_result": transform });
    let server = scripts.server(hooks).await;
    let session = free_session(&server).await;
    server.model.script(runs("true"));
    turn(&server, &session, "go").await;
    server.model.script([Reply::tool_call("no_such_tool", json!({})), Reply::text("Done.")]);
    turn(&server, &session, "go").await;
    let told = scripts.recorded("post_tool_call");
    let status = |index: usize| told[index]["extra"]["status"].as_str().unwrap();
    assert_eq!((status(0), status(1)), ("blocked", "error"));
    assert_eq!(told[0]["extra"]["result"], r#"{"error":"no"}"#);
    assert_eq!(told[0]["extra"]["error_message"], "no");
    assert_eq!(scripts.recorded("transform_tool_result"), [Value::Null; 0]);
}

#[tokio::test]
async fn a_result_is_told_as_json_and_read_by_the_model_as_it_is() {
    let scripts = Scripts::new();
    let post = json!([{ "command": scripts.recorder("post_tool_call") }]);
    let transform = json!([{ "command": scripts.recorder("transform_tool_result") }]);
    let server = scripts.server(json!({ "post_tool_call": post, "transform_tool_result": transform })).await;
    let session = free_session(&server).await;
    server.model.script([Reply::tool_call("todo", json!({ "todos": ["look"] })), Reply::text("Done.")]);
    let (text, _) = result(&turn(&server, &session, "go").await);
    let told = scripts.recorded("post_tool_call").remove(0)["extra"]["result"].clone();
    let told: Value = serde_json::from_str(told.as_str().unwrap()).unwrap();
    assert_eq!(told, json!({ "result": text }));
    assert_eq!(scripts.recorded("transform_tool_result")[0]["extra"]["result"], text);
}

#[tokio::test]
async fn approvals_are_told_before_and_after() {
    let scripts = Scripts::new();
    let hooks = json!({
        "pre_approval_request": [{ "command": scripts.recorder("pre") }],
        "post_approval_response": [{ "command": scripts.recorder("post") }],
    });
    let server = TestServer::start_with(Setup { hooks: scripts.hooks(&hooks), ..Setup::default() }).await;
    let agent = server.agent_with(json!({})).await;
    let session = server.client.session(&agent).await;
    let mut stream = server.client.stream(&session, "").await;
    let both = json!(["recursive_delete", "git_force_push"]);
    for (command, keys, result, choice) in [
        ("echo one", json!(["tool:terminal"]), "allow", "once"),
        ("rm -r build; git push -f", both, "deny", "deny"),
    ] {
        server.model.script(runs(command));
        server.client.message(&session, "go").await.expect(200);
        let frames = stream.until_idle().await;
        let id = &frames.iter().rfind(|frame| frame.event == "agent.tool_use").unwrap().data["payload"]["id"];
        let answer = json!({ "type": "user.tool_confirmation", "tool_use_id": id, "result": result });
        server.client.event(&session, answer).await.expect(200);
        stream.until_idle().await;
        let number = if choice == "once" { 1 } else { 2 };
        let told = scripts.wait_for("pre", number).await.pop().unwrap();
        let extra = &told["extra"];
        assert_eq!((&told["tool_name"], &extra["command"]), (&Value::Null, &json!(command)));
        assert_eq!((&extra["session_key"], &extra["surface"]), (&json!(session), &json!("gateway")));
        assert_eq!((&extra["pattern_keys"], &extra["pattern_key"]), (&keys, &keys[0]));
        assert!(!extra["description"].as_str().unwrap().is_empty());
        let answered = scripts.wait_for("post", number).await.pop().unwrap();
        assert_eq!(
            (&answered["extra"]["choice"], &answered["extra"]["command"]),
            (&json!(choice), &json!(command))
        );
    }
}

#[tokio::test]
async fn the_end_of_each_subagent_is_told() {
    let scripts = Scripts::new();
    let hooks = json!({ "subagent_stop": [{ "command": scripts.recorder("stop") }] });
    let server = scripts.server(hooks).await;
    let session = free_session(&server).await;
    let tasks = json!({ "tasks": [{ "goal": "look at a" }, { "goal": "look at b" }] });
    server.model.when("delegate", [Reply::tool_call("delegate_task", tasks), Reply::text("Both done.")]);
    server.model.when("look at a", [Reply::text("Seen a.")]);
    server.model.when("look at b", [Reply::text("Seen b.")]);
    turn(&server, &session, "delegate please").await;
    let told = scripts.wait_for("stop", 2).await;
    let summaries: Vec<&str> =
        told.iter().map(|told| told["extra"]["child_summary"].as_str().unwrap()).collect();
    assert_eq!(summaries, ["Seen a.", "Seen b."]);
    for told in told {
        assert_eq!(
            (&told["session_id"], &told["extra"]["child_status"]),
            (&json!(session), &json!("completed"))
        );
        assert!(told["extra"].get("parent_session_id").is_none() && told["extra"]["duration_ms"].is_u64());
        assert_eq!(told["extra"]["child_role"], Value::Null);
    }
}
