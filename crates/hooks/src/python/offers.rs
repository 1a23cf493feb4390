//! What plugins offer besides hooks: tools and skills for agents, commands for people.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::call::{NOT_THERE, Repeat, call};
use super::guest::Guest;
use super::hosts::PythonHosts;
use super::message::Order;
use super::wishes::Caller;

/// A tool that a plugin gives agents.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginTool {
    /// The plugin.
    pub plugin: String,
    /// What the model calls.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether running it twice does no harm, as far as the plugin says.
    pub read_only: bool,
    /// Whether it wants to take the place of another tool of that name.
    pub overrides: bool,
}

/// A slash command that a plugin gives people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginCommand {
    /// The plugin.
    pub plugin: String,
    /// What people type after the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What may follow it.
    pub args_hint: String,
}

/// A command of the command line that a plugin brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginCliCommand {
    /// The plugin.
    pub plugin: String,
    /// What people type after the name of the program.
    pub name: String,
    /// What it does.
    pub description: String,
}

/// What came of a command of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Printed {
    /// Its exit code.
    pub code: u8,
    /// What it printed.
    pub stdout: String,
    /// What it printed beside that.
    pub stderr: String,
}

/// A skill that a plugin gives agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginSkill {
    /// What agents know it by: `<plugin>:<name>`.
    pub name: String,
    /// Its `SKILL.md`, or the directory that has one.
    pub path: PathBuf,
    /// What it is for, as far as the plugin says.
    pub description: String,
}

impl PythonHosts {
    /// The tools of all plugins.
    pub fn tools(&self) -> Vec<PluginTool> {
        let mut tools = Vec::new();
        for guest in self.shared.guests() {
            tools.extend(guest.registered().tools.iter().map(|tool| PluginTool {
                plugin: guest.key.to_string(),
                name: tool.name.clone(),
                description: tool.description.clone(),
                parameters: tool.parameters.clone(),
                read_only: tool.read_only,
                overrides: tool.overrides,
            }));
        }
        tools
    }

    /// Calls a tool of a plugin. An error is what the model is told. Its time is limited by whoever calls.
    pub async fn run_tool(
        &self,
        tool: &PluginTool,
        caller: Caller,
        args: &Map<String, Value>,
        kwargs: &Map<String, Value>,
    ) -> Result<String, String> {
        let guest = self.shared.guest(&tool.plugin).ok_or(NOT_THERE)?;
        let answer = call(&self.shared, guest, caller, None, Repeat::Never, |registered| {
            let tool = registered.tools.iter().find(|known| known.name == tool.name)?;
            Some(Order::Tool { function: tool.function, args, kwargs })
        });
        Ok(text(answer.await?.result))
    }

    /// The slash commands of all plugins.
    pub fn commands(&self) -> Vec<PluginCommand> {
        let mut commands = Vec::new();
        for guest in self.shared.guests() {
            commands.extend(guest.registered().commands.iter().map(|command| PluginCommand {
                plugin: guest.key.to_string(),
                name: command.name.clone(),
                description: command.description.clone(),
                args_hint: command.args_hint.clone(),
            }));
        }
        commands
    }

    /// Runs a slash command with what follows its name. The answer is what the person is shown, if anything.
    pub async fn run_command(
        &self,
        name: &str,
        args: &str,
        caller: Caller,
    ) -> Result<Option<String>, String> {
        let command =
            |guest: &&Arc<Guest>| guest.registered().commands.iter().any(|known| known.name == name);
        let guest = self.shared.guests().iter().find(command).ok_or(NOT_THERE)?;
        let limit = self.shared.settings.callback_time;
        let answer = call(&self.shared, guest, caller, limit, Repeat::Never, |registered| {
            let command = registered.commands.iter().find(|known| known.name == name)?;
            Some(Order::Command { function: command.function, args })
        });
        match answer.await?.result {
            Value::Null => Ok(None),
            result => Ok(Some(text(result))),
        }
    }

    /// The commands of the command line of all plugins.
    pub fn cli_commands(&self) -> Vec<PluginCliCommand> {
        let mut commands = Vec::new();
        for guest in self.shared.guests() {
            commands.extend(guest.registered().cli_commands.iter().map(|command| PluginCliCommand {
                plugin: guest.key.to_string(),
                name: command.name.clone(),
                description: command.description.clone(),
            }));
        }
        commands
    }

    /// Runs a command of the command line with the words after it, for as long as it takes.
    pub async fn run_cli_command(&self, name: &str, words: &[String]) -> Result<Printed, String> {
        let brings = |guest: &&Arc<Guest>| guest.registered().cli_command(name).is_some();
        let guest = self.shared.guests().iter().find(brings).ok_or(NOT_THERE)?;
        let answer = call(&self.shared, guest, Caller::default(), None, Repeat::Never, |registered| {
            let function = registered.cli_command(name)?;
            Some(Order::Cli { function, args: words })
        });
        serde_json::from_value(answer.await?.result).map_err(|error| error.to_string())
    }

    /// The skills of all plugins.
    pub fn skills(&self) -> Vec<PluginSkill> {
        let mut skills = Vec::new();
        for guest in self.shared.guests() {
            skills.extend(guest.registered().skills.iter().map(|skill| PluginSkill {
                name: format!("{}:{}", guest.key, skill.name),
                path: PathBuf::from(&skill.path),
                description: skill.description.clone(),
            }));
        }
        skills
    }

    /// What plugins wanted to register and there is no use for here: each plugin with the name of the method.
    pub fn ignored(&self) -> Vec<(String, String)> {
        let mut ignored = Vec::new();
        for guest in self.shared.guests() {
            let methods = guest.registered();
            ignored.extend(methods.ignored.iter().map(|method| (guest.key.to_string(), method.clone())));
        }
        ignored
    }
}

fn text(result: Value) -> String {
    match result {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
