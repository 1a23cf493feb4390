//! Commands that plugins bring: `petasos <command> …`.

use std::ffi::OsString;

use anyhow::{Result, anyhow, bail};
use clap::CommandFactory;
use petasos_hooks::python::PythonHosts;

use crate::args::Cli;
use crate::config::Config;
use crate::env::Environment;
use crate::home::Home;
use crate::instance::supervisor;
use crate::{logging, output, yaml};

const LOG_LEVEL: &str = "warn";

/// Runs the command that the first word names, and returns its exit code. Plugins are loaded for it and for nothing
/// else: there are no sessions.
pub(crate) async fn run(words: &[OsString], environment: &Environment) -> Result<u8> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Some((name, rest)) = words.split_first() else { bail!("there is no command") };
    let home = Home::find(None, environment)?;
    let config = Config::read(None, &home, environment)?;
    logging::start(
        config.log_level.as_deref().unwrap_or(LOG_LEVEL),
        config.log_format,
        environment.colours(),
        None,
    )?;
    let plugins: Vec<_> =
        config.plugins.plugins(&home).into_iter().filter(|plugin| plugin.is_enabled()).collect();
    if plugins.is_empty() {
        bail!(unknown(name, &[]));
    }
    let hosts = PythonHosts::start(config.plugins.settings(&home), supervisor(), &plugins, &[]);
    hosts.loaded().await;
    let brought: Vec<String> = hosts.cli_commands().into_iter().map(|command| command.name).collect();
    if !brought.contains(name) {
        bail!(unknown(name, &brought));
    }
    let printed = hosts.run_cli_command(name, rest).await.map_err(|why| anyhow!("{name} failed: {why}"))?;
    hosts.stop();
    output::text(&printed.stdout)?;
    output::note_part(&printed.stderr);
    Ok(printed.code)
}

fn unknown(name: &str, brought: &[String]) -> String {
    let program = Cli::command();
    let own = program.get_subcommands().map(|command| command.get_name());
    let known: Vec<&str> = own.chain(brought.iter().map(String::as_str)).collect();
    yaml::unknown("command", name, &known)
}
