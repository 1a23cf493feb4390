//! Arguments of `models`.

use clap::{Args, Subcommand};

use super::{FormatArgs, HomeArgs};

const EXAMPLES: &str = "\
Examples:
  petasos models list
  petasos models test                            the default_model of config.yaml
  petasos models test anthropic/claude-sonnet-4-5
  petasos models test ollama/qwen3:8b --json

Both look at this shell's environment and config.yaml; no server is needed. `test` makes a small
call, a tool call and, where the model takes pictures, a call with a picture. The exit code is 1
if one of them fails.";

/// Arguments of `models`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ModelsArgs {
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// Where the installation is.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: ModelsCommand,
}

/// What to do with models.
#[derive(Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the configured providers, and the models that are known of each
    List,
    /// Try a model with a small call, a tool call and a picture
    Test {
        /// The model [default: default_model of config.yaml]
        #[arg(value_name = "PROVIDER/MODEL")]
        model: Option<String>,
    },
}
