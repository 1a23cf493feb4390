//! What plugins ask of the server, and tools and commands that they bring.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_hooks::SessionRef;
use petasos_hooks::python::{AgentTurn, Caller, Sessions};
use petasos_testkit::within;
use serde_json::{Map, Value, json};

use super::{World, object};

/// Sessions that answer with what they were asked.
#[derive(Default)]
struct Echo(Mutex<Vec<String>>);

impl Sessions for Echo {
    fn call_tool(
        &self,
        session: SessionRef,
        tool: String,
        input: Map<String, Value>,
    ) -> BoxFuture<'_, Result<String, String>> {
        let answer = match tool.as_str() {
            "forbidden" => Err("it may not be called".to_owned()),
            _ => Ok(json!({ "session": session.session_id, "tool": tool, "input": input }).to_string()),
        };
        std::future::ready(answer).boxed()
    }

    fn run_agent(&self, turn: AgentTurn) -> BoxFuture<'_, Result<Value, String>> {
        let answer = json!({ "final_response": turn.text, "session_id": "session_9", "model": turn.model });
        std::future::ready(Ok(answer)).boxed()
    }

    fn say(&self, session: SessionRef, text: String) -> BoxFuture<'_, Result<(), String>> {
        self.0.lock().unwrap().push(format!("{}: {text}", session.session_id.as_str()));
        std::future::ready(Ok(())).boxed()
    }
}

#[tokio::test]
async fn tools_are_called_and_messages_are_put_into_the_session_of_the_call() {
    let code = r#"
import threading
def register(ctx):
    def hook(**kw):
        answers = [ctx.dispatch_tool("todo", {"a": 1}), ctx.dispatch_tool("forbidden", {}), ctx.inject_message("hi")]
        thread = threading.Thread(target=lambda: answers.append(ctx.dispatch_tool("todo", {})))
        thread.start()
        thread.join()
        answers.append(ctx.inject_message("there", session_id="session_2"))
        return "\n".join(map(str, answers))
    ctx.register_hook("pre_llm_call", hook)
"#;
    let world = World::with(&[("asks", code)]).await;
    let echo = Arc::new(Echo::default());
    world.hosts.serve_sessions(Arc::clone(&echo) as Arc<dyn Sessions>, "demo/echo");
    let answers = world.context("x").await.unwrap();
    let lines: Vec<&str> = answers.lines().collect();
    assert_eq!(lines[0], r#"{"session":"session_1","tool":"todo","input":{"a":1}}"#);
    assert_eq!(lines[1], r#"{"error": "it may not be called"}"#);
    assert_eq!(lines[2], "True");
    assert!(lines[3].contains("only while a session is being served"), "{answers}");
    assert_eq!(lines[4], "True");
    assert_eq!(*echo.0.lock().unwrap(), ["session_1: hi", "session_2: there"]);
}

#[tokio::test]
async fn agents_of_user_code_run_in_the_server() {
    let code = r#"
import threading
from gateway.run import _resolve_gateway_model, _resolve_runtime_agent_kwargs
from run_agent import AIAgent
def hook(**kw):
    said = []
    def work():
        agent = AIAgent(model=_resolve_gateway_model(), **_resolve_runtime_agent_kwargs(), platform="gateway",
                        quiet_mode=True, skip_context_files=True, skip_memory=True, max_iterations=20)
        result = agent.run_conversation("look around")
        said.extend([result["final_response"], result["model"], agent.session_id, agent.chat("again")])
        try:
            agent.run_conversation("x", conversation_history=[{"role": "user", "content": "y"}])
        except NotImplementedError as error:
            said.append("no history")
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()
    return " | ".join(said)
def register(ctx):
    ctx.register_hook("pre_llm_call", hook)
"#;
    let world = World::with(&[("asks", code)]).await;
    world.hosts.serve_sessions(Arc::new(Echo::default()), "demo/echo");
    let said = world.context("x").await;
    assert_eq!(said.as_deref(), Some("look around | demo/echo | session_9 | again | no history"));
}

#[tokio::test]
async fn tools_and_commands_of_plugins_are_run() {
    let code = r#"
SCHEMA = {"name": "weather", "description": "Says the weather.",
          "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
async def weather(args, **kwargs):
    return {"city": args["city"], "session": kwargs["task_id"]}
def fails(args, **kwargs):
    raise ValueError("no weather today")
def register(ctx):
    ctx.register_tool(name="weather", toolset="sky", schema=SCHEMA, handler=weather, is_async=True)
    ctx.register_tool(name="fails", toolset="sky", schema=SCHEMA, handler=fails, description="Fails.")
    ctx.register_tool(name="hidden", toolset="sky", schema=SCHEMA, handler=fails, requires_env=["NOT_SET_AT_ALL"])
    ctx.register_command("Weather", lambda raw: "in " + raw, description="Says it", args_hint="<city>")
"#;
    let world = World::with(&[("sky", code)]).await;
    let tools = world.hosts.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["weather", "fails"]);
    assert_eq!(tools[0].parameters["properties"]["city"]["type"], "string");
    assert_eq!(
        (tools[0].description.as_str(), tools[1].description.as_str()),
        ("Says the weather.", "Fails.")
    );
    let (args, kwargs) = (object(json!({ "city": "Ur" })), object(json!({ "task_id": "s" })));
    let run = |number: usize| world.hosts.run_tool(&tools[number], Caller::default(), &args, &kwargs);
    assert_eq!(within("the tool", run(0)).await.unwrap(), r#"{"city": "Ur", "session": "s"}"#);
    assert_eq!(within("the tool", run(1)).await.unwrap_err(), "ValueError: no weather today");

    let commands = world.hosts.commands();
    assert_eq!((commands[0].name.as_str(), commands[0].args_hint.as_str()), ("weather", "<city>"));
    let said = within("the command", world.hosts.run_command("weather", "Ur", Caller::default())).await;
    assert_eq!(said, Ok(Some("in Ur".to_owned())));
    assert!(within("no command", world.hosts.run_command("x", "", Caller::default())).await.is_err());
}
