//! Commands that a person should see before they run, one family per file. The keys are part of the contract: they never
//! change.

mod accounts;
mod clouds;
mod containers;
mod credentials;
pub(super) mod databases;
mod deletion;
mod disks;
mod git;
mod kernel;
mod network;
mod permissions;
mod processes;
mod publishing;
mod scripts;
mod sending;
mod services;
mod writes;

pub(super) use credentials::CREDENTIALS_READ;
pub(super) use scripts::{SHELL_ESCAPE, UNKNOWN_COMMAND, UNSEEN_CODE};

use super::script::Script;
use super::simple::Simple;
use super::{Finding, finding};

/// Everything about the command that a person should know, each kind once.
pub(super) fn find(script: &Script) -> Vec<Finding> {
    const RULES: &[fn(&Simple) -> Option<Finding>] = &[
        deletion::rule,
        permissions::rule,
        disks::rule,
        writes::rule,
        services::rule,
        services::autostart,
        processes::rule,
        scripts::rule,
        scripts::escape,
        git::rule,
        containers::rule,
        accounts::rule,
        network::rule,
        databases::rule,
        credentials::rule,
        sending::rule,
        publishing::rule,
        clouds::rule,
        kernel::rule,
    ];
    let commands = script.commands.iter();
    let found = commands.flat_map(|command| {
        let of_rules = RULES.iter().filter_map(move |rule| rule(command));
        of_rules.chain(command.findings.iter().copied())
    });
    let mut once: Vec<Finding> = Vec::new();
    let unreadable =
        finding("unreadable", "cannot be read: a quote, a bracket or a word of the shell has no end");
    for found in found.chain(script.unfinished.then_some(unreadable)) {
        if !once.iter().any(|other| other.key == found.key) {
            once.push(found);
        }
    }
    once
}
