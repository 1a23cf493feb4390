//! What MCP servers have beyond text: pictures, instructions, progress, and schemas that vendors refuse.

use std::time::Duration;

use petasos_tools::mcp::Settings;
use serde_json::{Value, json};

use crate::mcp::{offered, program, result, session_with, settings, start, turn};

/// The function of this name as the model was told about it.
fn told(body: &Value, name: &str) -> Value {
    let tools = body["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["function"]["name"] == name);
    tool.unwrap_or_else(|| panic!("{name} in {tools:?}"))["function"].clone()
}

#[tokio::test]
async fn a_picture_reaches_the_model_and_other_content_is_named() {
    let server = start([("py", program(&["more"]))], settings(), &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    let frames = turn(&server, &session, "mcp_py_picture", json!({})).await;
    let (text, is_error) = result(&frames);
    let named = "Look.\n[image, image/png, 640x480 pixels, 29 bytes]\n\
                 [image, image/png, 3 bytes, left out: it is no PNG, JPEG, GIF or WebP]\n\
                 [audio, audio/wav, 3 bytes, left out]";
    // The surface shows text only, and a note for the picture.
    assert!(!is_error && text.starts_with(named) && text.ends_with("[image: image/png, 30 bytes]"), "{text}");
    let messages = server.model.requests()[1].body["messages"].clone();
    let seen = messages.to_string().matches("data:image/png;base64,iVBORw0KGgo").count();
    assert_eq!(seen, 1, "{messages}");
}

#[tokio::test]
async fn a_schema_with_forms_is_told_as_one_object_and_called_as_it_was_listed() {
    let server = start([("py", program(&["more"]))], settings(), &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    let frames = turn(&server, &session, "mcp_py_forms", json!({ "url": "u" })).await;
    assert_eq!(result(&frames), ("{\"url\": \"u\"}".to_owned(), false));
    let body = server.model.requests()[0].body.clone();
    let expected = json!({
        "type": "object",
        "description": "Give the arguments of one of these forms: url; or path.",
        "properties": { "url": { "type": "string" }, "path": { "type": "string" } },
        "additionalProperties": false,
    });
    assert_eq!(told(&body, "mcp_py_forms")["parameters"], expected);
    let nullable = told(&body, "mcp_py_nullable")["parameters"].clone();
    assert_eq!(nullable, json!({ "type": "object", "properties": {} }));
}

#[tokio::test]
async fn the_applications_own_tools_are_folded_too() {
    let server = start([], settings(), &[]).await;
    let schema = json!({ "type": "object", "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    let tool = json!({ "type": "custom_tool", "name": "mine", "description": "D", "inputSchema": schema });
    let agent = server.agent_with(json!({ "tools": [tool] })).await;
    let session = server.client.session(&agent).await;
    server.model.script([petasos_testkit::Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    let parameters = told(&server.model.requests()[0].body, "mine")["parameters"].clone();
    assert!(parameters["oneOf"].is_null() && parameters["properties"] == json!({}), "{parameters}");
    // The definition stays as it was given.
    let shown = server.client.get(&format!("/v1/agents/{agent}")).await.expect(200);
    assert!(shown.to_string().contains("oneOf"), "{shown}");
}

#[tokio::test]
async fn instructions_of_a_server_reach_the_model_with_its_tools() {
    let server = start([("py", program(&["instructs"]))], settings(), &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    turn(&server, &session, "mcp_py_echo", json!({ "text": "x" })).await;
    let requests = server.model.requests();
    let system = requests[0].body["messages"][0].clone();
    assert_eq!(system["role"], "system", "{system}");
    let text = system["content"].as_str().unwrap();
    let (_, said) = text.split_once("## py (mcp_py_…)\n\n").expect(text);
    assert!(said.starts_with("Call echo first.\nzzz") && said.ends_with("z…"), "{said}");
    assert_eq!(said.chars().count(), 2000);
    assert_eq!(requests[1].body["messages"][0], system);

    let off = json!({ "defaultConfig": { "enabled": false } });
    let session = session_with(&server, "py", off).await;
    server.model.script([petasos_testkit::Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    assert!(!offered(&server).contains(&"mcp_py_echo".to_owned()));
    let messages = server.model.requests().pop().unwrap().body["messages"].to_string();
    assert!(!messages.contains("Call echo first"), "{messages}");
}

#[tokio::test]
async fn progress_extends_a_call_up_to_a_bound() {
    let call_time = Duration::from_millis(1500);
    let server = start([("py", program(&["more"]))], Settings { call_time, ..settings() }, &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    let works = |steps: usize, pause: f32| json!({ "steps": steps, "pause": pause });
    let frames = turn(&server, &session, "mcp_py_works", works(10, 0.25)).await;
    assert_eq!(result(&frames), ("worked".to_owned(), false));
    let call_time = Duration::from_millis(300);
    let server = start([("py", program(&["more"]))], Settings { call_time, ..settings() }, &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    let frames = turn(&server, &session, "mcp_py_works", works(1000, 0.01)).await;
    let (text, is_error) = result(&frames);
    assert!(
        is_error && text.contains("did not answer within 3 s, the longest that progress extends"),
        "{text}"
    );
}
