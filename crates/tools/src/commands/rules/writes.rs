//! Writing files that other programs trust.

use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

const SYSTEM: [&str; 10] = [
    "/etc/",
    "/usr/",
    "/boot/",
    "/lib",
    "/bin/",
    "/sbin/",
    "/var/spool/cron",
    "/Library/LaunchDaemons",
    "/var/log/",
    "/var/lib/",
];
const SECRET: [&str; 8] =
    ["/.ssh", "/.aws", "/.gnupg", "/.kube", "/.docker", "/.config/gcloud", "/.config/gh", "/.netrc"];
const STARTUP: [&str; 24] = [
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".bash_login",
    ".xprofile",
    ".bash_logout",
    ".bash_aliases",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".pam_environment",
    "config.fish",
    ".mkshrc",
    ".inputrc",
    ".envrc",
];
/// Files of a home that other programs than shells run at their start.
const OTHER_STARTUP: [&str; 18] = [
    ".vimrc",
    ".gvimrc",
    ".exrc",
    ".emacs",
    ".gdbinit",
    ".lldbinit",
    ".tmux.conf",
    ".screenrc",
    ".irbrc",
    ".pryrc",
    ".pythonrc",
    ".psqlrc",
    ".gitconfig",
    ".hgrc",
    ".lessfilter",
    ".Rprofile",
    "usercustomize.py",
    "sitecustomize.py",
];
const AUTOSTART: [&str; 7] = [
    "/.config/systemd/user",
    "/.config/autostart",
    "/Library/LaunchAgents",
    "/.config/environment.d",
    "/.local/share/systemd/user",
    "/.config/upstart",
    "/.config/fish/conf.d",
];

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let gives_access = matches!(command.name(), "gh" | "glab")
        && matches!(command.operand(0), "ssh-key" | "gpg-key" | "deploy-key")
        && command.operand(1) == "add";
    if command.name() == "ssh-copy-id" || gives_access {
        return Some(finding("credentials_write", "changes keys or credentials"));
    }
    targets(command).into_iter().find_map(of_path)
}

/// The files that a program writes.
fn targets(command: &Simple) -> Vec<&str> {
    let operands = || command.operands();
    let mut targets: Vec<&str> = command.writes.iter().map(String::as_str).collect();
    match command.name() {
        "tee" | "sponge" => targets.extend(operands()),
        "patch" => targets.extend(operands().next()),
        // What is moved away is gone from where it was.
        "mv" => {
            targets.extend(operands());
            targets.extend(command.values('t', "target-directory"));
        }
        "cp" | "install" | "ln" | "rsync" | "scp" => {
            targets.extend(operands().last());
            targets.extend(command.values('t', "target-directory"));
        }
        "sed" | "gsed" | "perl" | "ruby" if command.has('i', "in-place") => targets.extend(operands()),
        "curl" => {
            targets.extend(command.values('o', "output"));
            targets.extend(command.values('\0', "output-dir"));
        }
        "wget" => {
            targets.extend(command.values('O', "output-document"));
            targets.extend(command.values('P', "directory-prefix"));
        }
        "tar" | "unzip" => {
            let into = command.values('C', "directory").into_iter().chain(command.values('d', ""));
            targets.extend(into.map(|path| if path == "/" { "/etc/" } else { path }));
        }
        "dd" => targets.extend(command.arguments().iter().filter_map(|word| word.strip_prefix("of="))),
        "chmod" => targets.extend(operands().filter(|path| path.contains(".git/hooks/"))),
        "truncate" | "touch" | "vim" | "vi" | "nano" | "ed" | "emacs" if command.by.is_none() => {}
        _ => {}
    }
    targets
}

fn is_in_home(path: &str) -> bool {
    ["~", "/home/", "/root/", "/Users/"].iter().any(|home| path.starts_with(home))
}

fn of_path(target: &str) -> Option<Finding> {
    let name = target.rsplit('/').next().unwrap_or(target);
    let below_home =
        format!("/{}", target.trim_start_matches("~/").trim_start_matches("./").trim_start_matches('/'));
    if SYSTEM.iter().any(|start| format!("{target}/").starts_with(start)) {
        Some(finding("system_write", "changes files of the system"))
    } else if SECRET.iter().any(|place| below_home.contains(place))
        || [".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials"].contains(&name)
    {
        Some(finding("credentials_write", "changes keys or credentials"))
    } else if AUTOSTART.iter().any(|place| below_home.contains(place)) {
        Some(finding("autostart", "changes what starts by itself"))
    } else if STARTUP.contains(&name) || is_in_home(target) && OTHER_STARTUP.contains(&name) {
        Some(finding("startup_write", "changes what a shell runs at its start"))
    } else if below_home.contains("/.git/hooks/") || below_home.ends_with("/.git/config") {
        Some(finding("git_hook", "changes what git runs by itself"))
    } else if name == ".env"
        || name.starts_with(".env.") && !name.contains("example") && !name.contains("sample")
    {
        Some(finding("env_file_write", "changes a file with settings and secrets"))
    } else {
        None
    }
}
