//! Shells that are connected to the network.

use crate::commands::programs;
use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let name = command.name();
    let is_device = |word: &&String| word.contains("/dev/tcp/") || word.contains("/dev/udp/");
    let is_local = |word: &String| {
        ["/dev/tcp/localhost/", "/dev/tcp/127.", "/dev/tcp/0.0.0.0/"]
            .iter()
            .any(|start| word.starts_with(start))
    };
    // To see whether a port is open here is harmless.
    let probes = matches!(name, "" | "echo" | "printf" | ":" | "true" | "exec");
    let is_text = matches!(name, "echo" | "printf" | "grep" | "rg" | "git" | "cat");
    let words = command.arguments().iter().filter(|_| !is_text);
    let mut devices = command.writes.iter().chain(&command.opens).chain(words).filter(is_device);
    let through_shell = devices.any(|word| !(probes && is_local(word)));
    let is_netcat = matches!(name, "nc" | "ncat" | "netcat");
    let connects = is_netcat || matches!(name, "telnet" | "socat" | "openssl");
    let listens = is_netcat
        && (command.has('e', "exec") || command.has('c', "sh-exec") || command.has('\0', "lua-exec"));
    let fed_by_shell = connects && command.input.as_ref().is_some_and(|input| input.origin.shell);
    let found = through_shell
        || listens
        || fed_by_shell
        || name == "ztcp"
        || name == "xterm" && command.says("-display")
        || name == "rcat" && command.says("-s");
    if found {
        return Some(finding("reverse_shell", "connects a shell to the network"));
    }
    opens_tunnel(command).then_some(finding("reverse_shell", "opens a way into this machine from outside"))
}

/// Programs that make a port or a terminal of this machine reachable from elsewhere.
fn opens_tunnel(command: &Simple) -> bool {
    if command
        .arguments()
        .iter()
        .any(|word| matches!(word.as_str(), "--version" | "--help" | "version" | "help"))
    {
        return false;
    }
    match command.name() {
        "ssh" | "autossh" => programs::ssh_options(command).has("R"),
        "ngrok" => matches!(command.operand(0), "http" | "tcp" | "tls" | "start"),
        "cloudflared" => command.says("tunnel") && (command.has('\0', "url") || command.says("run")),
        "code" | "code-insiders" | "code-server" => command.operand(0) == "tunnel",
        "tmate" | "localtunnel" | "lt" | "bore" | "frpc" | "ligolo-agent" | "pwncat" => true,
        "kubectl" => command.says("proxy") && command.has('\0', "address"),
        "tailscale" => matches!(command.operand(0), "funnel" | "serve"),
        "chisel" => command.operand(0) == "client",
        "devtunnel" => command.operand(0) == "host",
        _ => false,
    }
}
