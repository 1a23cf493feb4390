//! `petasos`: runs AI agents as durable sessions.
//!
//! This crate is the outside of the program: the command line, the configuration, the environment and the
//! terminal. It puts the other crates together and must not know anything about sessions itself.

mod admin_key;
mod agent_files;
mod api;
mod args;
mod banner;
mod commands;
mod completions;
mod config;
mod connect;
mod database;
mod default_agent;
mod definition_files;
mod delivery_secret;
mod doctor;
mod embedded;
mod env;
mod home;
mod hooks;
mod instance;
mod logging;
#[cfg(unix)]
mod open_files;
mod output;
mod own_files;
mod private_file;
mod routine_files;
mod serve;
mod server_file;
mod signals;
mod successor;
mod table;
mod talk;
#[cfg(unix)]
mod terminal;
mod traces;
mod user_code;
mod yaml;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use crate::api::Api;
use crate::args::{Cli, Command, ConnectArgs, FormatArgs};
use crate::commands::Format;
use crate::connect::{Connection, Purpose};
use crate::env::Environment;

/// The argument that makes this program the supervisor of a command. It is of no use to people.
const SUPERVISOR: &str = "__supervise";

fn main() -> ExitCode {
    // Before anything else: every command that an agent runs starts this way.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == SUPERVISOR) {
        return petasos_sandbox::supervisor::main();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(shown) => {
            // Help is an answer. Wrong usage is a failure like any other, since `run` has its own use for 2.
            let code = if shown.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
            // Nobody reads it if it cannot be printed.
            let _ = shown.print();
            return code;
        }
    };
    match start(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            output::failure(&error);
            if error.is::<signals::Interrupted>() { ExitCode::from(130) } else { ExitCode::FAILURE }
        }
    }
}

/// Does what the command line says and returns the exit code.
fn start(cli: Cli) -> Result<u8> {
    let environment = Environment::read().accepting_hooks(cli.accept_hooks);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let result = runtime.block_on(carry_out(cli.command, &environment));
    // A thread that waits for the next line of standard input must not keep the process.
    runtime.shutdown_background();
    result
}

async fn carry_out(command: Command, environment: &Environment) -> Result<u8> {
    match command {
        Command::Run(args) => return Box::pin(talk::run::run(args, environment)).await,
        Command::Doctor(args) => return Box::pin(doctor::run(&args, environment)).await,
        Command::Models(args) => return Box::pin(commands::models::run(&args, environment)).await,
        Command::Chat(args) => Box::pin(talk::chat::run(args, environment)).await?,
        Command::Serve(args) => Box::pin(serve::run(args, environment)).await?,
        Command::Hooks(args) => return Box::pin(hooks::run(args, environment)).await,
        Command::Plugins(args) => commands::plugins::run(args, environment)?,
        Command::Approvals(args) => commands::approvals::run(&args, environment)?,
        Command::Completions(args) => completions::run(args.shell)?,
        Command::OfPlugin(words) => return commands::of_plugin::run(&words, environment).await,
        Command::Keys(args) => {
            let tenant = args.connect.tenant.as_deref();
            with_server(&args.connect, args.format, environment, async |api, format| {
                commands::keys::run(api, args.command, tenant, format).await
            })
            .await?;
        }
        Command::Agents(args) => {
            with_server(&args.connect, args.format, environment, async |api, format| {
                commands::agents::run(api, args.command, format).await
            })
            .await?;
        }
        Command::Backup(args) => {
            with_server(&args.connect, args.format, environment, async |api, format| {
                commands::backup::run(api, args.file, format).await
            })
            .await?;
        }
        Command::Deliveries(args) => {
            with_server(&args.connect, args.format, environment, async |api, format| {
                commands::deliveries::run(api, args.command, format).await
            })
            .await?;
        }
        Command::Grants(args) => {
            with_server(&args.connect, args.format, environment, async |api, format| {
                commands::grants::run(api, args.command, format).await
            })
            .await?;
        }
        Command::Routines(args) => {
            with_server(&args.connect, args.format, environment, async |api, format| {
                commands::routines::run(api, args.command, format).await
            })
            .await?;
        }
        Command::Runs(args) => {
            with_server(&args.connect, args.format, environment, async |api, format| {
                commands::routines::runs(api, args.command, format).await
            })
            .await?;
        }
        Command::Sessions(args) => {
            with_server(&args.connect, args.format, environment, async |api, format| {
                commands::sessions::run(api, args.command, format).await
            })
            .await?;
        }
    }
    Ok(0)
}

/// Does something with a server, and ends the server if it was started for this.
async fn with_server(
    args: &ConnectArgs,
    format: FormatArgs,
    environment: &Environment,
    command: impl AsyncFnOnce(&Api, Format) -> Result<()>,
) -> Result<()> {
    let connection = Connection::open(args, environment, Purpose::Administer).await?;
    let result = command(&connection.api, Format::from_flag(format.json)).await;
    let closed = connection.close().await;
    result.and(closed)
}
