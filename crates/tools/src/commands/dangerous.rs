//! Commands that a person should see before they run. The keys are part of the contract: they never change.

use super::script::Script;
use super::simple::Simple;
use super::{Finding, finding};

/// Everything about the command that a person should know, each kind once.
pub(super) fn find(text: &str, script: &Script) -> Vec<Finding> {
    const RULES: &[fn(&Simple) -> Option<Finding>] = &[
        deletion,
        permissions,
        disks,
        writes,
        services,
        processes,
        scripts,
        git,
        containers,
        accounts,
        network,
    ];
    let commands = script.commands.iter();
    let found = commands.flat_map(|command| RULES.iter().filter_map(|rule| rule(command)));
    let mut once: Vec<Finding> = Vec::new();
    for found in found.chain(sql(text)) {
        if !once.contains(&found) {
            once.push(found);
        }
    }
    once
}

fn deletion(command: &Simple) -> Option<Finding> {
    let recursive = command.has('r', "recursive") || command.has('R', "");
    match command.name() {
        "rm" if recursive => {
            Some(finding("recursive_delete", "deletes directories with all that is in them"))
        }
        "rm" | "unlink" if command.operands().any(|path| path.starts_with(['/', '~'])) => {
            Some(finding("delete_absolute_path", "deletes files outside of the working directory"))
        }
        "shred" | "srm" => Some(finding("shred", "destroys files for good")),
        "xargs"
            if command.arguments().iter().any(|word| matches!(word.as_str(), "rm" | "unlink" | "shred")) =>
        {
            Some(finding("bulk_delete", "deletes whatever another command lists"))
        }
        "find" => {
            let deletes = |word: &String| matches!(word.as_str(), "-delete" | "rm" | "unlink" | "shred");
            let found = command.arguments().iter().any(deletes);
            found.then_some(finding("find_delete", "deletes all files that a search finds"))
        }
        "rsync" if command.has('\0', "delete") => {
            Some(finding("sync_delete", "deletes files that the source does not have"))
        }
        "truncate" => Some(finding("truncate_file", "cuts off the content of files")),
        _ => None,
    }
}

fn permissions(command: &Simple) -> Option<Finding> {
    match command.name() {
        "chmod" => {
            let open = |mode: &str| {
                matches!(mode.trim_start_matches('0'), "777" | "666" | "1777" | "2777" | "4777")
                    || ["a+w", "o+w", "+w", "a+rw", "o+rw", "a+rwx", "o+rwx", "ugo+w", "a=rwx"]
                        .contains(&mode)
            };
            let setuid = |mode: &str| mode.contains("+s") || mode.len() == 4 && mode.starts_with(['4', '6']);
            if command.operands().any(open) {
                Some(finding("world_writable", "lets everybody write to files"))
            } else if command.operands().any(setuid) {
                Some(finding("setuid", "lets a program run as its owner"))
            } else {
                None
            }
        }
        "chown" | "chgrp" if command.has('R', "recursive") => {
            Some(finding("recursive_chown", "changes the owner of whole directories"))
        }
        "chattr" | "setfacl" | "setcap" => {
            Some(finding("file_attributes", "changes what files may be used for"))
        }
        _ => None,
    }
}

fn disks(command: &Simple) -> Option<Finding> {
    match command.name() {
        "dd" if command.arguments().iter().any(|word| word.starts_with("of=")) => {
            Some(finding("raw_copy", "writes raw data"))
        }
        "fdisk" | "sfdisk" | "parted" | "gdisk" | "mkswap" | "swapoff" | "mount" | "umount" | "losetup"
        | "cryptsetup" => Some(finding("disk_change", "changes disks or what is mounted")),
        _ => None,
    }
}

/// Files that other programs trust.
fn writes(command: &Simple) -> Option<Finding> {
    let operands = || command.operands();
    let mut targets: Vec<&str> = command.writes.iter().map(String::as_str).collect();
    match command.name() {
        "tee" => targets.extend(operands()),
        "cp" | "mv" | "install" | "ln" => targets.extend(operands().last()),
        "sed" | "perl" | "ruby" if command.has('i', "in-place") => targets.extend(operands()),
        _ => {}
    }
    targets.into_iter().find_map(|target| {
        let name = target.rsplit('/').next().unwrap_or(target);
        const SYSTEM: [&str; 7] = ["/etc/", "/usr/", "/boot/", "/lib", "/bin/", "/sbin/", "/var/spool/cron"];
        const SECRET: [&str; 8] =
            ["/.ssh", "/.aws", "/.gnupg", "/.kube", "/.docker", "/.config/gcloud", "/.config/gh", "/.netrc"];
        const STARTUP: [&str; 8] = [
            ".bashrc",
            ".bash_profile",
            ".profile",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".bash_login",
            ".xprofile",
        ];
        let below_home = format!("/{}", target.trim_start_matches("~/").trim_start_matches("./"));
        if SYSTEM.iter().any(|start| target.starts_with(start)) {
            Some(finding("system_write", "changes files of the system"))
        } else if SECRET.iter().any(|place| below_home.contains(place))
            || [".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials"].contains(&name)
        {
            Some(finding("credentials_write", "changes keys or credentials"))
        } else if STARTUP.contains(&name) {
            Some(finding("startup_write", "changes what a shell runs at its start"))
        } else if name == ".env" || name.starts_with(".env.") {
            Some(finding("env_file_write", "changes a file with settings and secrets"))
        } else {
            None
        }
    })
}

