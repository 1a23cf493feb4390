//! The built-in tools in a test, and tools whose runs a test can count and hold up.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::{Danger, ToolEffect};
use petasos_core::model::ToolSpec;
use petasos_sandbox::{Sandbox, Settings, Supervisor};
use petasos_tools::{Approvals, Invocation, Options, Risk, Tool, ToolOutput, Toolbox, Workspaces};
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

/// The built-in tools as they are configured by default, with workspaces below `directory`. Commands run only in a
/// test binary that has `petasos_sandbox::supervisor_of_tests!()` in its root.
pub fn builtin(directory: PathBuf) -> Toolbox {
    Toolbox::builtin(builtin_options(directory, Settings::default()))
}

/// What the built-in tools of a test need.
pub fn builtin_options(directory: PathBuf, settings: Settings) -> Options {
    Options {
        workspaces: Workspaces::new(directory),
        sandbox: Sandbox::new(settings, Supervisor::of_tests()),
        approvals: Approvals::default(),
    }
}

/// A tool that counts its runs. It echoes its argument `text`, once it is let.
#[derive(Clone)]
pub struct CountingTool {
    name: &'static str,
    effect: ToolEffect,
    runs: Arc<AtomicUsize>,
    started: Arc<Semaphore>,
    permits: Option<Arc<Semaphore>>,
}

impl CountingTool {
    /// A tool that answers at once.
    pub fn new(name: &'static str, effect: ToolEffect) -> Self {
        CountingTool {
            name,
            effect,
            runs: Arc::default(),
            started: Arc::new(Semaphore::new(0)),
            permits: None,
        }
    }

    /// The same tool, which waits for [`CountingTool::let_one_finish`].
    #[must_use]
    pub fn held_up(mut self) -> Self {
        self.permits = Some(Arc::new(Semaphore::new(0)));
        self
    }

    /// How often it was started.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Waits until it was started once more.
    pub async fn wait_for_start(&self) {
        if let Ok(permit) = crate::within("the start of a tool", self.started.acquire()).await {
            permit.forget();
        }
    }

    /// Lets one run end.
    pub fn let_one_finish(&self) {
        if let Some(permits) = &self.permits {
            permits.add_permits(1);
        }
    }
}

impl Tool for CountingTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: "Counts how often it is called.".to_owned(),
            input_schema: json!({ "type": "object", "properties": { "text": { "type": "string" } } }).into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        self.effect
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        input.get("text")?.as_str().map(str::to_owned)
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let tool = self.clone();
        async move {
            tool.runs.fetch_add(1, Ordering::SeqCst);
            tool.started.add_permits(1);
            if let Some(permits) = &tool.permits
                && let Ok(permit) = permits.acquire().await
            {
                permit.forget();
            }
            ToolOutput::ok(invocation.input.get("text").and_then(Value::as_str).unwrap_or("done"))
        }
        .boxed()
    }
}

/// A tool that is as dangerous as its argument `text` says: `rm` asks, `mkfs` never runs, `sudo` needs a password. It
/// notes what it was given and must not be seen.
#[derive(Clone, Default)]
pub struct RiskyTool {
    given: Arc<Mutex<Vec<Given>>>,
}

/// What a call of [`RiskyTool`] was given beside its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Given {
    /// Secrets of the session.
    pub secrets: BTreeMap<String, String>,
    /// The password for this call.
    pub password: Option<String>,
}

impl RiskyTool {
    /// What each call was given.
    #[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
    pub fn given(&self) -> Vec<Given> {
        self.given.lock().unwrap().clone()
    }
}

fn text_of(input: &Map<String, Value>) -> &str {
    input.get("text").and_then(Value::as_str).unwrap_or_default()
}

impl Tool for RiskyTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "risky".to_owned(),
            description: "Does what it is told.".to_owned(),
            input_schema: json!({ "type": "object", "properties": { "text": { "type": "string" } } }).into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::SideEffect
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        Some(text_of(input).to_owned())
    }

    fn risk(&self, input: &Map<String, Value>) -> Risk {
        match text_of(input) {
            text if text.contains("mkfs") => Risk::Forbidden { reason: "It never runs.".to_owned() },
            text if text.contains("rm") => {
                let (pattern_key, description) = ("rm".to_owned(), "removes files".to_owned());
                Risk::Dangerous(Danger { pattern_key, description, also: Vec::new(), texts: Vec::new() })
            }
            _ => Risk::Ordinary,
        }
    }

    fn sudo_command(&self, input: &Map<String, Value>) -> Option<String> {
        Some(text_of(input)).filter(|text| text.starts_with("sudo ")).map(str::to_owned)
    }

    #[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let secrets = invocation.secrets.iter();
        self.given.lock().unwrap().push(Given {
            secrets: secrets.map(|(name, value)| (name.clone(), value.expose_secret().to_owned())).collect(),
            password: invocation.sudo_password.map(|password| password.expose_secret().to_owned()),
        });
        std::future::ready(ToolOutput::ok("done")).boxed()
    }
}
