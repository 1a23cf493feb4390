//! What a command costs: a turn that runs `true` in the sandbox beside one that does not, and beside a bare fork and
//! exec.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::Bench;
use crate::conversation::Conversation;
use crate::report::{Section, Target, milliseconds};
use crate::samples::Samples;

/// Tokens of an answer.
const TOKENS: usize = 20;
/// Turns of one session before the next is taken.
const TURNS: usize = 10;

pub(crate) async fn measure(bench: &Bench) -> Result<Section> {
    let directory = bench.directory()?;
    let server = bench.serve(&directory.path().join("home")).await?;
    let mut api = server.api().await?;
    let plain_agent = api.trusted_agent(&format!("burst-{TOKENS}")).await?;
    let command_agent = api.trusted_agent(&format!("command-{TOKENS}")).await?;
    let mut plain = Conversation::open(server.address, &api.session(&plain_agent).await?, TOKENS).await?;
    let mut command = Conversation::open(server.address, &api.session(&command_agent).await?, TOKENS).await?;
    let (mut without, mut with) = (Samples::default(), Samples::default());
    let (mut bare, mut shell, mut added) = (Samples::default(), Samples::default(), Samples::default());
    for index in 0..bench.scale.of(300, 20) + TURNS {
        if index > 0 && index % TURNS == 0 {
            plain = plain.switch(server.address, &api.session(&plain_agent).await?).await?;
            command = command.switch(server.address, &api.session(&command_agent).await?).await?;
        }
        let plain_turn = plain.turn().await?.whole;
        let command_turn = command.turn().await?.whole;
        let bare_run = tokio::task::block_in_place(|| run("true", &[]))?;
        let shell_run = tokio::task::block_in_place(|| run("bash", &["-c", "true"]))?;
        // The first turns warm everything up.
        if index >= TURNS {
            without.time(plain_turn);
            with.time(command_turn);
            added.time(command_turn.saturating_sub(plain_turn));
            bare.time(bare_run);
            shell.time(shell_run);
        }
    }
    server.stop().await?;
    let mut section = Section::new("A command");
    section.note(
        "A turn in which the model calls `terminal` with `true`, and one in which it does not, one after the other. \
         The first has one more model call, the commits of the call and its result, and the command in its sandbox.",
    );
    section.header(&["", "p50", "p99"]);
    let rows = [
        ("turn without a command", &without),
        ("turn with one command", &with),
        ("**added by the command**", &added),
        ("bare fork and exec of `true`", &bare),
        ("bare fork and exec of `bash -c true`", &shell),
    ];
    for (name, samples) in rows {
        section.row([name.to_owned(), milliseconds(samples.p50()), milliseconds(samples.p99())]);
    }
    let ratio = format!("{:.1}", added.p50() / bare.p50());
    section.row(["added, as a multiple of a bare fork and exec".to_owned(), ratio, String::new()]);
    section.target(Target::at_most("Added by one command, p50", added.p50(), 15.0, "ms"));
    Ok(section)
}

fn run(program: &str, arguments: &[&str]) -> Result<std::time::Duration> {
    let started = Instant::now();
    let mut command = Command::new(program);
    let status = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    ensure!(status.success(), "{program} failed");
    Ok(started.elapsed())
}
