//! `execute_code`.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::model::ToolSpec;
use petasos_net::{Client, Options};
use petasos_tools::{Dispatch, Dispatcher, Invocation, Risk, ToolOutput, Toolbox};
use serde_json::{Map, Value, json};

use crate::world::World;

/// Answers calls with what it was asked, and writes them down.
#[derive(Clone)]
struct Echo {
    calls: Arc<Mutex<Vec<Value>>>,
    tools: Toolbox,
}

impl Dispatch for Echo {
    fn spec(&self, tool: &str) -> Option<Arc<ToolSpec>> {
        self.tools.spec(tool).cloned()
    }

    fn call(&self, tool: &str, input: Map<String, Value>) -> BoxFuture<'_, ToolOutput> {
        self.calls.lock().unwrap().push(json!([tool, input]));
        let output = match tool {
            "write_file" => ToolOutput::error("write_file would have to ask"),
            "web_search" => ToolOutput::ok("plain text"),
            _ => ToolOutput::ok(json!({ "heard": input }).to_string()),
        };
        std::future::ready(output).boxed()
    }
}

async fn run(world: &World, code: &str) -> (Value, Vec<Value>) {
    let tools = world.toolbox.clone().with_web(Client::new(&Options::default()), None);
    let echo = Echo { calls: Arc::default(), tools };
    let mut call: Invocation = world.invocation(json!({ "code": code }));
    call.dispatcher = Some(Dispatcher::new(echo.clone()));
    let output = world.call("execute_code", call).await;
    let calls = echo.calls.lock().unwrap().clone();
    (serde_json::from_str(&output.text).expect(&output.text), calls)
}

#[tokio::test]
async fn a_script_calls_tools_and_prints() {
    let world = World::new();
    let code = "
from petasos_tools import read_file, terminal, web_extract, web_search, write_file, ToolError
print(read_file('notes.txt', limit=5)['heard'])
print(web_extract('https://a/')['heard'], terminal('ls', 30)['heard'])
print(terminal(command='ls')['heard']['command'])
print(web_search('x'))
try:
    write_file('a', 'b')
except ToolError as error:
    print('refused:', error)
open('made.txt', 'w').write('x')
";
    let (result, calls) = run(&world, code).await;
    let printed = "{'path': 'notes.txt', 'limit': 5}\n{'url': 'https://a/'} {'command': 'ls', 'timeout': 30}\nls\nplain text\nrefused: write_file would have to ask\n";
    assert_eq!(
        (result["output"].as_str(), result["exit_code"].as_i64()),
        (Some(printed), Some(0)),
        "{result}"
    );
    assert_eq!(result["tool_calls_made"], 6);
    assert_eq!(calls[0], json!(["read_file", { "path": "notes.txt", "limit": 5 }]));
    assert!(world.workspace().join("made.txt").exists());
}

#[tokio::test]
async fn a_script_that_fails_shows_its_trace() {
    let (result, _) =
        run(&World::new(), "import sys\nprint('before')\nprint('oops', file=sys.stderr)\n1/0").await;
    let output = result["output"].as_str().unwrap();
    assert!(output.starts_with("before\noops\n") && output.contains("ZeroDivisionError"), "{output}");
    assert_eq!(result["exit_code"], 1);
    let (result, _) = run(&World::new(), "this is no Python").await;
    assert!(result["output"].as_str().unwrap().contains("SyntaxError"), "{result}");
}

#[tokio::test]
async fn a_script_has_bounds() {
    let world = World::new();
    let code = "
from petasos_tools import terminal
import petasos_tools
for number in range(60):
    try:
        terminal('x')
    except petasos_tools.ToolError as error:
        print(error)
        break
";
    let (result, calls) = run(&world, code).await;
    assert!(result["output"].as_str().unwrap().contains("50 times"), "{result}");
    assert_eq!(calls.len(), 50);
    let code = "
import petasos_tools
for attempt in [lambda: petasos_tools.call('execute_code', {}), lambda: petasos_tools.terminal('x', background=True)]:
    try:
        print(attempt())
    except Exception as error:
        print(type(error).__name__)
import socket
try:
    socket.socket()
except PermissionError:
    print('no network')
";
    let (result, calls) = run(&world, code).await;
    assert_eq!(result["output"], "AttributeError\nToolError\nno network\n", "{result}");
    assert!(calls.is_empty());
}

#[tokio::test]
async fn a_script_is_judged_like_the_same_code_in_a_command() {
    let world = World::new();
    let tool = world.toolbox.get("execute_code").expect("the tool");
    let risk = |code: &str| tool.risk(json!({ "code": code }).as_object().unwrap());
    for harmless in [
        "print(sum(range(10)))",
        "import subprocess\nprint(subprocess.run(['git', 'status'], capture_output=True).stdout)",
        "from petasos_tools import terminal\nprint(terminal('ls'))  # it's a tool's call",
    ] {
        assert_eq!(risk(harmless), Risk::Ordinary, "{harmless}");
    }
    for (code, key) in [
        ("import shutil\nshutil.rmtree('build')", "recursive_delete"),
        ("import os\nos.system(input())", "unseen_code"),
        ("print(open('/etc/shadow').read())", "credentials_read"),
        (&*format!("x = '{}'", "y".repeat(200_000)), "unseen_code"),
    ] {
        let Risk::Dangerous(danger) = risk(code) else { panic!("{:?}", code.get(..40)) };
        assert_eq!(danger.pattern_keys().next(), Some(key));
    }
    let code = "import subprocess\nsubprocess.run(['rm', '-rf', '/'])";
    assert!(matches!(risk(code), Risk::Forbidden { .. }));
    let output = world.call("execute_code", world.invocation(json!({ "code": code }))).await;
    assert!(output.is_error && output.text.contains("never run"), "{}", output.text);
}
