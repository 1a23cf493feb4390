//! Ending processes.

use crate::commands::lexer::has_unknown;
use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let by_name = finding("kill_by_name", "ends all processes of a name");
    match command.name() {
        _ if command.has('\0', "help") || command.has('\0', "version") => None,
        "pkill" | "killall" | "kill-port" | "fkill" | "skill" | "xkill" | "taskkill" => Some(by_name),
        "kill" if command.within.processes => Some(by_name),
        // `pgrep name | while read pid; do kill $pid; done`
        "kill"
            if command.operands().any(has_unknown)
                && command.input.as_ref().is_some_and(|input| input.origin.processes) =>
        {
            Some(by_name)
        }
        "kill" if command.operands().any(|pid| pid == "1") => Some(by_name),
        "fuser" if command.has('k', "kill") => Some(by_name),
        "loginctl"
            if command.operands().any(|verb| verb.starts_with("terminate-") || verb.starts_with("kill-")) =>
        {
            Some(by_name)
        }
        _ => None,
    }
}
