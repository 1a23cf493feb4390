//! What the person at the terminal sees. Nothing else in this crate prints.

use std::io::{ErrorKind, IsTerminal, Write};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::table::plain;

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
    // It may repeat what a server or an argument says.
    eprintln!("error: {}", plain(&error.to_string()));
    for cause in error.chain().skip(1) {
        eprintln!("  because: {}", plain(&cause.to_string()));
    }
}

/// Tells a part of a line beside the result of a command. Where standard error is closed, nobody wants to know.
pub(crate) fn note_part(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// Prints text to standard output as it comes, without a newline.
pub(crate) fn text(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("write to standard output"),
    }
}

/// Whether colours may be used where there is a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    /// They may.
    OnTerminals,
    /// They may not.
    Never,
}

impl Colours {
    /// Whether standard error gets colours.
    pub(crate) fn on_stderr(self) -> bool {
        self == Colours::OnTerminals && std::io::stderr().is_terminal()
    }

    /// Whether standard output gets colours.
    pub(crate) fn on_stdout(self) -> bool {
        self == Colours::OnTerminals && stdout_is_terminal()
    }
}

/// Whether a person reads standard output.
pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// How many characters fit on a line of standard output, if it is a terminal that knows.
pub(crate) fn width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(width.0.into())
}

/// Whether a person reads standard error.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether a person types on standard input.
pub(crate) fn stdin_is_terminal() -> bool {
    std::io::stdin().is_terminal()
}
