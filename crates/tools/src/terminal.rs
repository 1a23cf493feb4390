//! `terminal`: runs a shell command in the workspace.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::ids::TenantId;
use petasos_core::model::ToolSpec;
use petasos_sandbox::{Ended, Limit, Network, Process, Sandbox};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout_at};

use crate::arguments::parse;
use crate::commands::{self, Approvals, patterns};
use crate::output::Collector;
use crate::processes::Processes;
use crate::redact::Redactor;
use crate::shell::Shell;
use crate::tool::{CommandOutput, Filter, Invocation, Risk, Tool, ToolOutput};
use crate::workspace::{Workspace, WorkspaceWatch, Workspaces};

pub(crate) const NAME: &str = "terminal";

const DEFAULT_SECONDS: u64 = 180;
const MAX_SECONDS: u64 = 600;
/// The code of a command whose time was up, as of the program `timeout`.
const TIMED_OUT: i32 = 124;
/// The most that is held back for hooks.
const MAX_HELD_BACK: usize = 32 * 1024 * 1024;
/// How long a command may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

const SUDO_IS_OFF: &str = "This command is not run: it calls sudo, which is off here (sandbox.sudo). Do it without sudo, \
                           or tell the user what to run.";
const SUDO_IS_NOT_FOR_THIS_TENANT: &str = "This command is not run: it calls sudo, which only sessions of the tenant \
                                           default may (sandbox.sudo). Do it without sudo, or tell the user what to run.";

/// Runs shell commands.
#[derive(Clone)]
pub(crate) struct Terminal {
    pub(crate) workspaces: Workspaces,
    pub(crate) sandbox: Sandbox,
    pub(crate) processes: Processes,
    pub(crate) approvals: Approvals,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    command: String,
    #[serde(default)]
    background: bool,
    timeout: Option<u64>,
    workdir: Option<String>,
    #[serde(default)]
    pty: bool,
}

impl Tool for Terminal {
    fn spec(&self) -> ToolSpec {
        let network = match self.sandbox.settings().network {
            Network::None => " There is no network.",
            Network::All => "",
        };
        ToolSpec {
            name: NAME.to_owned(),
            description: format!(
                "Run a shell command in the workspace, each in a shell of its own. What it leaves running ends with \
                 it: use background for servers and long work, and the tool process to look after them.{network}"
            ),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string" },
                    "background": { "type": "boolean" },
                    "timeout": { "type": "integer", "description": "Seconds, 180 unless set, at most 600." },
                    "workdir": { "type": "string", "description": "Where to run it, relative to the workspace." },
                    "pty": { "type": "boolean", "description": "Run it on a terminal." },
                },
                "required": ["command"],
            }).into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::SideEffect
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        input.get("command")?.as_str().map(str::to_owned)
    }

    fn risk(&self, input: &Map<String, Value>) -> Risk {
        let command = input.get("command").and_then(Value::as_str).unwrap_or_default();
        self.judge(command).risk
    }

    fn refusal(&self, input: &Map<String, Value>, tenant: &TenantId) -> Option<String> {
        let refused = self.sudo_command(input).is_some() && *tenant != TenantId::default_tenant();
        refused.then(|| SUDO_IS_NOT_FOR_THIS_TENANT.to_owned())
    }

    fn patterns(&self, input: &Map<String, Value>) -> Vec<String> {
        input.get("command").and_then(Value::as_str).map(patterns::offered).unwrap_or_default()
    }

    fn fits_pattern(&self, pattern: &str, input: &Map<String, Value>) -> bool {
        let command = input.get("command").and_then(Value::as_str).unwrap_or_default();
        patterns::fits(pattern, command)
    }

    fn sudo_command(&self, input: &Map<String, Value>) -> Option<String> {
        let command = input.get("command")?.as_str()?;
        let judged = self.judge(command);
        let may_run = !matches!(judged.risk, Risk::Forbidden { .. });
        (may_run && judged.sudo_calls.len() > 0).then(|| command.to_owned())
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let terminal = self.clone();
        async move { terminal.execute(&invocation).await.unwrap_or_else(ToolOutput::error) }.boxed()
    }
}

