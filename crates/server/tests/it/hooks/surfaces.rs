//! Hooks fire on every surface, and are told which.

use std::sync::Arc;

use petasos_core::ids::TenantId;
use petasos_hooks::Bus;
use petasos_net::{Egress, Guard};
use petasos_testkit::{Loopback, Reply, Setup, TestServer, within};
use serde_json::{Value, json};

use super::world::{Scripts, turn};
use crate::plugins::user_code;

#[tokio::test]
async fn every_surface_fires_hooks_under_its_name() {
    let scripts = Scripts::new();
    let names = ["pre_llm_call", "on_session_end"];
    let hooks: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), json!([{ "command": scripts.recorder(name) }])))
        .collect();
    let guard = Guard::new(Egress { allow: vec!["127.0.0.1".parse().unwrap()], only_hosts: Vec::new() });
    let setup = Setup { hooks: scripts.hooks(&hooks.into()), guard, ..Setup::default() };
    let server = TestServer::start_with(setup).await;
    let agent = server.agent_with(json!({})).await;
    let client = &server.client;
    let said = || server.model.script([Reply::text("Done.")]);

    said();
    turn(&server, &client.session(&agent).await, "api").await;
    said();
    let cli = client.with_header("x-petasos-platform", "cli");
    turn(&server, &cli.session(&agent).await, "cli").await;
    said();
    let made = client.post("/aap/sessions", json!({ "agent": { "name": agent } })).await.expect(201);
    let path = format!("/aap/sessions/{}/turns", made["sessionId"].as_str().unwrap());
    client.post(&path, json!({ "messages": [{ "role": "user", "content": "aap" }] })).await.expect(200);
    said();
    let definition = json!({ "name": "Support", "model": "openai/scripted" });
    let (tenant, id) = (TenantId::default_tenant(), "interactiveAgent".parse().unwrap());
    let definition = serde_json::from_value(definition).unwrap();
    server.engine.create_agent(&tenant, Some(id), definition).await.unwrap();
    let made = client.post("/conversation/sessions", json!({})).await.expect(201);
    let path = format!("/conversation/sessions/{}/events", made["id"].as_str().unwrap());
    client.post(&path, json!({ "kind": "user_message", "text": "conversation" })).await.expect(201);
    scripts.wait_for("on_session_end", 4).await;
    server.model.script([Reply::tool_call("emit_output", json!({ "output": { "ok": true } }))]);
    let routine = json!({
        "title": "Check",
        "description": "Check it.",
        "agent": { "model": "openai/scripted" },
        "output_schema": { "type": "object", "properties": { "ok": { "type": "boolean" } } },
    });
    client.put("/routines/check", routine).await.expect(201);
    let run = client.post("/routines/check/trigger", json!({ "callback_url": "http://127.0.0.1:9/" })).await;
    assert!([200, 202].contains(&run.status), "{:?}", run.body);

    for name in names {
        let told = scripts.wait_for(name, 5).await;
        let platforms: Vec<&str> =
            told.iter().map(|told| told["extra"]["platform"].as_str().unwrap()).collect();
        assert_eq!(platforms, ["api", "cli", "aap", "conversation", "routine"], "{name}");
    }
}

#[tokio::test]
async fn plugins_come_before_commands_in_chats_too() {
    let scripts = Scripts::new();
    let code = "def register(ctx):\n    ctx.register_hook('pre_llm_call', lambda platform, **kw: 'plugin on ' + platform)\n";
    let (hosts, _home) = user_code(code, &[]).await;
    let command = scripts.script("context.sh", r#"cat > /dev/null; echo '{"context": "command"}'"#);
    let commands = scripts.source(&json!({ "pre_llm_call": [{ "command": command }] }));
    let bus = Arc::new(Bus::new(vec![Arc::new(hosts.clone()), commands]));
    let server = TestServer::start_with(Setup { hooks: bus.clone(), ..Setup::default() }).await;
    let agent = server.agent_with(json!({})).await;
    let channel = Loopback::new(&server.engine, bus, &hosts, &agent);
    server.model.script([Reply::text("Done.")]);
    within("the chat", channel.say("7", "hello")).await;
    assert_eq!(server.model.requests()[0].last_user_text(), "hello\n\nplugin on loopback\n\ncommand");
}
