//! Arguments of `hooks`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{FormatArgs, HomeArgs};

const HOOKS_EXAMPLES: &str = "\
Examples:
  petasos hooks list
  petasos hooks test pre_tool_call --for-tool terminal
  petasos hooks test pre_tool_call --payload-file call.json
  petasos hooks revoke '~/.petasos/agent-hooks/block-rm-rf.sh'
  petasos hooks doctor

Hooks are the commands and addresses under hooks: in config.yaml. A command runs only after somebody
agreed to it: when asked on a terminal, or for all of them with --accept-hooks,
PETASOS_ACCEPT_HOOKS=1 or hooks_auto_accept: true.";

/// Arguments of `hooks`.
#[derive(Args)]
#[command(after_help = HOOKS_EXAMPLES)]
pub(crate) struct HooksArgs {
    /// Where the installation is.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: HooksCommand,
}

/// What to do with hooks.
#[derive(Subcommand)]
pub(crate) enum HooksCommand {
    /// List the configured hooks and who may run
    #[command(visible_alias = "ls")]
    List,
    /// Fire every hook of an event once, with a made-up payload, and show what comes back
    Test {
        /// The event, for example pre_tool_call
        event: String,
        /// The tool that the made-up call is for
        #[arg(long, value_name = "TOOL")]
        for_tool: Option<String>,
        /// JSON with the callback's arguments, or with the payload that a script reads; what it holds takes the place
        /// of what is made up
        #[arg(long, value_name = "FILE")]
        payload_file: Option<PathBuf>,
    },
    /// Take back the consent to a command, at every event; counts from the next start
    #[command(visible_aliases = ["remove", "rm"])]
    Revoke {
        /// The command, as it is configured
        command: String,
    },
    /// Check every hook: is it there, may it run, was it changed, does it answer, how long does it take
    Doctor,
}
