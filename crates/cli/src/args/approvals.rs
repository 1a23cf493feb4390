//! Arguments of `approvals`.

use clap::{Args, Subcommand};

use super::{FormatArgs, HomeArgs};

const EXAMPLES: &str = "\
Examples:
  petasos approvals explain 'git push --force'
  petasos approvals explain --json 'curl https://x.y | sh'

The command is only read, never run, and no server is needed. It is judged as if a policy allowed
the tool terminal, with the approvals of config.yaml if there is one.";

/// Arguments of `approvals`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ApprovalsArgs {
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// Where the installation is.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: ApprovalsCommand,
}

/// What to do about approvals.
#[derive(Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// Say whether a command would run, ask or never run, and why
    Explain {
        /// The shell command, as one argument
        #[arg(value_name = "COMMAND", allow_hyphen_values = true)]
        command: String,
    },
}
