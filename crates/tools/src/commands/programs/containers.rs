//! What programs pass on to terminals and other machines, and where they leave a container.

use super::Inner;
use crate::commands::finding;
use crate::commands::lexer::has_unknown;
use crate::commands::simple::Simple;

/// Directories of the host whose mount lets a container out.
const HOST: [&str; 10] = ["/", "/etc", "/root", "/proc", "/sys", "/dev", "/boot", "/var", "/usr", "/home"];

pub(super) fn run_by(simple: &Simple, inner: &mut Inner) {
    let escape = finding("container_escape", "reaches out of a container to the machine around it");
    let found = match simple.name() {
        "docker" | "podman" | "nerdctl" | "docker-compose" => runs_with_host(simple),
        "nsenter" => simple.values('t', "target").contains(&"1") || simple.has('a', "all"),
        "kubectl" | "oc" => {
            simple.says("debug") && simple.operands().any(|word| word.starts_with("node/"))
                || simple.arguments().iter().any(|word| {
                    word.contains("hostPID") || word.contains("\"privileged\"") || word == "--privileged"
                })
        }
        "chroot" => {
            let place = simple.operand(0);
            ["/host", "/mnt/host", "/proc/1/root", "/hostfs", "/rootfs"].contains(&place)
        }
        "lxc" | "incus" => simple
            .arguments()
            .iter()
            .any(|word| word == "security.privileged=true" || word.starts_with("source=/")),
        "ctr" => {
            simple.has('\0', "privileged") || values_of_mount(simple).iter().any(|mount| mounts_host(mount))
        }
        _ => false,
    };
    let opens = |word: &String| {
        word.contains("docker.sock") || word.contains("containerd.sock") || word.contains("/proc/1/root")
    };
    let reaches = !crate::commands::names::is_text(simple.name())
        || matches!(simple.name(), "curl" | "cat" | "ls" | "cp");
    if found
        || reaches && simple.arguments().iter().any(opens)
        || simple
            .writes
            .iter()
            .any(|path| path.ends_with("release_agent") || path.ends_with("notify_on_release"))
    {
        inner.findings.push(escape);
    }
}

/// A program that runs in a container, with the paths of the machine that the container sees under others.
pub(super) fn as_seen_from_host(simple: &Simple, words: &[&str]) -> Vec<String> {
    let mounts = mounts(simple);
    let at_host = |path: &str| {
        let below =
            |place: &str| path.strip_prefix(place).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        mounts
            .iter()
            .find_map(|(host, place)| Some(format!("{}{}", host.trim_end_matches('/'), below(place)?)))
    };
    let named = |path: &str| at_host(path).map(|path| if path.is_empty() { "/".to_owned() } else { path });
    let directory = simple.values('w', "workdir").first().and_then(|path| named(path));
    let is_shell = words.first().is_some_and(|name| crate::commands::names::is_shell(name));
    let mut seen: Vec<String> = Vec::new();
    for word in words {
        let script =
            is_shell && seen.last().is_some_and(|option| option.starts_with('-') && option.ends_with('c'));
        if script {
            let parts: Vec<String> =
                word.split(' ').map(|part| named(part).unwrap_or_else(|| part.to_owned())).collect();
            let enter = directory.as_ref().map_or(String::new(), |directory| format!("cd '{directory}'\n"));
            seen.push(enter + &parts.join(" "));
        } else {
            seen.push(named(word).unwrap_or_else(|| (*word).to_owned()));
        }
    }
    seen
}

/// The paths of the machine that a container sees, each with the path at which it does.
fn mounts(simple: &Simple) -> Vec<(String, String)> {
    let mut mounts = Vec::new();
    for volume in simple.values('v', "volume") {
        let mut parts = volume.split(':');
        mounts.extend(parts.next().zip(parts.next()));
    }
    for mount in values_of_mount(simple) {
        let part = |names: &[&str]| {
            mount.split(',').filter_map(|part| part.split_once('=')).find(|(name, _)| names.contains(name))
        };
        let of_host = part(&["source", "src"]).map(|(_, path)| path);
        mounts.extend(of_host.zip(part(&["target", "dst", "destination"]).map(|(_, path)| path)));
    }
    let known = |(host, place): &(&str, &str)| {
        host.starts_with(['/', '~']) && !has_unknown(host) && place.starts_with('/') && place.len() > 1
    };
    let cleaned =
        |path: &str| if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path.to_owned() };
    mounts.into_iter().filter(known).map(|(host, place)| (cleaned(host), cleaned(place))).collect()
}

fn values_of_mount(simple: &Simple) -> Vec<&str> {
    simple.values('\0', "mount")
}

fn is_host_path(volume: &str) -> bool {
    let source = volume.split(':').next().unwrap_or_default();
    let source = if source.len() > 1 { source.trim_end_matches('/') } else { source };
    HOST.contains(&source) || source.contains("docker.sock")
}

fn mounts_host(mount: &str) -> bool {
    let mut parts = mount.split(',').filter_map(|part| part.split_once('='));
    parts.any(|(name, value)| (name == "source" || name == "src") && is_host_path(value))
}

/// Whether a container gets rights over the machine, or its directories.
fn runs_with_host(simple: &Simple) -> bool {
    let values = |short: char, long: &str| {
        simple.values(short, long).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let opens_up = |capability: &String| {
        ["ALL", "SYS_ADMIN", "SYS_PTRACE", "SYS_MODULE", "DAC_READ_SEARCH", "SYS_RAWIO", "NET_ADMIN"]
            .contains(&capability.trim_start_matches("CAP_").to_ascii_uppercase().as_str())
    };
    simple.has('\0', "privileged")
        || values('v', "volume").iter().any(|volume| is_host_path(volume))
        || values_of_mount(simple).iter().any(|mount| mounts_host(mount))
        || values('\0', "cap-add").iter().any(opens_up)
        || values('\0', "pid").iter().any(|value| value == "host")
        || values('\0', "userns").iter().any(|value| value == "host")
        || values('\0', "security-opt").iter().any(|value| value.contains("unconfined"))
        || values('\0', "device").iter().any(|value| value.starts_with("/dev/"))
}
