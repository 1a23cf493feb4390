//! Arguments of `plugins`.

use clap::{Args, Subcommand};

use super::{FormatArgs, HomeArgs};

const EXAMPLES: &str = "\
Examples:
  petasos plugins list
  petasos plugins enable my-plugin
  petasos plugins disable my-plugin --json

Plugins are directories in plugins/ of the home, each with plugin.yaml and __init__.py. None is used
before it is enabled. Enabling and disabling edits the section plugins of config.yaml and nothing
else in it; a server that runs takes note when it is started again.";

/// Arguments of `plugins`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PluginsArgs {
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// Where the installation is.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: PluginsCommand,
}

/// What to do with plugins.
#[derive(Subcommand)]
pub(crate) enum PluginsCommand {
    /// List plugins, and whether they are used
    #[command(alias = "ls")]
    List,
    /// Use a plugin from the next start on
    Enable {
        /// Its name
        name: String,
        /// It is a Python package, not a directory
        #[arg(long)]
        installed: bool,
    },
    /// Do not use a plugin from the next start on
    Disable {
        /// Its name
        name: String,
    },
}
