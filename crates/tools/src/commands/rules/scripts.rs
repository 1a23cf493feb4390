//! What is run and nobody can read before.

use crate::commands::environment;
use crate::commands::lexer::{SECRET, UNKNOWN, is_unknown};
use crate::commands::names::is_shell;
use crate::commands::programs::{Source, source};
use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(in crate::commands) const UNKNOWN_COMMAND: Finding =
    finding("unknown_command", "runs a program whose name nobody can know before");

/// A shell within another program.
pub(in crate::commands) const SHELL_ESCAPE: Finding =
    finding("shell_escape", "starts a shell that nobody attends");

/// Code that nobody can see before it runs.
pub(in crate::commands) const UNSEEN_CODE: Finding =
    finding("unseen_code", "runs code that nobody can see before");

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    if command.runs.downloaded {
        Some(finding("remote_script", "runs what it downloads"))
    } else if command.runs.decoded {
        Some(finding("decoded_script", "runs what it decodes, which nobody can read before"))
    } else if command.runs.piped {
        Some(finding("piped_script", "runs what another program prints"))
    } else if has_unknown_name(command) && !command.within.settings {
        Some(if command.within.downloaded {
            finding("remote_script", "runs what it downloads")
        } else {
            UNKNOWN_COMMAND
        })
    } else if installs_download(command) {
        Some(finding("remote_script", "runs what it downloads"))
    } else {
        environment::loads_code(&command.environment).or_else(|| match command.name() {
            "export" | "env" | "declare" | "typeset" => environment::loads_code(command.arguments()),
            _ => None,
        })
    }
}

/// Whether nobody knows which program this is. One within the workspace is as good as any other there.
fn has_unknown_name(command: &Simple) -> bool {
    let base = command.path.rsplit('/').next().unwrap_or(&command.path);
    let is_here = command.path.contains('/') && !command.path.starts_with(['/', '~', UNKNOWN]);
    let known = base.replace(is_unknown, "");
    base.contains([UNKNOWN, SECRET]) && known.is_empty() && !is_here
}

/// A package that was downloaded is installed, with the scripts that it brings.
fn installs_download(command: &Simple) -> bool {
    let is_package = |word: &str| {
        [".whl", ".tar.gz", ".tgz", ".zip", ".rpm", ".deb", ".gem"].iter().any(|end| word.ends_with(end))
    };
    let address =
        |word: &str| (word.starts_with("http://") || word.starts_with("https://")) && is_package(word);
    let installs = |verb: &str| command.says(verb) && command.operands().any(address);
    match command.name() {
        "pip" | "pip3" | "npm" | "gem" | "pipx" | "yarn" | "pnpm" => {
            installs("install") || installs("add") || installs("i")
        }
        "rpm" | "dnf" | "yum" | "apt" | "apt-get" => command.operands().any(address),
        _ => false,
    }
}

/// A shell that another program starts, for commands which nobody sees here.
pub(super) fn escape(command: &Simple) -> Option<Finding> {
    let escape = SHELL_ESCAPE;
    let name = command.name();
    if name == "sudo"
        && (command.has('i', "login") || command.has('s', "shell"))
        && command.operands().next().is_none()
    {
        return Some(escape);
    }
    if matches!(name, "unshare" | "chroot" | "nsenter") && !command.says("--help") {
        let bare = command.operands().count() == usize::from(name == "chroot");
        return (bare && name == "chroot").then_some(escape);
    }
    if !is_shell(name)
        || source(command) != Source::Input
        || command.has('\0', "version")
        || command.has('\0', "help")
    {
        return None;
    }
    const ATTENDED: [&str; 26] = [
        "docker",
        "podman",
        "nerdctl",
        "kubectl",
        "oc",
        "ssh",
        "autossh",
        "tmux",
        "screen",
        "docker-compose",
        "lxc",
        "nix-shell",
        "poetry",
        "pipenv",
        "conda",
        "vagrant",
        "xterm",
        "gnome-terminal",
        "konsole",
        "mosh",
        "heroku",
        "nc",
        "ncat",
        "netcat",
        "socat",
        "uv",
    ];
    let by_other = command.by.as_deref().is_some_and(|by| !ATTENDED.contains(&by));
    let privileged = command.arguments().iter().any(|word| word == "-p");
    (privileged || by_other && command.input.is_none() && command.opens.is_empty()).then_some(escape)
}
