//! The tools that a server has.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use petasos_core::model::ToolSpec;
use petasos_net::Client;
use petasos_sandbox::Sandbox;

use crate::commands::Approvals;
use crate::execute_code::ExecuteCode;
use crate::mcp::McpServers;
use crate::output::{is_long, keep_bounded};
use crate::patch::Patch;
use crate::process::ProcessTool;
use crate::processes::Processes;
use crate::read_file::ReadFile;
use crate::search_files::SearchFiles;
use crate::terminal::Terminal;
use crate::todo::Todo;
use crate::tool::{Audience, Invocation, Tool, ToolOutput};
use crate::web_extract::WebExtract;
use crate::web_search::{SearchEngine, WebSearch};
use crate::workspace::Workspaces;
use crate::write_file::WriteFile;

/// What the built-in tools need.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directories that they work in.
    pub workspaces: Workspaces,
    /// What runs commands.
    pub sandbox: Sandbox,
    /// What the configuration says about commands.
    pub approvals: Approvals,
}

/// Tools by name, and the MCP servers that have more.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: BTreeMap<String, Known>,
    mcp: McpServers,
    /// Where tools work and long results are kept, if anywhere.
    workspaces: Option<Workspaces>,
    /// The commands in the background there.
    processes: Processes,
}

/// A tool, and how models are told about it. That is made once, because every model call reads it.
#[derive(Clone)]
struct Known {
    spec: Arc<ToolSpec>,
    tool: Arc<dyn Tool>,
}

impl Toolbox {
    /// The built-in tools.
    pub fn builtin(options: Options) -> Self {
        let Options { workspaces, sandbox, approvals } = options;
        let mut toolbox = Toolbox { workspaces: Some(workspaces.clone()), ..Toolbox::default() };
        let processes = toolbox.processes.clone();
        toolbox.add(ExecuteCode {
            workspaces: workspaces.clone(),
            sandbox: sandbox.clone(),
            approvals: approvals.clone(),
        });
        toolbox.add(Patch { workspaces: workspaces.clone() });
        toolbox.add(ReadFile { workspaces: workspaces.clone() });
        toolbox.add(SearchFiles { workspaces: workspaces.clone() });
        toolbox.add(WriteFile { workspaces: workspaces.clone() });
        toolbox.add(ProcessTool {
            workspaces: workspaces.clone(),
            processes: processes.clone(),
            approvals: approvals.clone(),
        });
        toolbox.add(Terminal { workspaces, sandbox, processes, approvals });
        toolbox.add(Todo);
        toolbox
    }

    /// Adds a tool, in place of one of the same name.
    pub fn add(&mut self, tool: impl Tool) {
        let spec = Arc::new(tool.spec());
        self.tools.insert(spec.name.clone(), Known { spec, tool: Arc::new(tool) });
    }

    /// The same with these MCP servers.
    #[must_use]
    pub fn with_mcp(mut self, mcp: McpServers) -> Self {
        self.mcp = mcp;
        self
    }

    /// The same with the tools that look into the web: pages through this guarded client, and this search engine.
    #[must_use]
    pub fn with_web(mut self, client: Client, engine: Option<Arc<dyn SearchEngine>>) -> Self {
        self.add(WebSearch { engine });
        self.add(WebExtract { client, asks: false });
        self
    }

    /// The same, but a person is asked before `web_extract` reads a page through this guarded client, unless a policy
    /// says otherwise.
    #[must_use]
    pub fn asking_before_web_extract(mut self, client: Client) -> Self {
        self.add(WebExtract { client, asks: true });
        self
    }

    /// Where the built-in tools work, if there are any.
    pub fn workspaces(&self) -> Option<&Workspaces> {
        self.workspaces.as_ref()
    }

    /// Ends the commands in the background of a workspace, and forgets them.
    pub fn end_commands(&self, workspace: &Path) {
        self.processes.forget(workspace);
    }

    /// The MCP servers.
    pub fn mcp(&self) -> &McpServers {
        &self.mcp
    }

    /// What the model gets of a result from elsewhere: of a long one the beginning, the end, and the path of all of it
    /// in the workspace of the call.
    pub async fn keep_long_output(&self, invocation: &Invocation, output: ToolOutput) -> ToolOutput {
        let Some(workspaces) = self.workspaces.as_ref().filter(|_| is_long(&output.text)) else {
            return output;
        };
        match workspaces.opened(invocation).await {
            Ok(workspace) => {
                let text = keep_bounded(&workspace, &invocation.tool_use_id, output.text.clone()).await;
                ToolOutput { text, ..output }
            }
            Err(_) => output,
        }
    }

    /// The tool of that name; `shell` is `terminal`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(canonical_name(name)).map(|known| &known.tool)
    }

    /// How models are told about the tool of that name.
    pub fn spec(&self, name: &str) -> Option<&Arc<ToolSpec>> {
        self.tools.get(canonical_name(name)).map(|known| &known.spec)
    }

    /// How models are told about the tools that are of use to somebody, by name.
    pub fn specs(&self, audience: Audience) -> impl Iterator<Item = &Arc<ToolSpec>> {
        self.tools.values().filter(move |known| known.tool.is_of_use(audience)).map(|known| &known.spec)
    }

    /// All tools, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.values().map(|known| &known.tool)
    }
}

/// The name under which a tool is known, for a name that a model or a definition may use.
pub fn canonical_name(name: &str) -> &str {
    match name {
        "shell" => "terminal",
        name => name,
    }
}

/// Every name that a definition may use for a tool.
pub fn all_names(name: &str) -> Vec<&str> {
    match canonical_name(name) {
        "terminal" => vec!["terminal", "shell"],
        name => vec![name],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petasos_sandbox::Supervisor;

    fn builtin() -> Toolbox {
        let sandbox = Sandbox::new(Default::default(), Supervisor::this_program(&[]));
        let workspaces = Workspaces::new("/nowhere".into());
        Toolbox::builtin(Options { workspaces, sandbox, approvals: Approvals::default() })
    }

    #[test]
    fn every_builtin_has_an_object_schema_and_a_description() {
        for tool in builtin().iter() {
            let spec = tool.spec();
            assert_eq!(spec.input_schema["type"], "object", "{}", spec.name);
            assert!(!spec.description.is_empty(), "{}", spec.name);
        }
    }

    #[test]
    fn all_of_them_together_are_small() {
        let toolbox = builtin();
        let specs = toolbox.iter().map(|tool| tool.spec()).chain([crate::clarify::spec()]);
        let sizes = specs.map(|spec| {
            (spec.name.len() + spec.description.len() + spec.input_schema.to_string().len(), spec.name)
        });
        let sizes: Vec<(usize, String)> = sizes.collect();
        let total: usize = sizes.iter().map(|(size, _)| size).sum();
        assert!(total < 12_000, "{total} bytes go to the model with every call: {sizes:?}");
    }
}
