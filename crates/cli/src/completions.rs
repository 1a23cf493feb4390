//! `petasos completions`.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::output;

/// Prints the completion script for a shell.
pub(crate) fn run(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "petasos", &mut script);
    output::text(&String::from_utf8(script)?)
}
