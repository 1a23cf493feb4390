//! Gateway hooks, and what plugins may do about messages that come in.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_hooks::python::{Gateway, OutgoingMessage};
use petasos_hooks::{ChatSource, Dispatch, GatewayEvents, Incoming};
use petasos_testkit::within;
use serde_json::{Value, json};

use super::{World, object, quick};

const TELLS: &str = "def handle(event_type, context):\n    return [event_type, context.get('platform')]\n";

#[tokio::test]
async fn handlers_are_told_in_order_and_by_kind_and_fail_alone() {
    let hooks = [
        ("a-wild", "['command:*']", TELLS),
        ("b-exact", "['command:new', 'agent:start']", TELLS),
        ("c-async", "agent:start", "async def handle(event_type, context):\n    return 'async'\n"),
        ("d-raises", "['agent:start']", "def handle(event_type, context):\n    raise ValueError('no')\n"),
        ("e-broken", "['agent:start']", "import nothing_of_that_name\n"),
        ("f-base", "['command']", TELLS),
        ("g-without", "[]", TELLS),
        ("h-nothing", "['agent:start']", "handle = None\n"),
        ("i-silent", "['agent:start']", "def handle(event_type, context):\n    pass\n"),
    ];
    let world = World::of(quick(), &[], &hooks).await;
    let emit = async |event: &str| {
        within("the handlers", world.hosts.emit(event, object(json!({ "platform": "telegram" })))).await
    };
    assert_eq!(
        emit("command:new").await,
        [json!(["command:new", "telegram"]), json!(["command:new", "telegram"])]
    );
    assert_eq!(emit("command:help").await, [json!(["command:help", "telegram"])]);
    assert_eq!(emit("agent:start").await, [json!(["agent:start", "telegram"]), json!("async")]);
    assert!(emit("gateway:startup").await.is_empty());
    let unloaded = world.hosts.unloaded();
    let names: Vec<&str> = unloaded.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["hooks/e-broken", "hooks/h-nothing"]);
}

/// A gateway that remembers what it was told to do.
#[derive(Default)]
struct Remembers(Mutex<Vec<String>>);

impl Gateway for Remembers {
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<Value, String>> {
        let OutgoingMessage { platform, chat_id, content, .. } = message;
        self.0.lock().unwrap().push(format!("send {platform} {chat_id} {content}"));
        std::future::ready(Ok(json!({ "success": true, "message_id": "m1" }))).boxed()
    }

    fn append_to_transcript(&self, session_id: String, message: Value) -> BoxFuture<'_, Result<(), String>> {
        self.0.lock().unwrap().push(format!("append {session_id} {}", message["content"]));
        std::future::ready(Ok(())).boxed()
    }

    fn session_of_chat(&self, source: Value) -> BoxFuture<'_, Result<Value, String>> {
        let session_id = format!("session_of_{}", source["chat_id"].as_str().unwrap());
        std::future::ready(Ok(json!({ "session_id": session_id }))).boxed()
    }
}

#[tokio::test]
async fn messages_can_be_skipped_rewritten_answered_and_noted() {
    let code = r#"
async def policy(event, gateway, session_store, **kwargs):
    source = event.source
    if event.text == "tell the owner":
        sent = await gateway.adapters[source.platform].send("owner", event.text)
        return {"action": "skip", "reason": sent.message_id}
    if event.text == "take note":
        entry = session_store.get_or_create_session(source)
        session_store.append_to_transcript(entry.session_id, {"role": "user", "content": event.text})
        return {"action": "skip", "reason": "noted"}
    if event.text == "rewrite":
        return {"action": "rewrite", "text": "rewritten"}
    if event.text == "edit":
        event.text = "edited"
    if event.text == "raise":
        raise ValueError("no")
def register(ctx):
    ctx.register_hook("pre_gateway_dispatch", policy)
"#;
    let world = World::with(&[("policy", code)]).await;
    let gateway = Arc::new(Remembers::default());
    world.hosts.serve_gateway(Arc::clone(&gateway) as Arc<dyn Gateway>);
    let events = GatewayEvents::new(world.bus.clone(), world.hosts.clone(), vec!["telegram".to_owned()]);
    let received = async |text: &str, internal: bool| {
        let source = ChatSource {
            platform: "telegram".to_owned(),
            chat_id: "7".to_owned(),
            chat_type: "dm".to_owned(),
            user_id: "u".to_owned(),
            ..ChatSource::default()
        };
        let message = Incoming { text: text.to_owned(), source, message_id: "1".to_owned(), internal };
        within("the hooks", events.received(&message)).await
    };
    let dispatch = async |text: &str| received(text, false).await;
    let skip = |reason: &str| Dispatch::Skip { reason: reason.to_owned() };
    let rewrite = |text: &str| Dispatch::Rewrite { text: text.to_owned() };
    assert_eq!(dispatch("tell the owner").await, skip("m1"));
    assert_eq!(dispatch("take note").await, skip("noted"));
    assert_eq!(dispatch("rewrite").await, rewrite("rewritten"));
    assert_eq!(dispatch("edit").await, rewrite("edited"));
    assert_eq!(dispatch("raise").await, Dispatch::Allow);
    assert_eq!(dispatch("hello").await, Dispatch::Allow);
    assert_eq!(received("rewrite", true).await, Dispatch::Allow, "no policy is about what we tell ourselves");
    let done = ["send telegram owner tell the owner", "append session_of_7 \"take note\""];
    assert_eq!(*gateway.0.lock().unwrap(), done);
}