impl Terminal {
    /// Judges a command. One that calls `sudo` where that is off never runs.
    fn judge(&self, command: &str) -> commands::Judged {
        let mut judged = commands::judge(command, &self.approvals);
        let may_run = !matches!(judged.risk, Risk::Forbidden { .. });
        if may_run && judged.sudo_calls.len() > 0 && self.sandbox.settings().sudo.is_none() {
            judged.risk = Risk::Forbidden { reason: SUDO_IS_OFF.to_owned() };
        }
        judged
    }

    /// The same on a thread on which nobody waits, since reading a long command takes a while.
    async fn judge_elsewhere(&self, command: &str) -> Result<commands::Judged, String> {
        let (terminal, command) = (self.clone(), command.to_owned());
        let judged = tokio::task::spawn_blocking(move || terminal.judge(&command)).await;
        judged.map_err(|_| "This command is not run: whether it is safe could not be found out.".to_owned())
    }

    async fn execute(&self, invocation: &Invocation) -> Result<ToolOutput, String> {
        let input: Input = parse(&invocation.input)?;
        let judged = self.judge_elsewhere(&input.command).await?;
        if let Risk::Forbidden { reason } = judged.risk {
            return Err(reason);
        }
        if judged.sudo_calls.len() > 0 && invocation.tenant != TenantId::default_tenant() {
            return Err(SUDO_IS_NOT_FOR_THIS_TENANT.to_owned());
        }
        if judged.sudo_calls.len() > 0 && invocation.sudo_password.is_none() {
            return Err(
                "This command is not run: it calls sudo, and nobody gave a password for it.".to_owned()
            );
        }
        let seconds = input.timeout.unwrap_or(DEFAULT_SECONDS);
        if !input.background && !(1..=MAX_SECONDS).contains(&seconds) {
            return Err(format!(
                "timeout must be 1 to {MAX_SECONDS} seconds; use background for longer work"
            ));
        }
        let workspace = self.workspaces.opened(invocation).await?;
        let mut shell = Shell::new(&self.sandbox, &workspace, invocation);
        shell.pty = input.pty;
        shell.directory = input.workdir.as_deref();
        shell.sudo_calls = judged.sudo_calls;
        let redactor = shell.redactor();
        let watch = workspace.watch().await?;
        shell.files = watch.files();
        let mut process = shell.start(&input.command).await?;
        if input.background {
            let id = self.processes.add(&workspace, &input.command, process, redactor, watch)?;
            let hint = "It runs. Use the tool process with this process_id to see its output, wait for it or end it.";
            return Ok(ToolOutput::ok(json!({ "process_id": id, "hint": hint }).to_string()));
        }
        if !input.pty {
            process.stdin = None;
        }
        let run = Run {
            workspace: &workspace,
            redactor,
            watch,
            limit: Duration::from_secs(seconds),
            unfiltered: invocation.filter.as_ref().map(|filter| Unfiltered {
                filter,
                command: &input.command,
                directory: shell.directory(),
                bytes: Vec::new(),
            }),
        };
        Ok(run.finish(process, &invocation.tool_use_id).await)
    }
}

/// A command in the foreground.
pub(crate) struct Run<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) redactor: Redactor,
    pub(crate) watch: WorkspaceWatch,
    pub(crate) limit: Duration,
    /// What it wrote, held back for somebody who wants to see it first.
    pub(crate) unfiltered: Option<Unfiltered<'a>>,
}

/// What a command wrote and a filter has yet to see.
pub(crate) struct Unfiltered<'a> {
    filter: &'a Filter,
    command: &'a str,
    directory: PathBuf,
    bytes: Vec<u8>,
}

impl Unfiltered<'_> {
    /// What is to be shown.
    async fn shown(self, exit_code: i32) -> Vec<u8> {
        let text = String::from_utf8_lossy(&self.bytes);
        let (command, directory) = (self.command, self.directory.as_path());
        let output = CommandOutput { command, text: &text, exit_code, directory };
        let instead = self.filter.filter(output).await;
        instead.map_or(self.bytes, String::into_bytes)
    }
}

