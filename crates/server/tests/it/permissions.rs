//! What a person is asked before a tool runs, and what is passed to it that nobody else may see.

use petasos_testkit::tools::{Given, RiskyTool};
use petasos_testkit::{Frame, Reply, Setup, TestServer};
use serde_json::{Value, json};

fn risky(text: &str) -> Reply {
    Reply::tool_call("risky", json!({ "text": text }))
}

fn confirm(id: &Value, result: &str, scope: &str) -> Value {
    json!({ "type": "user.tool_confirmation", "tool_use_id": id, "result": result, "scope": scope })
}

fn payload<'a>(frames: &'a [Frame], event: &str) -> &'a Value {
    let found = frames.iter().find(|frame| frame.event == event);
    &found.unwrap_or_else(|| panic!("there is no {event}")).data["payload"]
}

async fn start(policy: &str) -> (TestServer, RiskyTool, String) {
    let tool = RiskyTool::default();
    let server = TestServer::start_with(Setup::default().with_tool(tool.clone())).await;
    let policy = json!({ "permissionPolicy": { "type": policy } });
    let tools = json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
    let agent = server.agent_with(json!({ "tools": tools })).await;
    let session = server.client.session(&agent).await;
    (server, tool, session)
}

#[tokio::test]
async fn a_danger_asks_whatever_the_policy_says_until_it_is_allowed_by_name() {
    let (server, tool, session) = start("always_allow").await;
    server.model.script([risky("ls"), risky("rm a"), risky("rm b"), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("requires_action"));
    let asked = &frames.iter().rfind(|frame| frame.event == "agent.tool_use").unwrap().data["payload"];
    assert_eq!(
        asked["danger"],
        json!({ "pattern_key": "rm", "pattern_keys": ["rm"], "description": "removes files" })
    );
    assert_eq!((tool.given().len(), &asked["requires_action"]), (1, &json!(true)));

    // Allowed for the session, the same danger does not ask again.
    server.client.event(&session, confirm(&asked["id"], "allow", "session")).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    assert_eq!(tool.given().len(), 3);
}

#[tokio::test]
async fn what_never_runs_is_refused_and_the_turn_goes_on() {
    let (server, tool, session) = start("always_allow").await;
    server.model.script([risky("mkfs /dev/sda"), Reply::text("Sorry.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let result = payload(&frames, "agent.tool_result");
    assert_eq!(
        (&result["is_error"], &result["content"][0]["text"]),
        (&json!(true), &json!("It never runs."))
    );
    assert_eq!((frames.last().unwrap().stop(), tool.given().len()), (Some("end_turn"), 0));
}

#[tokio::test]
async fn a_password_reaches_its_command_and_nothing_else() {
    let (server, tool, session) = start("always_allow").await;
    server.model.script([risky("sudo reboot"), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let request = payload(&frames, "agent.sudo_request").clone();
    assert_eq!(request["command"], "sudo reboot");
    let stop = &frames.last().unwrap().data["payload"]["stop_reason"];
    assert_eq!(stop["event_ids"], json!([request["request_id"]]));
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert_eq!(shown["pendingActions"][0]["type"], "sudo");

    let answer =
        json!({ "type": "user.sudo_result", "request_id": request["request_id"], "password": "hunter2" });
    server.client.event(&session, answer).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    assert_eq!(tool.given(), [Given { password: Some("hunter2".to_owned()), ..Given::default() }]);
    let log = json!(server.client.events(&session).await).to_string();
    assert!(!log.contains("hunter2") && !server.model.requests()[1].body.to_string().contains("hunter2"));
}

#[tokio::test]
async fn a_password_that_a_restart_has_lost_is_asked_for_again() {
    let tool = RiskyTool::default();
    let server = TestServer::start_with(Setup::default().with_tool(tool.clone())).await;
    let agent = server.agent_with(json!({})).await;
    let session = server.client.session(&agent).await;
    server.model.script([risky("sudo true"), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    // The tool asks for permission as well, so the password alone starts nothing.
    let request = payload(&frames, "agent.sudo_request")["request_id"].clone();
    let call = payload(&frames, "agent.tool_use")["id"].clone();
    let password =
        |id: &Value| json!({ "type": "user.sudo_result", "request_id": id, "password": "hunter2" });
    server.client.event(&session, password(&request)).await.expect(200);
    let rest = stream.until_idle().await;
    assert_eq!(rest.last().unwrap().data["payload"]["stop_reason"]["event_ids"], json!([call]));

    let server = server.restart().await;
    let mut stream = server.client.stream(&session, "").await;
    // What the session still shows can still be answered.
    server.client.event(&session, confirm(&call, "allow", "once")).await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(payload(&frames, "agent.sudo_request")["request_id"], request);
    let waits_for =
        |frames: &[Frame]| frames.last().unwrap().data["payload"]["stop_reason"]["event_ids"].clone();
    assert_eq!(waits_for(&frames), json!([call, request]));
    assert_eq!(waits_for(&stream.until_idle().await), json!([request]));
    server.client.event(&session, password(&request)).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    assert_eq!(tool.given().len(), 1);
}

#[tokio::test]
async fn the_model_is_told_of_a_secret_that_a_restart_has_lost() {
    let (server, _tool, session) = start("always_allow").await;
    let told = |server: &TestServer| {
        let request = server.model.requests().last().unwrap().body.to_string();
        request.contains("GH_TOKEN are no longer here")
    };
    // Asks for the secret, and gives it. Returns whether the model was told of a loss before and after.
    let turn = async |server: &TestServer| {
        let wanted = Reply::tool_call("request_secret", json!({ "name": "GH_TOKEN", "prompt": "To push." }));
        server.model.script([wanted, Reply::text("Done.")]);
        let mut stream = server.client.stream(&session, "").await;
        server.client.message(&session, "go").await.expect(200);
        let request = payload(&stream.until_idle().await, "agent.secret_request")["request_id"].clone();
        let before = told(server);
        let answer = json!({ "type": "user.secret_result", "request_id": request, "value": "t0psecret" });
        server.client.event(&session, answer).await.expect(200);
        assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
        (before, told(server))
    };
    assert_eq!(turn(&server).await, (false, false));
    assert_eq!(turn(&server).await, (false, false));
    let server = server.restart().await;
    assert_eq!(turn(&server).await, (true, false), "until it is given again");
}

#[tokio::test]
async fn the_model_is_told_of_a_secret_that_a_restart_has_lost_in_the_middle_of_a_turn() {
    let (server, _tool, session) = start("always_ask").await;
    let wanted = Reply::tool_call("request_secret", json!({ "name": "GH_TOKEN", "prompt": "To push." }));
    server.model.script([wanted, risky("push"), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let request = payload(&stream.until_idle().await, "agent.secret_request")["request_id"].clone();
    let answer = json!({ "type": "user.secret_result", "request_id": request, "value": "t0psecret" });
    server.client.event(&session, answer).await.expect(200);
    let call = payload(&stream.until_idle().await, "agent.tool_use")["id"].clone();

    let server = server.restart().await;
    let mut stream = server.client.stream(&session, "").await;
    server.client.event(&session, confirm(&call, "deny", "once")).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    let read = server.model.requests().last().unwrap().body["messages"].clone();
    let last = read.as_array().unwrap().last().unwrap();
    assert!(
        last.to_string().contains("GH_TOKEN are no longer here"),
        "after the words that it was given: {read}"
    );
}

#[tokio::test]
async fn a_secret_reaches_commands_and_nobody_else() {
    let (server, tool, session) = start("always_allow").await;
    let wanted = Reply::tool_call("request_secret", json!({ "name": "GH_TOKEN", "prompt": "To push." }));
    server.model.script([wanted, risky("push"), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let request = payload(&frames, "agent.secret_request").clone();
    assert_eq!((&request["name"], &request["prompt"]), (&json!("GH_TOKEN"), &json!("To push.")));
    let answer =
        json!({ "type": "user.secret_result", "request_id": request["request_id"], "value": "t0psecret" });
    server.client.event(&session, answer).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    assert_eq!(tool.given()[0].secrets["GH_TOKEN"], "t0psecret");
    let log = json!(server.client.events(&session).await).to_string();
    let told = server.model.requests().iter().any(|request| request.body.to_string().contains("t0psecret"));
    assert!(!log.contains("t0psecret") && !told);

    // Nobody else's session has it.
    let agent = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200)["agentId"].clone();
    let other = server.client.session(agent.as_str().unwrap()).await;
    server.model.script([risky("push"), Reply::text("Done.")]);
    let mut stream = server.client.stream(&other, "").await;
    server.client.message(&other, "go").await.expect(200);
    stream.until_idle().await;
    assert!(tool.given()[1].secrets.is_empty());
}

#[tokio::test]
async fn a_secret_that_a_command_leaves_in_a_file_is_not_seen_through_other_tools() {
    let (server, _, session) = start("always_allow").await;
    let secret = "t0p\"secret\"";
    server.model.script([
        Reply::tool_call("request_secret", json!({ "name": "TOKEN", "prompt": "To push." })),
        Reply::tool_call("terminal", json!({ "command": "echo \"is $TOKEN\" > f" })),
        Reply::tool_call("read_file", json!({ "path": "f" })),
        Reply::tool_call("search_files", json!({ "pattern": "t0p" })),
        Reply::tool_call("patch", json!({ "path": "f", "old_string": "is", "new_string": "was" })),
        Reply::tool_call("execute_code", json!({ "code": "import sys; print(open('f').read())" })),
        Reply::text("Done."),
    ]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let request = payload(&stream.until_idle().await, "agent.secret_request")["request_id"].clone();
    let answer = json!({ "type": "user.secret_result", "request_id": request, "value": secret });
    server.client.event(&session, answer).await.expect(200);
    let frames = stream.until_idle().await;
    let results = frames.iter().filter(|frame| frame.event == "agent.tool_result");
    let shown = results.filter(|frame| frame.text().contains("[redacted]")).count();
    assert_eq!(shown, 4, "{frames:#?}");
    let mut seen: Vec<String> = vec![json!(server.client.events(&session).await).to_string()];
    seen.extend(server.model.requests().iter().map(|request| request.body.to_string()));
    assert!(seen.iter().all(|text| !text.contains("secret\\")), "{seen:#?}");
}
