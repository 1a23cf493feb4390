//! Services, schedules and what starts by itself.

use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let verbs = [
        "stop",
        "restart",
        "disable",
        "mask",
        "kill",
        "isolate",
        "suspend",
        "hibernate",
        "unload",
        "bootout",
    ];
    let stops = command.operands().any(|verb| verbs.contains(&verb));
    if command.path.starts_with("/etc/init.d/") && stops {
        return Some(finding("stop_service", "stops or changes a service"));
    }
    match command.name() {
        "systemctl" | "service" | "launchctl" | "rc-service" | "initctl" | "sv" | "supervisorctl"
            if stops =>
        {
            Some(finding("stop_service", "stops or changes a service"))
        }
        "sv" if command.operands().any(|verb| matches!(verb, "down" | "exit" | "shutdown" | "term")) => {
            Some(finding("stop_service", "stops or changes a service"))
        }
        "pm2" if command.operands().any(|verb| matches!(verb, "delete" | "stop" | "kill")) => {
            Some(finding("stop_service", "stops or changes a service"))
        }
        "crontab" if command.arguments().iter().all(|word| word != "-l") => {
            Some(finding("crontab", "changes what runs on a schedule"))
        }
        "at" | "batch" if !command.has('l', "") && !command.has('V', "") => {
            Some(finding("scheduled_job", "runs something later by itself"))
        }
        "schtasks" if command.arguments().iter().any(|word| word.eq_ignore_ascii_case("/create")) => {
            Some(finding("scheduled_job", "runs something later by itself"))
        }
        "iptables-restore" | "ip6tables-restore" | "ebtables" | "arptables" if !command.has('L', "list") => {
            Some(finding("firewall", "changes the firewall"))
        }
        "ipset" if command.operands().any(|verb| matches!(verb, "destroy" | "flush" | "del")) => {
            Some(finding("firewall", "changes the firewall"))
        }
        "iptables" | "ip6tables" | "nft" | "ufw" | "firewall-cmd" | "pfctl" => {
            let lists = command.has('L', "list")
                || command.has('S', "list-rules")
                || command.says("status")
                || command.says("list");
            (!lists).then_some(finding("firewall", "changes the firewall"))
        }
        _ => None,
    }
}

/// What starts with the machine or with a session of a user.
pub(super) fn autostart(command: &Simple) -> Option<Finding> {
    let says = |verbs: &[&str]| command.operands().any(|verb| verbs.contains(&verb));
    let found = match command.name() {
        "systemctl" => says(&[
            "enable",
            "reenable",
            "link",
            "edit",
            "set-default",
            "preset",
            "add-wants",
            "add-requires",
        ]),
        "launchctl" => says(&["load", "bootstrap", "enable", "submit"]),
        "loginctl" => says(&["enable-linger"]),
        "update-rc.d" | "insserv" => true,
        "chkconfig" => says(&["on", "off"]) || command.has('\0', "add"),
        "rc-update" => says(&["add", "del"]),
        "pm2" => says(&["startup"]),
        "defaults" => says(&["write"]) && command.operand(1).contains("login"),
        "sc" | "sc.exe" => says(&["create", "config"]),
        "reg" | "reg.exe" => {
            says(&["add"])
                && command
                    .arguments()
                    .iter()
                    .any(|word| word.contains("CurrentVersion") && word.contains("Run"))
        }
        _ => false,
    };
    found.then_some(finding("autostart", "changes what starts by itself"))
}
