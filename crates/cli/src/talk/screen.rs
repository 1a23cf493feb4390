//! Shows what happens in a session: the agent's text, and beside it thinking and tool calls.

use anyhow::Result;

use super::happening::{Extent, Happening, Kind};
use super::transcript::{Addition, Transcript};
use crate::output::{self, Colours};
use crate::table::{plain, short};

/// The longest preview or summary of a tool call.
const MAX_LINE: usize = 100;

/// What is shown when the agent stays silent.
pub(crate) const PERSON_ANSWERS: &str =
    "A person answers in this session; what you said is there for them, and the agent stays silent.";

/// Where thinking and tool calls go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Between the text, on standard output.
    Stdout,
    /// To standard error.
    Stderr,
    /// Nowhere.
    Nowhere,
}

/// What happens to the agent's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// It is printed as it comes.
    Printed,
    /// It is printed when it is in the log, so that what is printed is what is kept.
    Final,
    /// It is only kept.
    Kept,
}

/// The screen.
pub(crate) struct Screen {
    text: Text,
    beside: Beside,
    /// Whether what stands beside the text is dimmed.
    dims: bool,
    /// Whether control characters are replaced, since a terminal would obey them.
    is_terminal: bool,
    transcript: Transcript,
    /// Whether the last line on standard output, and that beside it, has no end yet.
    open: bool,
    open_beside: bool,
    said: Vec<String>,
}

impl Screen {
    /// An empty screen.
    pub(crate) fn new(text: Text, beside: Beside, colours: Colours) -> Self {
        let dims = match beside {
            Beside::Stdout => colours.on_stdout(),
            Beside::Stderr => colours.on_stderr(),
            Beside::Nowhere => false,
        };
        Screen {
            text,
            beside,
            dims,
            is_terminal: output::stdout_is_terminal(),
            transcript: Transcript::default(),
            open: false,
            open_beside: false,
            said: Vec::new(),
        }
    }

    /// The messages of the agent that were shown as a whole.
    pub(crate) fn said(&self) -> String {
        self.said.join("\n")
    }

    /// The stream was opened anew.
    pub(crate) fn reconnected(&mut self) {
        self.transcript.reconnected();
    }

    /// Shows what happened.
    pub(crate) fn show(&mut self, happening: &Happening) -> Result<()> {
        match happening {
            Happening::Said { kind, extent, text } => {
                if (*kind, *extent) == (Kind::Text, Extent::Whole) {
                    self.said.push(text.clone());
                    if self.text == Text::Final {
                        self.close()?;
                        self.print(text)?;
                    }
                }
                let additions = self.transcript.say(*kind, *extent, text);
                return additions.iter().try_for_each(|addition| self.add(addition));
            }
            Happening::Called { tool, preview } => {
                self.line_beside(&format!("→ {tool} {}", short(preview, MAX_LINE)))?;
            }
            Happening::Answered { tool, text, is_error } => {
                let sign = if *is_error { "✗" } else { "←" };
                self.line_beside(&format!("{sign} {tool} {}", short(text, MAX_LINE)))?;
            }
            Happening::Idle(_) => self.close()?,
            Happening::Other => return Ok(()),
        }
        self.transcript.end();
        Ok(())
    }

    fn add(&mut self, addition: &Addition) -> Result<()> {
        match addition {
            Addition::Begin(_) => self.close(),
            Addition::More(Kind::Text, text) => self.more_text(text),
            Addition::More(Kind::Thinking, text) => self.more_beside(text),
            Addition::StartOver(Kind::Thinking) | Addition::Replaced(Kind::Thinking) => self.close(),
            Addition::StartOver(Kind::Text) => {
                self.take_back("The model started over; what it said last does not count.")
            }
            Addition::Replaced(Kind::Text) => {
                self.take_back("The message was changed after it was said; the session has this instead:")
            }
        }
    }

    /// Says that what was printed last does not count.
    fn take_back(&mut self, why: &str) -> Result<()> {
        self.close()?;
        if self.text == Text::Printed {
            output::note(why);
        }
        Ok(())
    }

    fn more_text(&mut self, text: &str) -> Result<()> {
        if self.text == Text::Printed { self.print(text) } else { Ok(()) }
    }

    fn print(&mut self, text: &str) -> Result<()> {
        self.open = !text.ends_with('\n');
        if self.beside == Beside::Stdout || self.is_terminal {
            output::text(&plain(text))
        } else {
            output::text(text)
        }
    }

    fn more_beside(&mut self, text: &str) -> Result<()> {
        if self.beside == Beside::Nowhere {
            return Ok(());
        }
        self.open_beside = !text.ends_with('\n');
        let text = self.dimmed(&plain(text));
        if self.beside == Beside::Stdout {
            return output::text(&text);
        }
        output::note_part(&text);
        Ok(())
    }

    /// Shows a line beside the text.
    pub(crate) fn line_beside(&mut self, line: &str) -> Result<()> {
        self.close()?;
        let line = plain(line);
        self.more_beside(&format!("{}\n", line.trim_end()))
    }

    /// Shows a line that the person has to read.
    pub(crate) fn line(&mut self, line: &str) -> Result<()> {
        self.close()?;
        output::line(&plain(line))
    }

    /// Ends the line that is under way.
    pub(crate) fn close(&mut self) -> Result<()> {
        if std::mem::take(&mut self.open) {
            output::text("\n")?;
        }
        if std::mem::take(&mut self.open_beside) {
            match self.beside {
                Beside::Stdout => output::text("\n")?,
                Beside::Stderr => output::note_part("\n"),
                Beside::Nowhere => {}
            }
        }
        Ok(())
    }

    fn dimmed(&self, text: &str) -> String {
        match text.strip_suffix('\n') {
            _ if !self.dims => text.to_owned(),
            Some(line) => format!("\u{1b}[2m{line}\u{1b}[0m\n"),
            None => format!("\u{1b}[2m{text}\u{1b}[0m"),
        }
    }
}
