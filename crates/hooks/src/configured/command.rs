//! A command that is started at each firing.

use std::io;
use std::path::Path;

use petasos_sandbox::Script;

use super::failure::HookFailure;
use super::judge::{Exchange, MAX_ANSWER_BYTES};
use super::place::Place;

/// Runs a command with a payload on its standard input.
pub(crate) async fn ask(
    command: &str,
    place: &Place,
    payload: &[u8],
    directory: &Path,
) -> Result<Exchange, HookFailure> {
    let arguments = place.split(command).map_err(HookFailure::Unavailable)?;
    let script =
        Script { arguments: &arguments, env: &place.env, directory, input: payload, most: MAX_ANSWER_BYTES };
    let said = script.run().await.map_err(|error| why_not_started(&arguments, &error))?;
    if !said.stderr.is_empty() {
        let stderr: String = String::from_utf8_lossy(&said.stderr).chars().take(400).collect();
        tracing::debug!(command, stderr, "a hook wrote to standard error");
    }
    Ok(Exchange {
        exit_code: said.code,
        signal: said.signal,
        stdout: String::from_utf8_lossy(&said.stdout).into_owned(),
        cut: said.cut,
        stderr: String::from_utf8_lossy(&said.stderr).into_owned(),
    })
}

fn why_not_started(arguments: &[String], error: &io::Error) -> HookFailure {
    let program = arguments.first().map(String::as_str).unwrap_or_default();
    HookFailure::Unavailable(match error.kind() {
        io::ErrorKind::NotFound => format!("the command {program} was not found"),
        io::ErrorKind::PermissionDenied => {
            format!("the command {program} is not executable; chmod +x makes it so")
        }
        _ => format!("the command {program} could not be run: {error}"),
    })
}
