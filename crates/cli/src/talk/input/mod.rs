//! What the person types: with an editor on a terminal, plain lines from anywhere else.
//!
//! This is the only place that knows the editor, rustyline. It was chosen over reedline because it needs nothing
//! that is not small: `nix` and tables of character widths.

mod lines;
#[cfg(unix)]
mod typed;

use anyhow::{Context, Result};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{
    Cmd, ConditionalEventHandler, Editor, Event, EventContext, EventHandler, KeyEvent, Movement, RepeatCount,
};

use self::lines::Lines;
#[cfg(unix)]
use self::typed::{Typed, Wanted};
use crate::env::Environment;
use crate::signals::Interrupts;
use crate::{output, terminal};

/// What came of asking for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, without its end.
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
}

/// Whether what is typed is kept for the arrow keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remember {
    /// It is.
    Yes,
    /// It is not.
    No,
}

type TerminalEditor = Editor<(), MemHistory>;

/// Where lines come from.
pub(crate) struct Input {
    source: Source,
    /// The beginning of the next message, typed before it was asked for.
    begun: String,
    /// Ctrl-C while nothing is asked for.
    pub(crate) interrupts: Interrupts,
}

enum Source {
    /// None only while it is asked for a line, which is done on a thread of its own.
    Terminal(Option<Box<TerminalEditor>>),
    /// A terminal that is too simple for an editor.
    #[cfg(unix)]
    SimpleTerminal,
    Other(Lines),
}

impl Input {
    /// Takes standard input.
    pub(crate) fn open(environment: &Environment) -> Result<Input> {
        let source = match output::stdin_is_terminal() {
            false => Source::Other(Lines::read()),
            #[cfg(unix)]
            true if environment.has_simple_terminal() => Source::SimpleTerminal,
            true => Source::Terminal(Some(Box::new(editor(MemHistory::new())?))),
        };
        Ok(Input { source, begun: String::new(), interrupts: Interrupts::listen()? })
    }

    /// Asks for a line. The prompt is for people: nobody sees it where there is no terminal.
    pub(crate) async fn line(&mut self, prompt: &str, remember: Remember) -> Result<Line> {
        let editor = match &mut self.source {
            Source::Terminal(editor) => editor,
            #[cfg(unix)]
            Source::SimpleTerminal => return self.typed(prompt, Wanted::Line).await,
            Source::Other(lines) => {
                return Ok(tokio::select! {
                    line = lines.next() => line.map_or(Line::End, Line::Text),
                    () = self.interrupts.next() => Line::Interrupted,
                });
            }
        };
        let mut owned = editor.take().context("the terminal is being read already")?;
        let prompt = prompt.to_owned();
        // What was meant as a message must not answer a question.
        let begun = match remember {
            Remember::Yes => std::mem::take(&mut self.begun),
            Remember::No => String::new(),
        };
        let asked = tokio::task::spawn_blocking(move || {
            let line = owned.readline_with_initial(&prompt, (&begun, ""));
            if let (Ok(line), Remember::Yes) = (&line, remember) {
                // History is a convenience.
                let _ = owned.add_history_entry(line.as_str());
            }
            (owned, line)
        });
        let (owned, line) = asked.await.context("read from the terminal")?;
        *editor = Some(owned);
        self.interrupts.forget();
        match line {
            Ok(line) => Ok(Line::Text(line)),
            Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(error) => Err(error).context("read from the terminal"),
        }
    }

    /// Asks for a line that is not shown while it is typed.
    #[cfg(unix)]
    pub(crate) async fn hidden(&mut self, prompt: &str) -> Result<Line> {
        if matches!(self.source, Source::Other(_)) {
            return self.line(prompt, Remember::No).await;
        }
        let line = self.typed(prompt, Wanted::HiddenLine).await?;
        // The end of the line was not shown either.
        output::text("\n")?;
        Ok(line)
    }

    /// Asks for a line without an editor.
    #[cfg(unix)]
    async fn typed(&mut self, prompt: &str, wanted: Wanted) -> Result<Line> {
        // Hidden first: who sees the prompt may type at once.
        let mut typed = Typed::start(wanted)?;
        output::text(prompt)?;
        let line = tokio::select! {
            line = typed.next() => line.map_or(Line::End, Line::Text),
            () = self.interrupts.next() => Line::Interrupted,
        };
        typed.stop().await;
        Ok(line)
    }

    /// Forgets what was typed so far: what was meant as a message must not answer a question.
    pub(crate) fn forget_typed(&mut self) -> Result<()> {
        #[cfg(unix)]
        if !matches!(self.source, Source::Other(_)) {
            terminal::forget_typed();
        }
        if let Source::Terminal(Some(old)) = &mut self.source {
            // The editor has read ahead, and keeps that to itself.
            let history = std::mem::take(old.history_mut());
            self.source = Source::Terminal(None);
            self.source = Source::Terminal(Some(Box::new(editor(history)?)));
        }
        Ok(())
    }

    /// Asks for a line. Here it cannot be hidden.
    #[cfg(not(unix))]
    pub(crate) async fn hidden(&mut self, prompt: &str) -> Result<Line> {
        self.line(prompt, Remember::No).await
    }

    /// Listens to what is typed while a turn runs. From anywhere but a terminal, lines wait for their turn.
    pub(crate) fn beside_turn(&self) -> Result<BesideTurn> {
        #[cfg(unix)]
        if !matches!(self.source, Source::Other(_)) {
            return Ok(BesideTurn { typed: Some(Typed::start(Wanted::Lines)?) });
        }
        Ok(BesideTurn::default())
    }

    /// Takes the terminal back after a turn, and returns the lines that nobody has looked at yet.
    #[cfg(unix)]
    pub(crate) async fn after_turn(&mut self, beside: BesideTurn) -> Vec<String> {
        let Some(typed) = beside.typed else { return Vec::new() };
        let (lines, begun) = typed.stop().await;
        self.begun.push_str(&begun.replace(char::is_control, ""));
        lines
    }

    /// There are no such lines here.
    #[cfg(not(unix))]
    pub(crate) async fn after_turn(&mut self, _: BesideTurn) -> Vec<String> {
        Vec::new()
    }
}

/// What is typed while a turn runs.
#[derive(Default)]
pub(crate) struct BesideTurn {
    #[cfg(unix)]
    typed: Option<Typed>,
}

impl BesideTurn {
    /// The next line that is typed, if any ever is.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> String {
        match &mut self.typed {
            // At its end there is nothing more; the prompt will find that out.
            Some(typed) => match typed.next().await {
                Some(line) => line,
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    /// The next line that is typed: never, here.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> String {
        std::future::pending().await
    }
}

fn editor(history: MemHistory) -> Result<TerminalEditor> {
    let mut editor = TerminalEditor::with_history(rustyline::Config::default(), history)
        .context("cannot use the terminal")?;
    editor.set_auto_add_history(false);
    editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(ClearOrLeave)));
    Ok(editor)
}

/// Ctrl-C clears what is typed, and leaves if nothing is.
struct ClearOrLeave;

impl ConditionalEventHandler for ClearOrLeave {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let empty = context.line().is_empty();
        Some(if empty { Cmd::Interrupt } else { Cmd::Kill(Movement::WholeBuffer) })
    }
}
