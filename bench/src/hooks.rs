//! What hooks cost: a turn with none configured beside one with a hook of each kind that is asked once, and a shell hook
//! beside a bare fork and exec of the same script.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::Bench;
use crate::conversation::Conversation;
use crate::process::Server;
use crate::report::{Section, Target, milliseconds};
use crate::samples::Samples;

/// Tokens of an answer.
const TOKENS: usize = 20;
/// Turns of one session before the next is taken.
const TURNS: usize = 10;
/// How often a hook fires in one turn, so that its cost stands out of that of the commit.
const FIRINGS: usize = 20;

const SHELL: &str = "#!/bin/sh\nread -r payload\necho '{}'\n";
const PLUGIN: &str = "def hook(**kwargs):\n    return None\ndef register(ctx):\n    for _ in range(FIRINGS):\n        \
                      ctx.register_hook('pre_llm_call', hook)\n";
const KEEP: &str = "#!/bin/sh\ncat > \"$0.payload\"\necho '{}'\n";
/// A shell would read its payload byte by byte, as a shell does.
const PERSISTENT: &str =
    "#!/usr/bin/env python3\nimport sys\nfor payload in sys.stdin:\n    print('{}', flush=True)\n";

/// A server with hooks of one kind, and a conversation with it.
struct Side {
    server: Server,
    agent: String,
    conversation: Conversation,
    times: Samples,
}

impl Side {
    async fn open(bench: &Bench, home: &Path, config: &str) -> Result<Self> {
        std::fs::create_dir_all(home)?;
        std::fs::write(home.join("config.yaml"), config)?;
        let server = bench.serve(home).await?;
        let mut api = server.api().await?;
        let agent = api.agent(&format!("burst-{TOKENS}")).await?;
        let session = api.session(&agent).await?;
        let conversation = Conversation::open(server.address, &session, TOKENS).await?;
        Ok(Side { server, agent, conversation, times: Samples::default() })
    }

    /// Runs a turn. The first ones warm everything up.
    async fn turn(&mut self, index: usize) -> Result<()> {
        if index > 0 && index.is_multiple_of(TURNS) {
            let session = self.server.api().await?.session(&self.agent).await?;
            let conversation = Conversation::open(self.server.address, &session, TOKENS).await?;
            self.conversation = conversation;
        }
        let turn = self.conversation.turn().await?.whole;
        if index >= TURNS {
            self.times.time(turn);
        }
        Ok(())
    }
}

