//! The built-in tools, and the seam through which the engine runs any tool.
//!
//! A tool is one file here and one line in [`Toolbox::builtin`]. A tool knows its arguments and its result; it must
//! not know about sessions, logs, permissions or wire protocols.

pub mod clarify;
mod todo;
mod tool;
mod toolbox;

pub use tool::{Audience, Invocation, Risk, Tool, ToolOutput};
pub use toolbox::{Toolbox, all_names, canonical_name};
