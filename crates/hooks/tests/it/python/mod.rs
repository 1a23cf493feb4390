//! Plugins and gateway hooks in the system's Python.

mod asking;
mod bounds;
mod faults;
mod gateway;
mod host_tests;
mod offers;
mod plugins;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_hooks::python::{
    GatewayHook, Patience, Pauses, Plugin, Python, PythonHosts, Selection, Settings,
};
use petasos_hooks::{Bus, CallStatus, Hooks, Observation, ToolCall, ToolResult, TurnInfo, TurnStart};
use petasos_sandbox::Supervisor;
use petasos_testkit::within;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// A home with plugins and gateway hooks, and the hosts that run them.
struct World {
    home: TempDir,
    hosts: PythonHosts,
    bus: Arc<Bus>,
}

/// The usual settings, with limits that tests can wait for.
fn quick() -> Settings {
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let python = Python { program: "python3".to_owned(), env: env.collect(), directory: PathBuf::from("/") };
    Settings {
        callback_time: Some(Duration::from_secs(20)),
        start_time: Duration::from_secs(60),
        patience: Patience {
            watch: Duration::from_millis(200),
            pong: Duration::from_millis(1500),
            grace: Duration::from_millis(300),
        },
        pauses: Pauses { first: Duration::from_secs(600), ..Pauses::default() },
        ..Settings::new(python)
    }
}

/// Settings with a short time limit for callbacks.
fn impatient() -> Settings {
    Settings { callback_time: Some(Duration::from_secs(1)), ..quick() }
}

impl World {
    async fn with(plugins: &[(&str, &str)]) -> Self {
        Self::of(quick(), plugins, &[]).await
    }

    async fn of(settings: Settings, plugins: &[(&str, &str)], hooks: &[(&str, &str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        for (name, code) in plugins {
            let directory = home.path().join("plugins").join(name);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("plugin.yaml"), format!("name: {name}\nversion: 1.0\n")).unwrap();
            fs::write(directory.join("__init__.py"), code).unwrap();
        }
        for (name, events, code) in hooks {
            let directory = home.path().join("hooks").join(name);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("HOOK.yaml"), format!("name: {name}\nevents: {events}\n")).unwrap();
            fs::write(directory.join("handler.py"), code).unwrap();
        }
        let enabled = plugins.iter().map(|(name, _)| (*name).to_owned()).collect();
        let selection = Selection { enabled, disabled: Vec::new() };
        let plugins = Plugin::discover(&home.path().join("plugins"), None, &selection);
        let hooks = GatewayHook::discover(&home.path().join("hooks"));
        let mut settings = settings;
        settings.python.directory = home.path().to_owned();
        settings.python.env.insert("WORLD".to_owned(), home.path().to_str().unwrap().to_owned());
        let hosts = PythonHosts::start(settings, Supervisor::of_tests(), &plugins, &hooks);
        within("the plugins to be loaded", hosts.loaded()).await;
        let bus = Arc::new(Bus::new(vec![Arc::new(hosts.clone())]));
        World { home, hosts, bus }
    }

    /// Whether a call of `terminal` with this command is blocked, and its arguments afterwards.
    async fn pre_tool_call(&self, command: &str) -> (Option<String>, Value) {
        let mut input = object(json!({ "command": command }));
        let call = ToolCall { tool_use_id: "toolu_1", tool: "terminal" };
        let blocked = within("pre_tool_call", self.bus.pre_tool_call(&turn(), call, &mut input)).await;
        (blocked, Value::Object(input))
    }

    async fn blocked(&self, command: &str) -> Option<String> {
        self.pre_tool_call(command).await.0
    }

    async fn context(&self, text: &str) -> Option<String> {
        let start = TurnStart { user_message: text, history: &[], is_first_turn: true };
        within("pre_llm_call", self.bus.pre_llm_call(&turn(), start)).await
    }

    async fn post_tool_call(&self, result: &str) {
        let observation = Observation::PostToolCall {
            tool_use_id: "toolu_1".to_owned(),
            tool: "terminal".to_owned(),
            input: Map::new(),
            result: result.to_owned(),
            status: CallStatus::Ok,
            duration_ms: 12,
        };
        within("post_tool_call", self.bus.observe(&turn(), observation)).await;
    }

    async fn transformed(&self, result: &str) -> Option<String> {
        let input = Map::new();
        let result =
            ToolResult { tool_use_id: "toolu_1", tool: "read_file", input: &input, result, duration_ms: 1 };
        within("transform_tool_result", self.bus.transform_tool_result(&turn(), result)).await
    }

    /// What code has written to a file of its home.
    fn written(&self, name: &str) -> String {
        fs::read_to_string(self.home.path().join(name)).unwrap_or_default()
    }
}

fn turn() -> TurnInfo {
    TurnInfo {
        tenant: TenantId::default_tenant(),
        session_id: "session_1".parse::<SessionId>().unwrap(),
        agent_id: "agent_1".parse::<AgentId>().unwrap(),
        user_id: Some("user".to_owned()),
        turn_id: "turn_1".to_owned(),
        platform: "api".to_owned(),
        model: "openai/scripted".to_owned(),
        workspace: "/".into(),
    }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

/// Code that calls a function for an event.
fn hooked(event: &str, body: &str) -> String {
    let body = body.replace('\n', "\n    ");
    format!(
        "import os\ndef hook(**kw):\n    {body}\ndef register(ctx):\n    ctx.register_hook({event:?}, hook)\n"
    )
}

const BLOCKS: &str = "def hook(args, **kw):\n    if 'rm' in args['command']:\n        return {'action': 'block', 'message': \
                      'no rm'}\ndef register(ctx):\n    ctx.register_hook('pre_tool_call', hook)\n";
