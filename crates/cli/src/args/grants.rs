//! Arguments of `grants`.

use clap::{Args, Subcommand};

use super::{ConnectArgs, FormatArgs};

const EXAMPLES: &str = "\
Examples:
  petasos grants list --agent support
  petasos grants list --agent support --user ada --json
  petasos grants revoke --agent support --user ada grant_6f1d…
  petasos grants revoke --agent support terminal

A grant is a permission that a person gave for good: a whole tool, a danger, or the commands
of a pattern.";

/// Arguments of `grants`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GrantsArgs {
    /// How the server is reached.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: GrantsCommand,
}

/// What to do with grants.
#[derive(Subcommand)]
pub(crate) enum GrantsCommand {
    /// List what an agent may do without asking
    List {
        /// Whose grants.
        #[command(flatten)]
        whose: WhoseArgs,
    },
    /// Revoke a grant: the calls that it allowed ask again
    Revoke {
        /// Whose grants.
        #[command(flatten)]
        whose: WhoseArgs,
        /// The id of the grant, or its tool
        grant: String,
    },
}

/// Whose grants are meant.
#[derive(Args)]
pub(crate) struct WhoseArgs {
    /// The agent that has them
    #[arg(long, value_name = "ID")]
    pub(crate) agent: String,
    /// The user who gave them [default: all users]
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
}