impl Run<'_> {
    /// Gathers the output until the command ends or its time is up.
    pub(crate) async fn finish(mut self, mut process: Process, tool_use_id: &str) -> ToolOutput {
        let mut collector = Collector::new(tool_use_id);
        let deadline = Instant::now() + self.limit;
        let watch = self.watch.clone();
        let (mut ended, mut over_quota) = tokio::select! {
            ended = timeout_at(deadline, self.gather(&mut process, &mut collector)) => (ended.ok(), None),
            over = watch.exceeded() => (Some(Ended::default()), Some(over)),
        };
        let in_time = ended.is_some();
        if !in_time {
            process.terminate();
            let gathering = self.gather(&mut process, &mut collector);
            ended = timeout_at(Instant::now() + GRACE, gathering).await.ok();
        }
        // What is deaf to being asked is killed.
        drop(process);
        // However it ended: what it has written counts for others too.
        over_quota = over_quota.or(watch.look().await);
        if in_time && ended.as_ref().is_some_and(|ended| exit_code(ended) != 0) {
            over_quota = over_quota.or(watch.reason());
        }
        let rest = self.redactor.finish();
        self.keep(&mut collector, &rest).await;
        if let Some(unfiltered) = self.unfiltered.take() {
            let exit_code = if in_time { ended.as_ref().map_or(-1, exit_code) } else { TIMED_OUT };
            collector.push(self.workspace, &unfiltered.shown(exit_code).await).await;
        }
        let output = collector.finish(self.workspace).await;
        if let Some(over) = over_quota {
            let exit_code = ended.as_ref().map_or(-1, exit_code);
            ToolOutput::error(json!({ "output": output, "exit_code": exit_code, "error": over }).to_string())
        } else if in_time {
            report(output, ended.unwrap_or_default())
        } else {
            let seconds = self.limit.as_secs();
            let error = format!(
                "It ran for {seconds} s, the time it had, and was ended. Use background for long work."
            );
            let text = json!({ "output": output, "exit_code": TIMED_OUT, "error": error });
            ToolOutput::error(text.to_string())
        }
    }

    async fn gather(&mut self, process: &mut Process, collector: &mut Collector) -> Ended {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match process.stdout.read(&mut buffer).await {
                Ok(0) | Err(_) => return process.wait().await,
                Ok(count) => {
                    let piece = self.redactor.push(buffer.get(..count).unwrap_or_default());
                    self.keep(collector, &piece).await;
                }
            }
        }
    }

    /// Keeps a piece of the output. What is too much to hold back is shown as it is.
    async fn keep(&mut self, collector: &mut Collector, piece: &[u8]) {
        match &mut self.unfiltered {
            Some(unfiltered) if unfiltered.bytes.len() + piece.len() <= MAX_HELD_BACK => {
                unfiltered.bytes.extend_from_slice(piece);
            }
            Some(unfiltered) => {
                tracing::warn!(
                    command = unfiltered.command,
                    "a command wrote too much for hooks to transform"
                );
                let held_back = std::mem::take(&mut unfiltered.bytes);
                self.unfiltered = None;
                collector.push(self.workspace, &held_back).await;
                collector.push(self.workspace, piece).await;
            }
            None => collector.push(self.workspace, piece).await,
        }
    }
}

/// What the model is told about a command that ended.
fn report(output: String, ended: Ended) -> ToolOutput {
    let mut text = json!({ "output": output, "exit_code": exit_code(&ended) });
    if let Some(error) = problem(&ended) {
        text["error"] = Value::String(error);
        return ToolOutput::error(text.to_string());
    }
    if ended.left_running > 0 {
        let note = format!("{} processes that it left running were ended with it.", ended.left_running);
        text["note"] = Value::String(note);
    }
    ToolOutput::ok(text.to_string())
}

/// The code that a shell would report.
pub(crate) fn exit_code(ended: &Ended) -> i32 {
    ended.code.or(ended.signal.map(|signal| 128 + signal)).unwrap_or(-1)
}

/// Why a command did not end by itself.
pub(crate) fn problem(ended: &Ended) -> Option<String> {
    let over = ended.over.map(|limit| match limit {
        Limit::Memory => "It used more memory than sandbox.memory_bytes allows and was ended.",
        Limit::Processes => "It started more processes than sandbox.processes allows and was ended.",
        Limit::UnnamedFiles => {
            "Files that it removed and had open took more room than workspaces.max_bytes allows, and it was ended."
        }
    });
    over.map(str::to_owned).or_else(|| ended.problem.clone())
}
