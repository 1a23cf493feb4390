//! What the person at the terminal sees. Nothing else in this crate prints.

use std::io::{ErrorKind, IsTerminal, Write};

use anyhow::{Context, Result};
use serde_json::Value;

/// Prints a text and a newline to standard output.
///
/// A reader that went away (`petasos … | head`) is no failure.
pub(crate) fn line(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("write to standard output"),
    }
}

/// Prints JSON to standard output.
pub(crate) fn json(value: &Value) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Tells something beside the result of a command.
#[expect(clippy::print_stderr, reason = "this is the module that prints")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

/// Tells why the command failed: the error and what caused it, on one line each.
#[expect(clippy::print_stderr, reason = "this is the module that prints")]
pub(crate) fn failure(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  because: {cause}");
    }
}

/// Whether standard error is a terminal, which can show colours.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}
