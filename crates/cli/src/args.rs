//! The command line.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use petasos_core::key::KeyScope;

const EXAMPLES: &str = "\
Examples:
  petasos serve                                  the server on 127.0.0.1:7380, data in ~/.petasos
  petasos serve --listen 0.0.0.0:8080 --data-dir /var/lib/petasos
  petasos agents create agent.yaml               a new agent from a file
  petasos keys create --name ci --scope sessions:read

Environment:
  PETASOS_HOME      the home directory (default ~/.petasos)
  PETASOS_API_KEY   the admin key of the server, and the key that commands use
  PETASOS_LISTEN    the address to listen on
  PETASOS_LOG       how much is logged: error, warn, info, debug, trace or a filter
  PETASOS_URL       the server that commands talk to
  OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
                    the providers openai and anthropic";

/// Runs AI agents as durable sessions, over the session protocols that applications already speak.
#[derive(Parser)]
#[command(name = "petasos", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the server
    Serve(ServeArgs),
    /// Make, list and revoke API keys
    Keys(KeysArgs),
    /// Create, change and look at agents
    Agents(AgentsArgs),
    /// Look at sessions, put them away, delete them
    Sessions(SessionsArgs),
}

/// Headings under which help texts list the options that many commands share.
const HOME: &str = "Where the data is";
const SERVER: &str = "Which server";

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
  OPENAI_BASE_URL=http://127.0.0.1:11434/v1 petasos serve

The first start makes an admin key, prints it once and keeps it in admin.key in the home.
SIGINT or SIGTERM stops the server: turns have 10 seconds to end, what is cut off goes on
at the next start. A second signal stops it at once, and nothing acknowledged is lost.";

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

/// How a command reaches a server, and how it shows what it got.
#[derive(Args)]
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
    /// Print JSON, as the server sends it
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Where the installation is.
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// How much of a list is shown.
#[derive(Args)]
pub(crate) struct ListArgs {
    /// The most entries to show
    #[arg(long, value_name = "N", default_value = "100")]
    pub(crate) limit: NonZero<usize>,
}

const KEYS_EXAMPLES: &str = "\
Examples:
  petasos keys create --name ci --scope agents:read --scope sessions:read
  petasos keys create --name acme --tenant acme
  petasos keys list
  petasos keys revoke key_0199…";

/// Arguments of `keys`.
#[derive(Args)]
#[command(after_help = KEYS_EXAMPLES)]
pub(crate) struct KeysArgs {
    /// How the server is reached.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

/// What to do with keys.
#[derive(Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key and print it, this once
    Create {
        /// What to call it
        #[arg(long)]
        name: Option<String>,
        /// What it may do; may be repeated: admin, agents:read, agents:write, sessions:read, sessions:write
        /// [default: all but admin]
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<KeyScope>,
    },
    /// List keys, of all tenants unless --tenant names one
    List,
    /// Revoke a key: it opens nothing from now on
    Revoke {
        /// The id of the key, not the key itself
        id: String,
    },
}

const AGENTS_EXAMPLES: &str = "\
Examples:
  petasos agents create agent.yaml
  echo '{\"name\":\"Echo\",\"model\":\"demo/echo\"}' | petasos agents create -
  petasos agents update agent_0199… change.yaml
  petasos agents get agent_0199… --version 1 --json

A file is YAML or JSON with name, model (provider/model) and, as needed, instructions, tools,
mcpServers, skills and metadata. For update, only the fields that change.";

/// Arguments of `agents`.
#[derive(Args)]
#[command(after_help = AGENTS_EXAMPLES)]
pub(crate) struct AgentsArgs {
    /// How the server is reached.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: AgentsCommand,
}

/// What to do with agents.
#[derive(Subcommand)]
pub(crate) enum AgentsCommand {
    /// List agents
    List(ListArgs),
    /// Show one agent
    Get {
        /// The agent
        id: String,
        /// An older version of it
        #[arg(long, value_name = "N")]
        version: Option<u32>,
    },
    /// Create an agent from a file
    Create {
        /// YAML or JSON; - for standard input
        file: PathBuf,
    },
    /// Make a new version of an agent
    Update {
        /// The agent
        id: String,
        /// YAML or JSON with the fields that change; - for standard input
        file: PathBuf,
    },
    /// List the versions of an agent
    Versions {
        /// The agent
        id: String,
        /// How much is shown.
        #[command(flatten)]
        list: ListArgs,
    },
    /// Archive an agent: it takes no new sessions
    Archive {
        /// The agent
        id: String,
    },
}

const SESSIONS_EXAMPLES: &str = "\
Examples:
  petasos sessions list --status running
  petasos sessions get session_0199…
  petasos sessions events session_0199… --json
  petasos sessions delete session_0199…";

/// Arguments of `sessions`.
#[derive(Args)]
#[command(after_help = SESSIONS_EXAMPLES)]
pub(crate) struct SessionsArgs {
    /// How the server is reached.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

/// What to do with sessions.
#[derive(Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, newest first
    List {
        /// Which of them.
        #[command(flatten)]
        filter: SessionFilterArgs,
        /// How much is shown.
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show one session with its messages
    Get {
        /// The session
        id: String,
    },
    /// Show the log of a session
    Events {
        /// The session
        id: String,
        /// How much is shown.
        #[command(flatten)]
        list: ListArgs,
    },
    /// Put a session away
    Archive {
        /// The session
        id: String,
    },
    /// Remove a session and its log for good
    Delete {
        /// The session
        id: String,
    },
}

/// Which sessions are listed.
#[derive(Args)]
pub(crate) struct SessionFilterArgs {
    /// Only those of this agent
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Only those of this user
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Only those with this status
    #[arg(long, value_enum)]
    pub(crate) status: Option<StatusArg>,
    /// Archived ones too
    #[arg(long)]
    pub(crate) archived: bool,
}

/// The status of a session.
#[derive(ValueEnum, Clone, Copy)]
pub(crate) enum StatusArg {
    /// No turn, or one that waits for an answer
    Idle,
    /// A turn is under way
    Running,
    /// Put away
    Archived,
}

impl StatusArg {
    /// The status as the server writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            StatusArg::Idle => "idle",
            StatusArg::Running => "running",
            StatusArg::Archived => "archived",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
