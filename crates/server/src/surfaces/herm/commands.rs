//! Slash commands that plugins bring, for clients in which people type.

use axum::Json;
use axum::extract::{Path, State};
use axum::routing;
use petasos_core::key::KeyScope;
use petasos_engine::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;

/// All commands.
#[derive(Serialize, JsonSchema)]
struct Commands {
    data: Vec<Command>,
}

/// A command.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Command {
    /// What people type after the slash.
    name: String,
    description: String,
    /// What may follow it.
    args_hint: String,
    /// The plugin that brings it.
    plugin: String,
}

/// A command to run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunCommand {
    /// Its name, without the slash.
    name: String,
    /// What follows it.
    #[serde(default)]
    args: String,
}

/// What came of a command.
#[derive(Serialize, JsonSchema)]
struct CommandResult {
    name: String,
    /// What the person is shown, if anything; why it failed if it did.
    text: Option<String>,
    failed: bool,
}

pub(super) fn api() -> Api {
    let list = Operation::new::<Commands>(
        "listCommands",
        "The slash commands that plugins bring.",
        KeyScope::SessionsRead,
    );
    let run = Operation::new::<CommandResult>(
        "runCommand",
        "Runs a slash command of a plugin for a session.",
        KeyScope::SessionsWrite,
    );
    Api::default().get("/v1/commands", routing::get(self::list), list).post(
        "/v1/sessions/{sessionId}/commands",
        routing::post(self::run),
        run.takes::<RunCommand>(),
    )
}

async fn list(State(engine): State<Engine>, _: ReadsSessions) -> Json<Commands> {
    let commands = engine.commands().into_iter().map(|command| Command {
        name: command.name,
        description: command.description,
        args_hint: command.args_hint,
        plugin: command.plugin,
    });
    Json(Commands { data: commands.collect() })
}

async fn run(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
    Body(RunCommand { name, args }): Body<RunCommand>,
) -> Result<Json<CommandResult>, Problem> {
    let answer = engine.run_command(&tenant, &id("session", &session)?, &name, &args).await?;
    Ok(Json(CommandResult { name, text: answer.text, failed: answer.failed }))
}
