//! Slash commands that plugins bring, for people who talk in a session.

use petasos_core::ids::{SessionId, TenantId};
use petasos_hooks::SessionRef;
use petasos_hooks::python::{Caller, PluginCommand, PythonHosts};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// What a command has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandAnswer {
    /// The text for the person, if any; why it failed if it did.
    pub text: Option<String>,
    /// Whether it failed.
    pub failed: bool,
}

impl Engine {
    /// All commands.
    pub fn commands(&self) -> Vec<PluginCommand> {
        self.shared.commands.as_ref().map(PythonHosts::commands).unwrap_or_default()
    }

    /// Runs a command for a session, with what follows its name.
    pub async fn run_command(
        &self,
        tenant: &TenantId,
        session_id: &SessionId,
        name: &str,
        args: &str,
    ) -> Result<CommandAnswer> {
        self.session(tenant, session_id).await?;
        let known = |hosts: &&PythonHosts| hosts.commands().iter().any(|command| command.name == name);
        let hosts = self.shared.commands.as_ref().filter(known);
        let hosts = hosts.ok_or_else(|| Error::NotFound { kind: "command", id: name.to_owned() })?;
        let session = SessionRef { tenant: tenant.clone(), session_id: session_id.clone() };
        let caller = Caller { session: Some(session), call_tool: None };
        Ok(match hosts.run_command(name, args, caller).await {
            Ok(text) => CommandAnswer { text, failed: false },
            Err(why) => CommandAnswer { text: Some(why), failed: true },
        })
    }
}
