//! The command line.

mod admin;
mod approvals;
mod deliveries;
mod grants;
mod hooks;
mod models;
mod plugins;
mod routines;
mod talk;

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use self::admin::{
    AgentsArgs, AgentsCommand, BackupArgs, KeysArgs, KeysCommand, SessionFilterArgs, SessionsArgs,
    SessionsCommand,
};
pub(crate) use self::approvals::{ApprovalsArgs, ApprovalsCommand};
pub(crate) use self::deliveries::{DeliveriesArgs, DeliveriesCommand, DeliveryFilterArgs};
pub(crate) use self::grants::{GrantsArgs, GrantsCommand, WhoseArgs};
pub(crate) use self::hooks::{HooksArgs, HooksCommand};
pub(crate) use self::models::{ModelsArgs, ModelsCommand};
pub(crate) use self::plugins::{PluginsArgs, PluginsCommand};
pub(crate) use self::routines::{RoutinesArgs, RoutinesCommand, RunsArgs, RunsCommand};
pub(crate) use self::talk::{ChatArgs, PartnerArgs, RunArgs};

const EXAMPLES: &str = "\
Examples:
  petasos serve                                  the server on 127.0.0.1:7380, data in ~/.petasos
  petasos serve --listen 0.0.0.0:8080 --data-dir /var/lib/petasos
  petasos run 'Say hello'                        one turn, the answer on standard output
  petasos chat                                   talk in the terminal
  petasos agents create agent.yaml               a new agent from a file
  petasos keys create --name ci --scope sessions:read
  petasos backup copy.db                         everything, while the server runs

Environment:
  PETASOS_HOME      the home directory (default ~/.petasos)
  PETASOS_API_KEY   the admin key of the server, and the key that commands use
  PETASOS_LISTEN    the address to listen on
  PETASOS_LOG       how much is logged: error, warn, info, debug, trace or a filter
  PETASOS_URL       the server that commands talk to
  PETASOS_ACCEPT_HOOKS
                    1 agrees to every hook that is configured
  NO_COLOR          no colours, not even on a terminal
  OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, OLLAMA_HOST, …
                    model providers; docs/models.md lists them all";

/// Runs AI agents as durable sessions, over the session protocols that applications already speak.
#[derive(Parser)]
#[command(name = "petasos", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Agree to every hook that is configured, now and later
    #[arg(long, global = true, help_heading = HOOKS)]
    pub(crate) accept_hooks: bool,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the server
    Serve(ServeArgs),
    /// Run one turn and print what the agent says
    Run(RunArgs),
    /// Talk to an agent in the terminal
    Chat(ChatArgs),
    /// Make, list and revoke API keys
    Keys(KeysArgs),
    /// Create, change and look at agents
    Agents(AgentsArgs),
    /// Look at sessions, put them away, delete them
    Sessions(SessionsArgs),
    /// List and revoke what agents may do without asking
    Grants(GrantsArgs),
    /// Look at webhooks and callbacks on their way out, and replay them
    Deliveries(DeliveriesArgs),
    /// Look at routines, and ask for runs
    Routines(RoutinesArgs),
    /// Look at runs of routines, and cancel them
    Runs(RunsArgs),
    /// Copy the whole database while the server runs
    Backup(BackupArgs),
    /// List, try out and check hooks, and take back consent to them
    Hooks(HooksArgs),
    /// List plugins, switch them on and off
    Plugins(PluginsArgs),
    /// List model providers, and try a model
    Models(ModelsArgs),
    /// Say what would happen to a command of an agent, and why
    Approvals(ApprovalsArgs),
    /// Check the installation and say how to mend it
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// A command that a plugin brings, and the words after it
    #[command(external_subcommand)]
    OfPlugin(Vec<OsString>),
}

/// Headings under which help texts list the options that many commands share.
const HOME: &str = "Where the data is";
const SERVER: &str = "Which server";
const HOOKS: &str = "Hooks";

/// Where an installation is.
#[derive(Args, Clone, Default)]
pub(crate) struct HomeArgs {
    /// The home directory [default: $PETASOS_HOME, else ~/.petasos]
    #[arg(long, value_name = "DIR", global = true, help_heading = HOME)]
    pub(crate) data_dir: Option<PathBuf>,
    /// The configuration [default: config.yaml in the home, if it is there]
    #[arg(long, value_name = "FILE", global = true, help_heading = HOME)]
    pub(crate) config: Option<PathBuf>,
    /// The database, as sqlite:PATH [default: petasos.db in the home]
    #[arg(long, value_name = "URL", global = true, help_heading = HOME)]
    pub(crate) database_url: Option<String>,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  petasos serve
  petasos serve --listen 0.0.0.0:8080 --data-dir /var/lib/petasos
  OLLAMA_HOST=127.0.0.1 petasos serve            with the models of Ollama as ollama/…

The first start makes an admin key, prints it once and keeps it in admin.key in the home.
SIGINT or SIGTERM stops the server: turns have 10 seconds to end, what is cut off goes on
at the next start. A second signal stops it at once, and nothing acknowledged is lost.

Files in agents/ of the home are agents: see petasos agents --help.";

/// Arguments of `serve`.
#[derive(Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The address to listen on [default: 127.0.0.1:7380]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Where the installation is.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// How a command reaches a server.
#[derive(Args, Clone)]
pub(crate) struct ConnectArgs {
    /// The server [default: $PETASOS_URL, else the one that runs in the home, else one just for this command]
    #[arg(long, value_name = "URL", global = true, help_heading = SERVER)]
    pub(crate) server: Option<String>,
    /// The key [default: $PETASOS_API_KEY, else the admin key of the home]
    #[arg(long, value_name = "KEY", global = true, help_heading = SERVER)]
    pub(crate) key: Option<String>,
    /// The tenant to work in; only an admin key may choose
    #[arg(long, value_name = "TENANT", global = true, help_heading = SERVER)]
    pub(crate) tenant: Option<String>,
    /// Where the installation is.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// How a command shows what it got.
#[derive(Args, Clone, Copy)]
pub(crate) struct FormatArgs {
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// How much of a list is shown.
#[derive(Args)]
pub(crate) struct ListArgs {
    /// The most entries to show
    #[arg(long, value_name = "N", default_value = "100")]
    pub(crate) limit: NonZero<usize>,
}

const DOCTOR_EXAMPLES: &str = "\
Examples:
  petasos doctor
  petasos doctor --json | jq '.checks[] | select(.status != \"ok\")'

Each line says ok, warn or fail, what was checked, and what to do. The exit code is 1 if anything
fails. Nothing is changed, and a database that is not there is not made.";

/// Arguments of `doctor`.
#[derive(Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// Where the installation is.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  petasos completions bash > ~/.local/share/bash-completion/completions/petasos
  petasos completions zsh > ~/.zfunc/_petasos
  petasos completions fish > ~/.config/fish/completions/petasos.fish";

/// Arguments of `completions`.
#[derive(Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn no_line_below_a_help_text_is_broken() {
        // Where clap breaks lines on a wide terminal.
        const WIDEST: usize = 100;
        let command = <Cli as clap::CommandFactory>::command();
        for command in std::iter::once(&command).chain(command.get_subcommands()) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > WIDEST).collect();
            assert!(long.is_empty(), "{}: {long:#?}", command.get_name());
        }
    }
}
