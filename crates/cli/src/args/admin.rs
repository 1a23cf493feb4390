//! Arguments of the commands that administer: `keys`, `agents`, `sessions`, `backup`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use petasos_core::key::KeyScope;

use super::{ConnectArgs, FormatArgs, ListArgs};

const BACKUP_EXAMPLES: &str = "\
Examples:
  petasos backup                     into backups/ of the server's home
  petasos backup /mnt/copy.db        to a file that is not there yet
  petasos backup /mnt/nightly/       into a directory, under a name with the time

Everything that was acknowledged before is in the copy, and sessions go on while it is made. To
restore it, stop the server and put it in the place of petasos.db, without the -wal and -shm files
of the old one.";

/// Arguments of `backup`.
#[derive(Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub(crate) struct BackupArgs {
    /// Where the copy goes, on the server's machine [default: backups/ of the server's home]
    pub(crate) file: Option<PathBuf>,
    /// How the server is reached.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
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
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
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
mcpServers, skills and metadata. For update, only the fields that change.

Files in agents/ of the home (.yaml, .yml, .json) are agents too: the file's name is the agent's id,
the tenant is default. They are read at the start and whenever they change; a changed file makes
a new version. Removing a file leaves its agent as it is: archive it with petasos agents archive.";

/// Arguments of `agents`.
#[derive(Args)]
#[command(after_help = AGENTS_EXAMPLES)]
pub(crate) struct AgentsArgs {
    /// How the server is reached.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
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
  petasos sessions export session_0199… session.jsonl
  petasos sessions import session.jsonl --new-id
  petasos sessions delete session_0199…";

/// Arguments of `sessions`.
#[derive(Args)]
#[command(after_help = SESSIONS_EXAMPLES)]
pub(crate) struct SessionsArgs {
    /// How the server is reached.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
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
    /// Write a session with its whole log as JSON lines
    Export {
        /// The session
        id: String,
        /// A file that is not there yet [default: standard output]
        file: Option<PathBuf>,
    },
    /// Take in an exported session; a turn that was running in it is interrupted
    Import {
        /// The file; - for standard input
        file: PathBuf,
        /// Give the session a new id
        #[arg(long)]
        new_id: bool,
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