fn services(command: &Simple) -> Option<Finding> {
    let verbs = ["stop", "restart", "disable", "mask", "kill", "isolate"];
    let stops = command.operands().any(|verb| verbs.contains(&verb));
    match command.name() {
        "systemctl" | "service" | "launchctl" | "rc-service" if stops => {
            Some(finding("stop_service", "stops or changes a service"))
        }
        "crontab" if command.arguments().iter().all(|word| word != "-l") => {
            Some(finding("crontab", "changes what runs on a schedule"))
        }
        "iptables" | "nft" | "ufw" | "firewall-cmd" => Some(finding("firewall", "changes the firewall")),
        _ => None,
    }
}

fn processes(command: &Simple) -> Option<Finding> {
    match command.name() {
        "pkill" | "killall" | "skill" => Some(finding("kill_by_name", "ends all processes of a name")),
        "kill" if command.within.processes => Some(finding("kill_by_name", "ends all processes of a name")),
        _ => None,
    }
}

/// What is run and nobody can read before.
fn scripts(command: &Simple) -> Option<Finding> {
    if command.runs.downloaded {
        Some(finding("remote_script", "runs what it downloads"))
    } else if command.runs.decoded {
        Some(finding("decoded_script", "runs what it decodes, which nobody can read before"))
    } else if command.runs.piped {
        Some(finding("piped_script", "runs what another program prints"))
    } else {
        None
    }
}

fn git(command: &Simple) -> Option<Finding> {
    if command.name() != "git" {
        return None;
    }
    let has = |word: &str| command.arguments().iter().any(|argument| argument == word);
    let discards = has("reset") && has("--hard")
        || has("clean") && command.has('f', "force")
        || has("branch") && (command.has('D', "") || has("--delete") && has("--force"))
        || has("stash") && (has("clear") || has("drop"))
        || has("checkout") && has("--") && has(".")
        || has("restore") && has(".");
    let pushes = |start: char| has("push") && command.operands().any(|operand| operand.starts_with(start));
    if discards {
        Some(finding("git_discard", "throws away work that git does not bring back"))
    } else if has("push")
        && (command.has('f', "force") || command.has('\0', "force-with-lease") || has("--mirror"))
        || pushes('+')
    {
        Some(finding("git_force_push", "rewrites history that others have"))
    } else if has("push") && (command.has('d', "delete") || has("--prune")) || pushes(':') {
        Some(finding("git_delete_remote", "deletes branches that others have"))
    } else if has("filter-branch") || has("filter-repo") {
        Some(finding("git_rewrite", "rewrites history"))
    } else {
        None
    }
}

fn containers(command: &Simple) -> Option<Finding> {
    let verbs = ["stop", "kill", "rm", "rmi", "down", "prune", "delete", "drain"];
    let ends = command.operands().any(|verb| verbs.contains(&verb));
    let tools = ["docker", "podman", "docker-compose", "kubectl", "helm"];
    let found = ends && tools.contains(&command.name());
    found.then_some(finding("container_stop", "stops or removes containers"))
}

fn accounts(command: &Simple) -> Option<Finding> {
    let tools =
        ["useradd", "userdel", "usermod", "groupadd", "groupdel", "passwd", "chpasswd", "visudo", "adduser"];
    tools.contains(&command.name()).then_some(finding("user_accounts", "changes accounts of this machine"))
}

fn network(command: &Simple) -> Option<Finding> {
    let through_shell =
        command.writes.iter().chain(command.arguments()).any(|word| word.starts_with("/dev/tcp/"));
    let listens = matches!(command.name(), "nc" | "ncat" | "netcat")
        && (command.has('e', "exec") || command.has('c', ""));
    (through_shell || listens).then_some(finding("reverse_shell", "connects a shell to the network"))
}

/// Statements that lose data, in whatever program runs them.
fn sql(text: &str) -> Option<Finding> {
    let text = text.to_ascii_lowercase();
    let words: Vec<&str> =
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
    let follows = |first: &str, seconds: &[&str]| {
        words.windows(2).any(|pair| matches!(pair, [a, b] if *a == first && seconds.contains(b)))
    };
    if follows("drop", &["table", "database", "schema"]) || follows("truncate", &["table"]) {
        Some(finding("sql_drop", "deletes tables of a database"))
    } else if follows("delete", &["from"]) && !words.contains(&"where") {
        Some(finding("sql_delete_all", "deletes all rows of a table"))
    } else {
        None
    }
}
