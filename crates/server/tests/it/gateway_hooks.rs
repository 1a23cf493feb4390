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
    let [tool] = &told[3][1]["tools"].as_array().unwrap()[..] else { panic!("{}", told[3]) };
    assert_eq!((&tool["name"], tool["arguments"].is_object()), (&json!("todo"), true));
    assert!(tool["result"].as_str().is_some_and(|result| !result.is_empty()), "{tool}");
    assert_eq!((&told[3][1]["iteration"], &told[3][1]["platform"]), (&json!(2), &json!("loopback")));
    assert_eq!((&told[4][1]["message"], &told[4][1]["response"]), (&json!("SHOUT"), &json!("Done.")));
    assert_eq!(told[5][1]["args"], "Ur");
    assert_ne!(told[0][1]["session_id"], told[9][1]["session_id"]);
    assert_eq!(told[7][1]["session_key"], "agent:main:loopback:dm:7");
}

const RESETS: &str = r#"
import json, os
def note(name):
    def hook(**kwargs):
        with open(os.environ["WORLD"] + "/noted", "a") as f:
            f.write(json.dumps([name, kwargs]) + "\n")
    return hook
def gate(event, **kwargs):
    note("pre_gateway_dispatch")(text=event.text)
def register(ctx):
    for name in ["on_session_start", "on_session_end", "on_session_finalize", "on_session_reset"]:
        ctx.register_hook(name, note(name))
    ctx.register_hook("pre_gateway_dispatch", gate)
    ctx.register_command("echo", lambda raw: "echo " + raw)
"#;
const REWRITES: &str = "def handle(event_type, context):\n    return {'decision': 'rewrite', 'command_name': 'echo', \
                        'raw_args': context['raw_args'].upper()}\n";

#[tokio::test]
async fn a_reset_ends_the_old_session_before_the_new_one_is_told_of() {
    let (hosts, home) = user_code(RESETS, &[("['command:shout']", REWRITES)]).await;
    let bus = Arc::new(Bus::new(vec![Arc::new(hosts.clone())]));
    let server = TestServer::start_with(Setup { hooks: bus.clone(), ..Setup::default() }).await;
    let agent = server.agent_with(json!({})).await;
    let channel = Loopback::new(&server.engine, bus, &hosts, &agent);
    server.model.script([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    assert_eq!(channel.say("7", "first").await.as_deref(), Some("One."));
    assert_eq!(channel.say("7", "/shout hello").await.as_deref(), Some("echo HELLO"));
    channel.say("7", "/new").await;
    assert_eq!(channel.say("7", "second").await.as_deref(), Some("Two."));
    assert_eq!(channel.notify("7", "a job is done").await.as_deref(), Some("Three."));

    let noted = within("all observers", async {
        loop {
            let text = std::fs::read_to_string(home.path().join("noted")).unwrap_or_default();
            let noted: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            if noted.iter().filter(|note| note[0] == "on_session_end").count() == 3 {
                return noted;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let of = |name: &str| noted.iter().filter(|note| note[0] == name).collect::<Vec<_>>();
    let names: Vec<&str> = noted.iter().filter_map(|note| note[0].as_str()).collect();
    let sessions: Vec<&str> = names.into_iter().filter(|name| name.starts_with("on_")).collect();
    let expected = [
        "on_session_start",
        "on_session_end",
        "on_session_finalize",
        "on_session_reset",
        "on_session_start",
        "on_session_end",
        "on_session_end",
    ];
    assert_eq!(sessions, expected);
    let (old, new) =
        (&of("on_session_start")[0][1]["session_id"], &of("on_session_start")[1][1]["session_id"]);
    let (finalize, reset) = (&of("on_session_finalize")[0][1], &of("on_session_reset")[0][1]);
    assert_eq!((&finalize["session_id"], &finalize["platform"]), (old, &json!("loopback")));
    assert_eq!((&reset["session_id"], &reset["platform"]), (new, &json!("loopback")));
    assert_eq!((&reset["old_session_id"], &reset["new_session_id"]), (old, new));
    let texts: Vec<&Value> = of("pre_gateway_dispatch").into_iter().map(|note| &note[1]["text"]).collect();
    assert_eq!(texts, ["first", "/shout hello", "/new", "second"], "what we tell ourselves is not policed");
}
