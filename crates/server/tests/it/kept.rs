//! What the tests of memory, skills and search share.

use petasos_testkit::{Reply, TestServer};
use serde_json::{Value, json};

/// A session of an agent with a user.
pub(crate) async fn session_of(server: &TestServer, agent: &str, user: &str) -> String {
    let body = json!({ "userId": user });
    let session = server.client.post(&format!("/v1/agents/{agent}/sessions"), body).await.expect(201);
    session["id"].as_str().unwrap().to_owned()
}

/// Lets the model call a tool in a turn, and returns what the tool said and whether it failed.
pub(crate) async fn call(server: &TestServer, session: &str, tool: &str, input: Value) -> (String, bool) {
    server.model.script([Reply::tool_call(tool, input), Reply::text("Done.")]);
    let frames = turn(server, session, "go").await;
    let result = frames.iter().find(|event| event["type"] == "agent.tool_result").expect("a result");
    let payload = &result["payload"];
    (payload["content"][0]["text"].as_str().unwrap().to_owned(), payload["is_error"] == true)
}

/// The same, for a tool that must succeed and answers with JSON.
pub(crate) async fn call_json(server: &TestServer, session: &str, tool: &str, input: Value) -> Value {
    let (text, failed) = call(server, session, tool, input).await;
    assert!(!failed, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Sends a message and returns the durable events until the turn ends, which it must.
pub(crate) async fn turn(server: &TestServer, session: &str, text: &str) -> Vec<Value> {
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, text).await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    frames.into_iter().filter(|frame| frame.id.is_some()).map(|frame| frame.data).collect()
}

/// The system prompts of all model calls so far.
pub(crate) fn prompts(server: &TestServer) -> Vec<String> {
    let requests = server.model.requests();
    let system = |body: &Value| match &body["messages"][0] {
        message if message["role"] == "system" => message["content"].as_str().unwrap().to_owned(),
        _ => String::new(),
    };
    requests.iter().map(|request| system(&request.body)).collect()
}

/// The names of the tools that the last model call offered.
pub(crate) fn offered(server: &TestServer) -> Vec<String> {
    let requests = server.model.requests();
    let tools = requests.last().unwrap().body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}
