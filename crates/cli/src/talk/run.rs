//! `petasos run`: one turn.

use std::io::Read;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::conversation::{Conversation, Heard, TooLong};
use super::happening::{Happening, Stop};
use super::questions;
use super::screen::{Beside, PERSON_ANSWERS, Screen, Text};
use super::stream::Told;
use crate::api::Refusal;
use crate::args::RunArgs;
use crate::connect::{Connection, Purpose};
use crate::env::Environment;
use crate::output;
use crate::signals::Interrupts;

/// How long an interrupted turn may take to end.
const INTERRUPT_TIME: Duration = Duration::from_secs(10);
/// How long it may take to see how a turn stands that did not end.
const LOOK_TIME: Duration = Duration::from_secs(1);

/// How a turn ended, as an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done = 0,
    Failed = 2,
    Waits = 3,
    CutShort = 4,
    Interrupted = 130,
}

/// Runs one turn and returns the exit code.
pub(crate) async fn run(args: RunArgs, environment: &Environment) -> Result<u8> {
    let prompt = prompt(args.prompt.as_deref(), args.input.is_some())?;
    let connection = Connection::open(&args.connect, environment, Purpose::Run).await?;
    let mut interrupts = Interrupts::listen()?;
    let outcome = turn(&args, &prompt, &connection, environment, &mut interrupts).await;
    let closed = super::close(connection, &mut interrupts).await;
    let outcome = outcome?;
    closed?;
    Ok(outcome as u8)
}

/// What to say: the argument, standard input, or both.
///
/// With an argument, standard input is read only if that is asked for: it may be the list of a loop in a shell, or a
/// pipe that never ends.
fn prompt(argument: Option<&str>, with_input: bool) -> Result<String> {
    let prompt = match argument {
        Some(text) if text != "-" && with_input => format!("{text}\n\n{}", standard_input()?),
        Some(text) if text != "-" => text.to_owned(),
        None if output::stdin_is_terminal() => {
            bail!("there is nothing to say; write it after run, or pipe it to standard input")
        }
        _ => standard_input()?,
    };
    if prompt.trim().is_empty() {
        bail!("there is nothing to say: the prompt is empty");
    }
    Ok(prompt)
}

fn standard_input() -> Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn turn(
    args: &RunArgs,
    prompt: &str,
    connection: &Connection,
    environment: &Environment,
    interrupts: &mut Interrupts,
) -> Result<Outcome> {
    let api = &connection.api;
    let mut conversation = match &args.partner.session {
        Some(session_id) => {
            interrupts.or(Conversation::resume(api, session_id, environment.user_name())).await?.0
        }
        None => interrupts.or(super::begin(api, &args.partner, &args.connect, environment)).await?,
    };
    let text = match args.format.json {
        true => Text::Kept,
        // Who reads a pipe cannot be told that something does not count.
        false if output::stdout_is_terminal() => Text::Printed,
        false => Text::Final,
    };
    let beside = if args.verbose { Beside::Stderr } else { Beside::Nowhere };
    let mut screen = Screen::new(text, beside, environment.colours());
    let stop = match interrupts.or(conversation.say(prompt)).await {
        Ok(Heard::ByAgent) => {
            let followed = follow(&mut conversation, &mut screen, interrupts).await;
            screen.close()?;
            followed.with_context(|| lost(&conversation))?
        }
        Ok(Heard::ByPerson) => Some(Stop::Person),
        Err(error) if waits(&error) => Some(Stop::Waits),
        Err(error)
            if error.is::<Refusal>() || error.is::<TooLong>() || conversation.session_id().is_none() =>
        {
            return Err(error);
        }
        Err(error) => return Err(error.context(lost(&conversation))),
    };
    let session = match &stop {
        Some(_) => interrupts.or(conversation.look()).await.with_context(|| lost(&conversation))?,
        // Who was told to leave does not wait for a server that may be gone.
        None => match tokio::time::timeout(LOOK_TIME, conversation.look()).await {
            Ok(Ok(session)) => session,
            _ => json!({ "id": conversation.session_id() }),
        },
    };
    if args.format.json {
        output::json(&summary(&session, &screen.said()))?;
    }
    if args.verbose {
        screen.line_beside(&format!("session {}", conversation.session_id().unwrap_or_default()))?;
    }
    let server = connection.running_server();
    let stop = stop.map(|stop| stop.in_server(server.as_deref(), &conversation.partner().model));
    Ok(tell(stop, &session))
}

