//! `petasos chat`: a conversation in the terminal, line by line.

mod answering;

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::conversation::{Conversation, Heard, TooLong};
use super::happening::{Happening, Stop};
use super::input::{BesideTurn, Input, Line, Remember};
use super::screen::{Beside, PERSON_ANSWERS, Screen, Text};
use super::stream::{EventStream, Told};
use crate::api::Refusal;
use crate::args::ChatArgs;
use crate::connect::{Connection, Purpose};
use crate::env::Environment;
use crate::output;
use crate::signals::Interrupted;
use crate::table::field;

const PROMPT: &str = "> ";
/// How many messages of a resumed session are shown.
const SHOWN_MESSAGES: usize = 6;

/// How long a chat that ends waits for a server that may be gone.
const FINALIZE_TIME: Duration = Duration::from_secs(2);
/// The most bytes of a line that a terminal keeps where there is no editor.
const MAX_TYPED_BYTES: usize = 4095;

const HELP: &str = "\
/help          this list
/new           a new session with the same agent
/steer TEXT    a hint for the turn that runs, or for the next one
/exit          leave; so do Ctrl-D, and Ctrl-C when nothing is typed
Ctrl-C         interrupt the turn; a second one leaves";

/// Whether the person stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Stay,
    Leave,
}

/// What came of asking for what a turn waits for.
enum Answered {
    Sent,
    Not(Next),
}

/// How a turn stopped.
enum Stopped {
    Ended,
    Waits,
    Left,
}

/// Talks until the person leaves.
pub(crate) async fn run(args: ChatArgs, environment: &Environment) -> Result<()> {
    let connection = Connection::open(&args.connect, environment, Purpose::Chat).await?;
    let mut input = Input::open(environment)?;
    let talked = talk(&args, &connection, environment, &mut input).await;
    let closed = super::close(connection, &mut input.interrupts).await;
    talked.and(closed)
}

async fn talk(
    args: &ChatArgs,
    connection: &Connection,
    environment: &Environment,
    input: &mut Input,
) -> Result<()> {
    let mut screen = Screen::new(Text::Printed, Beside::Stdout, environment.colours());
    let api = &connection.api;
    let (conversation, session) = match &args.partner.session {
        Some(session_id) => {
            let resumed = Conversation::resume(api, session_id, environment.user_name());
            let (conversation, session) = input.interrupts.or(resumed).await?;
            (conversation, Some(session))
        }
        None => {
            let begun = super::begin(api, &args.partner, &args.connect, environment);
            (input.interrupts.or(begun).await?, None)
        }
    };
    let partner = conversation.partner();
    screen.line_beside(&format!("{} ({}). /help shows what can be typed.", partner.name, partner.model))?;
    let mut chat = Chat { conversation, input, screen, waiting: VecDeque::new() };
    let talked = chat.talk(session.as_ref()).await;
    chat.screen.close()?;
    if let Some(session_id) = chat.conversation.session_id().map(str::to_owned) {
        chat.finalize(&session_id).await;
        output::note(&format!("Go on with: petasos chat --session {session_id}"));
    }
    talked
}

/// Whether the server did not answer.
fn is_out_of_reach(error: &anyhow::Error) -> bool {
    error.is::<petasos_net::Error>() || error.is::<Interrupted>()
}

/// Whether the server refused an answer because nobody waits for it any more.
fn is_settled(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == "action_not_pending")
}

/// A conversation and the person in it.
struct Chat<'a> {
    conversation: Conversation<'a>,
    input: &'a mut Input,
    screen: Screen,
    /// What was typed while a turn ran.
    waiting: VecDeque<String>,
}