pub(crate) async fn measure(bench: &Bench) -> Result<Section> {
    let directory = bench.directory()?;
    let script = |name: &str, text: &str| script(directory.path(), name, text);
    let (shell, persistent) = (script("shell.sh", SHELL)?, script("persistent.py", PERSISTENT)?);
    let home = |name: &str| directory.path().join(name);
    let payload = payload(bench, directory.path(), &script("keep.sh", KEEP)?).await?;
    let mut none = Side::open(bench, &home("none"), "").await?;
    let empty = "hooks:\n  pre_llm_call: []\nhooks_auto_accept: true\n";
    let mut empty = Side::open(bench, &home("empty"), empty).await?;
    let mut one = Side::open(bench, &home("shell"), &config(&shell, "", 1)).await?;
    let mut running =
        Side::open(bench, &home("persistent"), &config(&persistent, "persistent: true", FIRINGS)).await?;
    let mut idle = Side::open(bench, &home("idle"), &config(&persistent, "persistent: true", 1)).await?;
    let mut plugin = Side::open(bench, &plugin_home(&home("plugin"), 1)?, PLUGIN_ENABLED).await?;
    let mut plugins = Side::open(bench, &plugin_home(&home("plugins"), FIRINGS)?, PLUGIN_ENABLED).await?;
    let mut bare = Samples::default();
    for index in 0..bench.scale.of(200, 10) + TURNS {
        for side in [&mut none, &mut empty, &mut one, &mut running, &mut idle, &mut plugin, &mut plugins] {
            side.turn(index).await?;
        }
        let time = tokio::task::block_in_place(|| run(&shell, &payload))?;
        if index >= TURNS {
            bare.time(time);
        }
    }
    let per_firing = (running.times.p50() - idle.times.p50()) / (FIRINGS as f64 - 1.0);
    let per_callback = (plugins.times.p50() - plugin.times.p50()) / (FIRINGS as f64 - 1.0);
    // With a hook the model is asked after the commit and not beside it, whatever the hook is.
    let shell_added = one.times.p50() - idle.times.p50() + per_firing;
    let mut section = Section::new("Hooks");
    section.note(
        "A turn of one model call on servers that differ in their hooks alone, one after the other. The shell hook is a \
         `sh` script that reads its payload and answers `{}`; beside it the same script, started and asked by the \
         benchmark itself. The persistent one is the same in Python. The cost of a persistent hook is the difference between twenty and one of them, by nineteen, \
         and so for callbacks of a Python plugin; that of a shell hook is what it adds in place of a persistent one.",
    );
    section.header(&["", "p50", "p99"]);
    let rows = [
        ("turn, no hooks block", &none.times),
        ("turn, no hooks in the block", &empty.times),
        ("turn with a shell hook", &one.times),
        ("turn with a persistent hook", &idle.times),
        ("turn with twenty persistent hooks", &running.times),
        ("turn with a callback of a plugin", &plugin.times),
        ("turn with twenty callbacks of a plugin", &plugins.times),
        ("bare fork and exec of the shell hook", &bare),
    ];
    for (name, samples) in rows {
        section.row([name.to_owned(), milliseconds(samples.p50()), milliseconds(samples.p99())]);
    }
    section.row(["**added by a shell hook**".to_owned(), milliseconds(shell_added), String::new()]);
    section.row(["**added by a persistent hook**".to_owned(), milliseconds(per_firing), String::new()]);
    section.row([
        "**added by a callback of a plugin**".to_owned(),
        milliseconds(per_callback),
        String::new(),
    ]);
    let nothing = empty.times.p50() / none.times.p50();
    section.target(Target::at_most(
        "A turn with no hooks configured, beside one without",
        nothing,
        1.05,
        "×",
    ));
    section.target(Target::at_most("A shell hook, beside its script", shell_added / bare.p50(), 1.3, "×"));
    section.target(Target::at_most("A persistent hook, p50", per_firing, 0.2, "ms"));
    section.target(Target::at_most("A callback of a Python plugin, p50", per_callback, 0.5, "ms"));
    for side in [none, empty, one, running, idle, plugin, plugins] {
        drop(side.conversation);
        side.server.stop().await?;
    }
    Ok(section)
}

/// Writes a script that can be started, and returns its path.
fn script(directory: &Path, name: &str, text: &str) -> Result<String> {
    let path = directory.join(name);
    std::fs::write(&path, text)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

/// A configuration with one shell hook, whose script is written into a directory.
pub(crate) fn shell_hook(directory: &Path) -> Result<String> {
    Ok(config(&script(directory, "shell.sh", SHELL)?, "", 1))
}

/// A configuration in which a command is asked this often before each turn.
fn config(command: &str, more: &str, firings: usize) -> String {
    let mut text = "hooks_auto_accept: true\nhooks:\n  pre_llm_call:\n".to_owned();
    for number in 0..firings {
        // Each is a hook of its own because its command is.
        text.push_str(&format!("    - command: {command} {number}\n"));
        if !more.is_empty() {
            text.push_str(&format!("      {more}\n"));
        }
    }
    text
}

const PLUGIN_ENABLED: &str = "plugins:\n  enabled: [bench]\n";

/// A home with a plugin that is asked this often before each turn.
fn plugin_home(home: &Path, firings: usize) -> Result<PathBuf> {
    let directory = home.join("plugins/bench");
    std::fs::create_dir_all(&directory)?;
    std::fs::write(directory.join("plugin.yaml"), "name: bench\n")?;
    std::fs::write(directory.join("__init__.py"), PLUGIN.replace("FIRINGS", &firings.to_string()))?;
    Ok(home.to_owned())
}

/// What a hook is asked in the middle of a session.
async fn payload(bench: &Bench, directory: &Path, keep: &str) -> Result<Vec<u8>> {
    let mut side = Side::open(bench, &directory.join("keep"), &config(keep, "", 1)).await?;
    for index in 0..TURNS / 2 {
        side.turn(index).await?;
    }
    drop(side.conversation);
    side.server.stop().await?;
    Ok(std::fs::read(format!("{keep}.payload"))?)
}

/// Starts the script, asks it, and waits for its end.
fn run(script: &str, payload: &[u8]) -> Result<Duration> {
    let started = Instant::now();
    let mut child = Command::new(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().context("it has no input")?.write_all(payload)?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success() && output.stdout == b"{}\n", "the script failed");
    Ok(started.elapsed())
}