/// Says what is left of a turn whose end is not known here.
fn lost(conversation: &Conversation<'_>) -> String {
    let id = conversation.session_id().unwrap_or_default();
    format!(
        "what became of the turn is not known here; petasos sessions get {id} shows it, and petasos run --session \
         {id} \"...\" goes on"
    )
}

/// Whether the server refused because an earlier turn waits for an answer.
fn waits(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == "action_required")
}

/// Shows the turn until it stops; none if it did not stop although it was interrupted.
async fn follow(
    conversation: &mut Conversation<'_>,
    screen: &mut Screen,
    interrupts: &mut Interrupts,
) -> Result<Option<Stop>> {
    let mut stream = conversation.follow()?;
    let mut interrupted = false;
    let mut deadline = std::pin::pin!(tokio::time::sleep(Duration::MAX));
    loop {
        let told = tokio::select! {
            told = stream.next() => told?,
            () = interrupts.next() => {
                if std::mem::replace(&mut interrupted, true) {
                    return Ok(None);
                }
                deadline.as_mut().reset(tokio::time::Instant::now() + INTERRUPT_TIME);
                let sent = tokio::select! {
                    sent = tokio::time::timeout(INTERRUPT_TIME, conversation.interrupt()) => sent,
                    () = interrupts.next() => return Ok(None),
                };
                match sent {
                    Ok(Err(error)) if error.is::<Refusal>() => return Err(error),
                    Ok(Ok(())) => continue,
                    // The server is gone, and the turn does not end.
                    _ => return Ok(None),
                }
            }
            () = &mut deadline => return Ok(None),
        };
        match told {
            Told::Happened(happening) => {
                screen.show(&happening)?;
                if let Happening::Idle(stop) = happening {
                    return Ok(Some(stop));
                }
            }
            Told::Lost => output::note("The connection is gone; trying again."),
            Told::Back => screen.reconnected(),
        }
    }
}

/// Says on standard error what the exit code means, and how to go on.
fn tell(stop: Option<Stop>, session: &Value) -> Outcome {
    let session_id = session["id"].as_str().unwrap_or_default();
    match stop {
        Some(Stop::End) => Outcome::Done,
        Some(Stop::Failed { code, message }) => {
            output::note(&format!("error: the turn failed: {message} ({code})\n  session: {session_id}"));
            Outcome::Failed
        }
        Some(Stop::Waits) => {
            output::note("The turn waits for an answer that cannot be given here:");
            for action in session["pendingActions"].as_array().into_iter().flatten() {
                output::note(&format!("  {}", questions::describe(action)));
            }
            output::note(&format!("Answer with: petasos chat --session {session_id}"));
            Outcome::Waits
        }
        Some(Stop::Person) => {
            output::note(&format!("{PERSON_ANSWERS}\n  session: {session_id}"));
            Outcome::Waits
        }
        Some(Stop::CutShort(reason)) => {
            let meaning = match reason.as_str() {
                "max_tokens" => "the model reached its output limit",
                "refusal" => "the model refused",
                other => other,
            };
            output::note(&format!("The turn was cut short: {meaning}.\n  session: {session_id}"));
            Outcome::CutShort
        }
        Some(Stop::Interrupted) | None => {
            output::note(&format!("Interrupted. Go on with: petasos chat --session {session_id}"));
            Outcome::Interrupted
        }
    }
}

fn summary(session: &Value, text: &str) -> Value {
    json!({
        "sessionId": session["id"],
        "agentId": session["agentId"],
        "text": text,
        "stopReason": session["stopReason"],
        "pendingActions": session["pendingActions"],
        "usage": session["usage"],
    })
}
