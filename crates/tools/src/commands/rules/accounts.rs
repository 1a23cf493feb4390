//! Accounts of this machine.

use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let tools = [
        "useradd", "userdel", "usermod", "groupadd", "groupdel", "groupmod", "passwd", "chpasswd", "visudo",
        "adduser", "addgroup", "deluser", "delgroup", "gpasswd", "chsh", "chfn", "newusers", "vipw", "vigr",
        "chage", "dscl", "sudoedit",
    ];
    tools.contains(&command.name()).then_some(finding("user_accounts", "changes accounts of this machine"))
}
