//! Settings of the kernel and of the machine.

use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let tees = command.name() == "tee";
    let operands = command.operands().filter(|_| tees);
    let writes = command.writes.iter().map(String::as_str).chain(operands).any(|path| {
        path.starts_with("/proc/sys") || path.starts_with("/sys/") && !path.ends_with("release_agent")
    });
    let kernel = finding("kernel_setting", "changes settings of the kernel");
    if writes {
        return Some(kernel);
    }
    let sets = match command.name() {
        "sysctl" => {
            command.has('w', "write")
                || command.has('p', "load")
                || command.has('\0', "system")
                || command.operands().any(|word| word.contains('='))
        }
        "modprobe" => !command.has('n', "dry-run") && !command.has('\0', "show-depends"),
        "insmod" | "rmmod" | "setenforce" | "setsebool" | "aa-disable" | "aa-teardown" | "aa-complain"
        | "update-grub" | "grub-install" | "efibootmgr" => true,
        "kexec" => true,
        "bpftool" => command.says("load") || command.says("attach"),
        "dmesg" => command.has('C', "clear") || command.has('c', "read-clear"),
        _ => false,
    };
    if sets {
        return Some(kernel);
    }
    let changes = match command.name() {
        "hostnamectl" => command.operands().any(|verb| verb.starts_with("set-") || verb == "hostname"),
        "tc" => {
            command.operands().any(|verb| matches!(verb, "add" | "del" | "delete" | "replace" | "change"))
        }
        "timedatectl" | "localectl" => command.operands().any(|verb| verb.starts_with("set-")),
        "date" => command.has('s', "set"),
        "hwclock" => command.has('w', "systohc") || command.has('\0', "set"),
        "ip" => {
            command.says("link") && command.says("down")
                || command.operands().any(|verb| matches!(verb, "del" | "delete" | "flush"))
        }
        "ifconfig" => command.says("down"),
        "route" => command.says("del"),
        "nmcli" => command.says("off") || command.says("down"),
        "update-alternatives" => {
            command.has('\0', "install") || command.has('\0', "set") || command.has('\0', "remove")
        }
        "snap" if command.has('\0', "dangerous") => true,
        "apt" | "apt-get" | "aptitude" | "dnf" | "yum" | "zypper" | "snap" | "flatpak" | "apk" | "pkg"
        | "port" => {
            const REMOVES: [&str; 8] =
                ["remove", "purge", "autoremove", "erase", "del", "uninstall", "delete", "dist-upgrade"];
            REMOVES.contains(&command.operand(0)) && !command.has('s', "dry-run")
        }
        "pacman" => command.arguments().first().is_some_and(|word| word.starts_with("-R")),
        "dpkg" => command.has('r', "remove") || command.has('P', "purge"),
        "rpm" => command.has('e', "erase"),
        _ => false,
    };
    changes.then_some(finding("system_setting", "changes settings of the machine"))
}
