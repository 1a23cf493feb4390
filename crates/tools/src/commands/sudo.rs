//! Finds calls of `sudo`.

use super::script::Script;

/// How many times a command calls `sudo`.
pub(crate) fn calls(command: &str) -> usize {
    let Some(script) = Script::read(command) else { return 0 };
    script.commands.iter().filter(|command| command.name() == "sudo").count()
}
