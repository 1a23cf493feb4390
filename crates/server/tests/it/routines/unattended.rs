//! Nobody is there to answer: what would ask is refused, unless the configuration says otherwise.

use petasos_core::event::ToolEffect;
use petasos_engine::Unattended;
use petasos_testkit::tools::{CountingTool, RiskyTool};
use petasos_testkit::{Reply, Setup, TestServer};
use serde_json::json;

use super::{approved, put, settled, triggered};

async fn start(unattended: Unattended) -> (TestServer, CountingTool, RiskyTool) {
    let (tool, risky) = (CountingTool::new("write_note", ToolEffect::SideEffect), RiskyTool::default());
    let setup = super::setup().with_tool(tool.clone()).with_tool(risky.clone());
    let server = TestServer::start_with(Setup { unattended, ..setup }).await;
    put(&server, json!({})).await;
    (server, tool, risky)
}

fn writes() -> Reply {
    Reply::tool_calls([("write_note", json!({})), ("risky", json!({ "text": "rm a" }))])
}

#[tokio::test]
async fn what_would_ask_is_refused_and_the_run_goes_on() {
    let (server, tool, risky) = start(Unattended::Deny).await;
    server.model.script([writes(), approved()]);
    let run_id = triggered(&server, json!({})).await;
    assert_eq!(settled(&server, &run_id).await["status"], "succeeded");
    assert_eq!((tool.runs(), risky.given().len()), (0, 0));
    let told = server.model.requests()[1].body["messages"].to_string();
    assert_eq!(told.matches("nobody attends this run").count(), 2, "{told}");
}

#[tokio::test]
async fn the_configuration_can_let_it_run_but_not_what_never_runs() {
    let (server, tool, risky) = start(Unattended::Allow).await;
    server.model.script([
        writes(),
        Reply::tool_call("risky", json!({ "text": "mkfs /dev/sda" })),
        approved(),
    ]);
    let run_id = triggered(&server, json!({})).await;
    assert_eq!(settled(&server, &run_id).await["status"], "succeeded");
    assert_eq!((tool.runs(), risky.given().len()), (1, 1));
    assert!(server.model.requests()[2].body["messages"].to_string().contains("It never runs."));
}

#[tokio::test]
async fn what_was_allowed_for_the_session_runs() {
    let (server, tool, _) = start(Unattended::Deny).await;
    let session = server.session().await;
    server.model.script([Reply::tool_call("write_note", json!({})), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let asked = frames.iter().find(|frame| frame.event == "agent.tool_use").unwrap();
    let allow = json!({ "type": "user.tool_confirmation", "tool_use_id": asked.data["payload"]["id"],
        "result": "allow", "scope": "session" });
    server.client.event(&session, allow).await.expect(200);
    stream.until_idle().await;
    server.model.script([Reply::tool_call("write_note", json!({})), approved()]);
    let run_id = triggered(&server, json!({ "session_id": session })).await;
    assert_eq!(settled(&server, &run_id).await["status"], "succeeded");
    assert_eq!(tool.runs(), 2);
}

#[tokio::test]
async fn subagents_follow_the_same_setting() {
    for (unattended, runs) in [(Unattended::Deny, 0), (Unattended::Allow, 1)] {
        let (server, tool, _) = start(unattended).await;
        let session = server.session().await;
        server.model.when(
            "go",
            [Reply::tool_call("delegate_task", json!({ "goal": "Write it." })), Reply::text("Done.")],
        );
        server.model.when("Write it.", [Reply::tool_call("write_note", json!({})), Reply::text("Written.")]);
        let mut stream = server.client.stream(&session, "").await;
        server.client.message(&session, "go").await.expect(200);
        stream.until_idle().await;
        assert_eq!(tool.runs(), runs, "{unattended:?}");
    }
}
