//! Arguments of the commands that talk to an agent: `run` and `chat`.

use clap::Args;

use super::{ConnectArgs, FormatArgs};

/// Who is talked to.
#[derive(Args)]
pub(crate) struct PartnerArgs {
    /// The agent [default: one for the model, made when it is first needed]
    #[arg(long, value_name = "ID", conflicts_with_all = ["model", "session"])]
    pub(crate) agent: Option<String>,
    /// The model, as provider/model [default: default_model of the configuration, else demo/echo]
    #[arg(long, value_name = "MODEL", conflicts_with = "session")]
    pub(crate) model: Option<String>,
    /// Go on with this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

const RUN_EXAMPLES: &str = "\
Examples:
  petasos run \"What is a petasos?\"
  petasos run --model openai/gpt-5 \"Write a haiku\" > haiku.txt
  git diff | petasos run --agent reviewer
  git diff | petasos run \"Review this:\" -
  petasos run --session session_0199… --json \"And now in French\"

Exit codes:
  0    the turn ended as it should
  1    wrong usage, or the server refused or cannot be reached
  2    the turn ended with an error, such as a model that cannot be reached
  3    the turn waits for an answer that nobody can give here;
       petasos chat --session ID asks for it; or a person answers there
  4    the model reached its output limit, or refused
  130  the turn was interrupted (Ctrl-C)

Standard output has the agent's text and nothing else; where that is no terminal, each message
when it is final. With --json it has one object at the end:
sessionId, agentId, text, stopReason, pendingActions and usage.";

/// Arguments of `run`.
#[derive(Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// What to say; - or nothing for standard input
    pub(crate) prompt: Option<String>,
    /// After a prompt: standard input follows it, after a blank line
    #[arg(value_name = "-", value_parser = ["-"])]
    pub(crate) input: Option<String>,
    /// Who is talked to.
    #[command(flatten)]
    pub(crate) partner: PartnerArgs,
    /// Show thinking and tool calls on standard error
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// How results are shown.
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// How the server is reached.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

const CHAT_EXAMPLES: &str = "\
Examples:
  petasos chat
  petasos chat --model anthropic/claude-sonnet-4-5
  petasos chat --agent reviewer
  petasos chat --session session_0199…            go on where it was left

In the chat:
  /help          what can be typed
  /new           a new session with the same agent
  /steer TEXT    a hint for the turn that runs, or for the next one
  /exit          leave; so do Ctrl-D, and Ctrl-C when nothing is typed
  Ctrl-C         interrupt the turn; a second one leaves

If no server runs in the home, the chat runs its own for as long as it lasts.";

/// Arguments of `chat`.
#[derive(Args)]
#[command(after_help = CHAT_EXAMPLES)]
pub(crate) struct ChatArgs {
    /// Who is talked to.
    #[command(flatten)]
    pub(crate) partner: PartnerArgs,
    /// How the server is reached.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
