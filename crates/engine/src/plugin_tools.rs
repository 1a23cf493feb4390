//! Tools that plugins bring.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::json_schema::check_bounds;
use petasos_core::model::ToolSpec;
use petasos_hooks::python::{CallTool, Caller, PluginTool, PythonHosts};
use petasos_hooks::{SessionRef, json_result};
use petasos_tools::{
    Dispatcher, Invocation, Tool, ToolOutput, Toolbox, clarify, delegate_task, request_secret,
};
use serde_json::{Map, Value, json};

/// What the engine itself carries out or adds; nobody can put something else in its place.
const OURS: [&str; 8] = [
    clarify::NAME,
    delegate_task::NAME,
    request_secret::NAME,
    "memory",
    "session_search",
    "skill_manage",
    "skill_view",
    "skills_list",
];
/// The longest name that providers take.
const MAX_NAME: usize = 64;
const PREVIEW: usize = 200;

/// Adds the tools of plugins to those that agents have. One that has the name of another needs `may_override` to
/// list its plugin; the log says which are left out.
pub fn add_plugin_tools(tools: &mut Toolbox, hosts: &PythonHosts, may_override: &BTreeSet<String>) {
    for tool in hosts.tools() {
        match problem(tools, &tool, may_override) {
            None => tools.add(ToolOfPlugin { hosts: hosts.clone(), tool: Arc::new(tool) }),
            Some(problem) => {
                tracing::warn!(
                    plugin = tool.plugin,
                    tool = tool.name,
                    "a plugin's tool is left out: {problem}"
                );
            }
        }
    }
}

fn problem(tools: &Toolbox, tool: &PluginTool, may_override: &BTreeSet<String>) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if tool.name.len() > MAX_NAME || !tool.name.bytes().all(is_plain) {
        return Some("its name may have 64 letters, digits, '_' and '-'".to_owned());
    }
    if !tool.parameters.is_object() {
        return Some("its parameters are no JSON Schema".to_owned());
    }
    if let Err(problem) = check_bounds(&tool.parameters) {
        return Some(format!("its parameters: {problem}"));
    }
    let is_ours = OURS.contains(&tool.name.as_str());
    let is_taken = is_ours || tools.get(&tool.name).is_some();
    if is_taken && (is_ours || !tool.overrides || !may_override.contains(&tool.plugin)) {
        return Some(format!(
            "there is another of this name; to replace a tool, register it with override=True and set \
             plugins.entries.{}.allow_tool_override",
            tool.plugin
        ));
    }
    None
}

/// A tool that a plugin carries out.
struct ToolOfPlugin {
    hosts: PythonHosts,
    tool: Arc<PluginTool>,
}

impl Tool for ToolOfPlugin {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.tool.name.clone(),
            description: self.tool.description.clone(),
            input_schema: self.tool.parameters.clone().into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        if self.tool.read_only { ToolEffect::ReadOnly } else { ToolEffect::SideEffect }
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        Some(Value::Object(input.clone()).to_string().chars().take(PREVIEW).collect())
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let (hosts, tool) = (self.hosts.clone(), Arc::clone(&self.tool));
        async move {
            let kwargs = json!({
                "task_id": invocation.session_id,
                "session_id": invocation.session_id,
                "tool_call_id": invocation.tool_use_id,
                "agent_id": invocation.agent_id,
                "user_id": invocation.user_id,
            });
            let kwargs = kwargs.as_object().cloned().unwrap_or_default();
            let session = SessionRef { tenant: invocation.tenant, session_id: invocation.session_id };
            let caller = Caller { session: Some(session), call_tool: invocation.dispatcher.map(call_tool) };
            match hosts.run_tool(&tool, caller, &invocation.input, &kwargs).await {
                Ok(text) => ToolOutput::ok(text),
                Err(why) => ToolOutput::error(format!("Error executing {}: {why}", tool.name)),
            }
        }
        .boxed()
    }
}

/// Lets the code of a tool call other tools.
fn call_tool(dispatcher: Dispatcher) -> CallTool {
    Arc::new(move |tool, input| {
        let dispatcher = dispatcher.clone();
        async move { text(dispatcher.call(&tool, input).await) }.boxed()
    })
}

/// What plugins are told about a call.
pub(crate) fn text(output: ToolOutput) -> Result<String, String> {
    if output.is_error { Err(output.text) } else { Ok(json_result(&output.text)) }
}
