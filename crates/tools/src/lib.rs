//! The built-in tools, and the seam through which the engine runs any tool.
//!
//! A tool is one file here and one line in [`Toolbox::builtin`]. A tool knows its arguments and its result; it must
//! not know about sessions, logs, permissions or wire protocols.

mod arguments;
mod beneath;
mod blocking;
pub mod clarify;
mod coerce;
mod commands;
pub mod delegate_task;
mod disk_usage;
mod execute_code;
mod file_pool;
mod markdown;
pub mod mcp;
mod output;
mod patch;
mod picture;
mod plain_text;
mod process;
mod processes;
mod quota;
mod read_file;
mod redact;
mod removal;
mod remove_tree;
pub mod request_secret;
mod search_files;
mod shell;
mod terminal;
mod todo;
mod tool;
mod toolbox;
mod unfinished;
mod web_extract;
pub mod web_search;
mod workspace;
mod write_file;

pub use coerce::coerce;
pub use commands::{ApprovalMode, Approvals, Explanation, Reason, Verdict, explain, plain_command};
pub use file_pool::{FileOwner, FilePool, FilePoolError, FilePoolLimits};
pub use quota::WorkspaceLimits;
pub use redact::Redactor;
pub use removal::SessionWorkspace;
pub use remove_tree::{RemovalProgress, remove_tree};
pub use tool::{
    Audience, CommandOutput, Dispatch, Dispatcher, Filter, Invocation, OutputFilter, Risk, Tool, ToolOutput,
};
pub use toolbox::{Options, Toolbox, all_names, canonical_name};
pub use workspace::{Workspace, Workspaces};
