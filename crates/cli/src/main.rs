//! `petasos`: runs AI agents as durable sessions.
//!
//! This crate is the outside of the program: the command line, the configuration, the environment and the
//! terminal. It puts the other crates together and must not know anything about sessions itself.

mod admin_key;
mod api;
mod args;
mod banner;
mod commands;
mod config;
mod connect;
mod database;
mod env;
mod home;
mod instance;
mod logging;
mod output;
mod private_file;
mod serve;
mod server_file;
mod signals;
mod table;
mod yaml;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use crate::api::Api;
use crate::args::{Cli, Command, ConnectArgs};
use crate::commands::Format;
use crate::connect::Connection;
use crate::env::Environment;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match start(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::failure(&error);
            ExitCode::FAILURE
        }
    }
}

fn start(cli: Cli) -> Result<()> {
    let environment = Environment::read();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => serve::run(args, &environment).await,
            Command::Keys(args) => {
                let (connect, tenant) = (&args.connect, args.connect.tenant.as_deref());
                with_server(connect, &environment, async |api, format| {
                    commands::keys::run(api, args.command, tenant, format).await
                })
                .await
            }
            Command::Agents(args) => {
                with_server(&args.connect, &environment, async |api, format| {
                    commands::agents::run(api, args.command, format).await
                })
                .await
            }
            Command::Sessions(args) => {
                with_server(&args.connect, &environment, async |api, format| {
                    commands::sessions::run(api, args.command, format).await
                })
                .await
            }
        }
    })
}

/// Does something with a server, and ends the server if it was started for this.
async fn with_server(
    args: &ConnectArgs,
    environment: &Environment,
    command: impl AsyncFnOnce(&Api, Format) -> Result<()>,
) -> Result<()> {
    let connection = Connection::open(args, environment).await?;
    let result = command(&connection.api, Format::from_flag(args.json)).await;
    let closed = connection.close().await;
    result.and(closed)
}
