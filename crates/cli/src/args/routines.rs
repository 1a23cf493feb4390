//! Arguments of `routines` and `runs`.

use clap::{Args, Subcommand};

use super::{ConnectArgs, FormatArgs, ListArgs};

const ROUTINES_EXAMPLES: &str = "\
Examples:
  petasos routines list
  petasos routines trigger kyc --callback-url https://example.com/done
  petasos routines trigger kyc --callback-url https://example.com/done --input '{\"name\": \"Ada\"}'
  petasos routines runs kyc

Files in routines/ of the home (.yaml, .yml, .json) are routines: the file's name is the routine's
id, the tenant is default. They are read at the start and whenever they change. Removing a file
leaves its routine as it is: remove that with petasos routines delete.";

/// Arguments of `routines`.
#[derive(Args)]
#[command(after_help = ROUTINES_EXAMPLES)]
pub(crate) struct RoutinesArgs {
    /// How the server is reached.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: RoutinesCommand,
}

/// What to do with routines.
#[derive(Subcommand)]
pub(crate) enum RoutinesCommand {
    /// List routines
    List,
    /// Show one routine
    Show {
        /// The routine
        id: String,
    },
    /// Ask for a run
    Trigger {
        /// The routine
        id: String,
        /// What the run works on, as JSON
        #[arg(long, value_name = "JSON", default_value = "{}")]
        input: String,
        /// Where the run reports
        #[arg(long, value_name = "URL")]
        callback_url: String,
        /// The session that it is to be a turn of [default: one of its own]
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Under the same key the same run is meant
        #[arg(long = "idempotency-key", value_name = "TEXT")]
        idempotency_key: Option<String>,
    },
    /// List the runs of a routine, newest first
    Runs {
        /// The routine
        id: String,
        /// How much is shown.
        #[command(flatten)]
        list: ListArgs,
    },
    /// Remove a routine; its runs stay
    Delete {
        /// The routine
        id: String,
    },
}

const RUNS_EXAMPLES: &str = "\
Examples:
  petasos runs show run_0199…
  petasos runs cancel run_0199…";

/// Arguments of `runs`.
#[derive(Args)]
#[command(after_help = RUNS_EXAMPLES)]
pub(crate) struct RunsArgs {
    /// How the server is reached.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: RunsCommand,
}

/// What to do with runs.
#[derive(Subcommand)]
pub(crate) enum RunsCommand {
    /// Show one run
    Show {
        /// The run
        id: String,
    },
    /// End a run before it ends by itself
    Cancel {
        /// The run
        id: String,
    },
}
