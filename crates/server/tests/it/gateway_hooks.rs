//! Gateway hooks, through a channel that leads nowhere.

use std::sync::Arc;

use petasos_hooks::Bus;
use petasos_testkit::{Loopback, Reply, Setup, TestServer, within};
use serde_json::{Value, json};

use crate::plugins::user_code;

const TELLS: &str = "import json, os\ndef handle(event_type, context):\n    with open(os.environ['WORLD'] + '/told', 'a') as \
                     f:\n        f.write(json.dumps([event_type, context]) + '\\n')\n";
const DENIES: &str = "async def handle(event_type, context):\n    return {'decision': 'deny', 'message': 'not ' + \
                      context['args']}\n";
const PLUGIN: &str = r#"
def policy(event, gateway, session_store, **kwargs):
    if event.text == "listen":
        entry = session_store.get_or_create_session(event.source)
        session_store.append_to_transcript(entry.session_id, {"role": "user", "content": "overheard"})
        gateway.adapters["loopback"].send("owner", "somebody said " + event.text)
        return {"action": "skip", "reason": "only listening"}
    if event.text == "shout":
        return {"action": "rewrite", "text": "SHOUT"}
def register(ctx):
    ctx.register_hook("pre_gateway_dispatch", policy)
    ctx.register_command("weather", lambda raw: "sunny in " + raw)
"#;

#[tokio::test]
async fn a_chat_fires_every_gateway_event_in_order() {
    let events = "['session:*', 'agent:*', 'command:new', 'command:weather']";
    let hooks = [(events, TELLS), ("['command:forbidden']", DENIES)];
    let (hosts, home) = user_code(PLUGIN, &hooks).await;
    let bus = Arc::new(Bus::new(vec![Arc::new(hosts.clone())]));
    let server = TestServer::start_with(Setup { hooks: bus.clone(), ..Setup::default() }).await;
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let agent =
        server.agent_with(json!({ "tools": [{ "type": "agent_toolset", "defaultConfig": policy }] })).await;
    let channel = Loopback::new(&server.engine, bus, &hosts, &agent);

    server.model.script([Reply::tool_call("todo", json!({ "todos": ["x"] })), Reply::text("Done.")]);
    assert_eq!(channel.say("7", "shout").await.as_deref(), Some("Done."));
    assert_eq!(server.model.requests()[0].last_user_text(), "SHOUT");
    assert_eq!(channel.say("7", "/forbidden fruit").await.as_deref(), Some("not fruit"));
    assert_eq!(channel.say("7", "/weather Ur").await.as_deref(), Some("sunny in Ur"));
    assert_eq!(channel.say("7", "/new").await.as_deref(), Some("A new session."));
    assert_eq!(channel.say("7", "listen").await, None);
    assert_eq!(channel.sent()[0].content, "somebody said listen");
    server.model.script([Reply::text("I heard it.")]);
    within("the turn", channel.say("7", "what did I miss?")).await;
    let context = server.model.requests().last().unwrap().body["messages"].to_string();
    assert!(context.contains("overheard"), "{context}");

    let told = std::fs::read_to_string(home.path().join("told")).unwrap();
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = told.iter().map(|event| event[0].as_str().unwrap()).collect();
    let expected = [
        "session:start",
        "agent:start",
        "agent:step",
        "agent:step",
        "agent:end",
        "command:weather",
        "command:new",
        "session:end",
        "session:reset",
        "session:start",
        "agent:start",
        "agent:step",
        "agent:end",
    ];
    assert_eq!(names, expected);
    assert_eq!(told[3][1]["tool_names"], json!(["todo"]));
    assert_eq!((&told[3][1]["iteration"], &told[3][1]["platform"]), (&json!(2), &json!("loopback")));
    assert_eq!((&told[4][1]["message"], &told[4][1]["response"]), (&json!("SHOUT"), &json!("Done.")));
    assert_eq!(told[5][1]["args"], "Ur");
    assert_ne!(told[0][1]["session_id"], told[9][1]["session_id"]);
    assert_eq!(told[7][1]["session_key"], "agent:main:loopback:dm:7");
}