impl Chat<'_> {
    async fn talk(&mut self, session: Option<&Value>) -> Result<()> {
        if let Some(session) = session
            && self.catch_up(session).await? == Next::Leave
        {
            return Ok(());
        }
        loop {
            let line = match self.waiting.pop_front() {
                Some(line) => {
                    self.screen.line_beside(&format!("{PROMPT}{line}"))?;
                    Line::Text(line)
                }
                None => self.input.line(PROMPT, Remember::Yes).await?,
            };
            let Line::Text(line) = line else { return Ok(()) };
            if self.obey(line.trim()).await? == Next::Leave {
                return Ok(());
            }
        }
    }

    /// Does what a line says: it is a command or a message.
    async fn obey(&mut self, line: &str) -> Result<Next> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word {
            "" => {}
            "/exit" | "/quit" => return Ok(Next::Leave),
            "/help" => self.help().await?,
            "/new" => {
                if let Some(left) = self.conversation.renew() {
                    self.finalize(&left).await;
                }
                self.screen.line_beside("A new session begins with your next message.")?;
            }
            "/steer" => self.steer(rest).await?,
            command if command.starts_with('/') && !command[1..].contains('/') => {
                self.of_plugin(&command[1..], rest.trim()).await?;
            }
            _ => return self.turn(line).await,
        }
        Ok(Next::Stay)
    }

    /// Has hooks told that the person is done with a session. If the server cannot be reached or is too old to know
    /// that, nobody needs to be told.
    async fn finalize(&mut self, session_id: &str) {
        let finalized = self.conversation.finalize(session_id);
        let bounded = tokio::time::timeout(FINALIZE_TIME, self.input.interrupts.or(finalized));
        if let Ok(Err(error)) | Err(error) = bounded.await.map_err(anyhow::Error::from) {
            tracing::debug!(%error, "hooks were not told that the session was left");
        }
    }

    /// Lists what can be typed, commands of plugins included.
    async fn help(&mut self) -> Result<()> {
        self.screen.line(HELP)?;
        let commands = self.input.interrupts.or(self.conversation.commands()).await;
        for command in self.told(commands)?.unwrap_or_default() {
            let typed = format!("/{} {}", field(&command, "name"), field(&command, "argsHint"));
            self.screen.line(&format!("{typed:<14} {}", field(&command, "description")))?;
        }
        Ok(())
    }

    /// Has a plugin carry out a command.
    async fn of_plugin(&mut self, name: &str, args: &str) -> Result<()> {
        let commands = self.input.interrupts.or(self.conversation.commands()).await;
        let Some(commands) = self.told(commands)? else { return Ok(()) };
        if !commands.iter().any(|command| command["name"] == name) {
            return self.screen.line(&format!("There is no command /{name}; /help lists them."));
        }
        let answer = self.input.interrupts.or(self.conversation.command(name, args)).await;
        match self.told(answer)? {
            Some(answer) if answer["failed"] == true => {
                self.screen.line(&format!("/{name} failed: {}", field(&answer, "text")))
            }
            Some(answer) if answer["text"].is_string() => self.screen.line(&field(&answer, "text")),
            _ => Ok(()),
        }
    }

    /// Gives a hint to the turn that runs, or to the next one.
    async fn steer(&mut self, hint: &str) -> Result<()> {
        if hint.trim().is_empty() {
            return self.screen.line("Write the hint after /steer.");
        }
        let steer = json!({ "type": "user.steer", "message": hint.trim() });
        let sent = self.input.interrupts.or(self.conversation.send(&steer)).await;
        self.told(sent).map(drop)
    }

    /// Tells what the server refused, which is no reason to leave.
    fn told<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is::<Refusal>() || error.is::<TooLong>() || is_out_of_reach(&error) => {
                self.screen.close()?;
                output::failure(&error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Says something and shows what comes of it.
    async fn turn(&mut self, text: &str) -> Result<Next> {
        self.input.interrupts.forget();
        let said = self.input.interrupts.or(self.conversation.say(text)).await;
        let busy =
            |refusal: &Refusal| ["action_required", "turn_in_progress"].contains(&refusal.code.as_str());
        let gone = said.as_ref().is_err_and(|error| error.is::<petasos_net::Error>());
        let elsewhere = said.as_ref().is_err_and(|error| error.downcast_ref().is_some_and(busy));
        match self.told(said)? {
            Some(Heard::ByAgent) => self.follow().await,
            Some(Heard::ByPerson) => self.stopped(Stop::Person).map(|_| Next::Stay),
            // Somebody else talks in this session; what that needs comes first.
            None if elsewhere => {
                self.screen.line_beside("What you said was not taken. First what happens here:")?;
                let session = self.input.interrupts.or(self.conversation.look()).await;
                match self.told(session)? {
                    Some(session) => self.settle(&session).await,
                    None => Ok(Next::Stay),
                }
            }
            None if gone => self.find_server().await.map(|()| Next::Stay),
            None => Ok(Next::Stay),
        }
    }

    /// Looks for a server in the place of one that is gone. What was said may have reached that one, so it is not said
    /// again by itself.
    async fn find_server(&mut self) -> Result<()> {
        self.screen.line(if self.conversation.find_server().await {
            "The server had ended; another is there now. Say it again."
        } else {
            "The server is gone. Start one with petasos serve, or leave and start the chat again."
        })
    }

    /// Shows where a resumed session stands, and goes on with its turn.
    async fn catch_up(&mut self, session: &Value) -> Result<Next> {
        let messages = session["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        for message in &messages[messages.len().saturating_sub(SHOWN_MESSAGES)..] {
            let content = field(message, "content");
            match message["role"].as_str() {
                Some("user") => self.screen.line_beside(&format!("{PROMPT}{content}"))?,
                _ => self.screen.line(&content)?,
            }
        }
        self.settle(session).await
    }

    /// Goes on with a turn that was there before: answers what it waits for, or watches it.
    async fn settle(&mut self, session: &Value) -> Result<Next> {
        if session["pendingActions"].as_array().is_some_and(|actions| !actions.is_empty()) {
            return match self.answer().await? {
                Answered::Sent => self.follow().await,
                Answered::Not(next) => Ok(next),
            };
        }
        if session["status"] == "running" { self.follow().await } else { Ok(Next::Stay) }
    }

    /// Shows a turn until it ends, and asks for what it needs.
    async fn follow(&mut self) -> Result<Next> {
        let mut stream = self.conversation.follow()?;
        loop {
            let mut beside = self.input.beside_turn()?;
            let stopped = self.watch(&mut stream, &mut beside).await;
            self.waiting.extend(self.input.after_turn(beside).await);
            self.conversation.seen(&stream);
            match stopped? {
                Stopped::Ended => return Ok(Next::Stay),
                Stopped::Left => return Ok(Next::Leave),
                Stopped::Waits => match self.answer().await? {
                    Answered::Sent => {}
                    Answered::Not(next) => return Ok(next),
                },
            }
        }
    }

    /// Shows what happens until the session is idle.
    async fn watch(&mut self, stream: &mut EventStream<'_>, beside: &mut BesideTurn) -> Result<Stopped> {
        let mut interrupted = false;
        loop {
            let told = tokio::select! {
                told = stream.next() => told?,
                () = self.input.interrupts.next() => {
                    if std::mem::replace(&mut interrupted, true) {
                        return Ok(Stopped::Left);
                    }
                    let sent = self.input.interrupts.or(self.conversation.interrupt()).await;
                    if sent.as_ref().is_err_and(|error| error.is::<Interrupted>()) {
                        return Ok(Stopped::Left);
                    }
                    self.told(sent)?;
                    continue;
                }
                line = beside.next() => {
                    self.typed(line).await?;
                    continue;
                }
            };
            match told {
                Told::Happened(happening) => {
                    self.screen.show(&happening)?;
                    if let Happening::Idle(stop) = happening {
                        return self.stopped(stop);
                    }
                }
                Told::Lost => self.screen.line_beside("The connection is gone; trying again.")?,
                Told::Back => self.screen.reconnected(),
            }
        }
    }

    /// Takes a line that was typed while a turn runs.
    async fn typed(&mut self, line: String) -> Result<()> {
        match line.trim().strip_prefix("/steer ") {
            Some(hint) => self.steer(hint).await,
            None if line.trim().is_empty() => Ok(()),
            None => {
                if line.len() >= MAX_TYPED_BYTES {
                    self.screen
                        .line_beside("The end of this is lost: the terminal keeps no more of a line.")?;
                }
                self.waiting.push_back(line);
                self.screen.line_beside("This waits until the turn has ended; /steer TEXT does not.")
            }
        }
    }

    /// Says how a turn stopped, unless that is plain to see.
    fn stopped(&mut self, stop: Stop) -> Result<Stopped> {
        match stop {
            Stop::Waits => return Ok(Stopped::Waits),
            Stop::End => {}
            Stop::Interrupted => self.screen.line_beside("Interrupted.")?,
            Stop::Person => self.screen.line_beside(PERSON_ANSWERS)?,
            Stop::CutShort(reason) => self.screen.line_beside(&format!("Cut short: {reason}."))?,
            Stop::Failed { code, message } => {
                self.screen.line(&format!("The turn failed: {message} ({code})"))?;
            }
        }
        Ok(Stopped::Ended)
    }
}
