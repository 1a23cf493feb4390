//! The built-in tools with workspaces of their own.

use std::path::PathBuf;

use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_sandbox::Settings;
use petasos_testkit::{tools, within};
use petasos_tools::{Invocation, ToolOutput, Toolbox, Workspaces};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) home: TempDir,
    pub(crate) toolbox: Toolbox,
    workspaces: Workspaces,
    calls: std::cell::Cell<usize>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let home = tempfile::tempdir().unwrap();
        let options = tools::builtin_options(home.path().join("workspaces"), settings);
        let workspaces = options.workspaces.clone();
        World { home, toolbox: Toolbox::builtin(options), workspaces, calls: Default::default() }
    }

    /// A call by the user `ada`.
    pub(crate) fn invocation(&self, input: Value) -> Invocation {
        self.calls.set(self.calls.get() + 1);
        let Value::Object(input) = input else { panic!("arguments are an object") };
        Invocation {
            tool_use_id: format!("toolu_{}", self.calls.get()),
            input,
            tenant: TenantId::default_tenant(),
            session_id: "session_1".parse::<SessionId>().unwrap(),
            agent_id: "agent_1".parse::<AgentId>().unwrap(),
            user_id: Some("ada".to_owned()),
            secrets: Default::default(),
            sudo_password: None,
            dispatcher: None,
            filter: None,
        }
    }

    /// The workspace of `ada`.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.workspaces.open(&self.invocation(json!({}))).unwrap().path().to_owned()
    }

    pub(crate) async fn call(&self, tool: &str, invocation: Invocation) -> ToolOutput {
        within(tool, self.toolbox.get(tool).unwrap().run(invocation)).await
    }

    /// Calls a tool. The result must be good.
    pub(crate) async fn ok(&self, tool: &str, input: Value) -> Value {
        let output = self.call(tool, self.invocation(input.clone())).await;
        assert!(!output.is_error, "{tool} {input}: {}", output.text);
        serde_json::from_str(&output.text).expect(&output.text)
    }

    /// Calls a tool that must fail, and returns what it says.
    pub(crate) async fn error(&self, tool: &str, input: Value) -> String {
        let output = self.call(tool, self.invocation(input.clone())).await;
        assert!(output.is_error, "{tool} {input}: {}", output.text);
        output.text
    }
}
