//! Paths that matter: those that a machine cannot do without, disks, and files with secrets.

use super::lexer::has_unknown;
use super::wildcard;

/// Directories that a system cannot do without.
const SYSTEM: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/usr",
    "/var",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/sbin",
    "/usr/local",
    "/usr/share",
    "/var/lib",
    "/System",
    "/Library",
    "/Users",
    "/Applications",
    "/private",
];

/// A path without `.`, `..` and doubled signs.
pub(super) fn cleaned(path: &str) -> String {
    let mut clean = String::from(if path.starts_with('/') { "/" } else { "" });
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            let parent = clean.trim_end_matches('/').rfind('/').map_or(0, |slash| slash + 1);
            clean.truncate(parent.max(usize::from(path.starts_with('/'))));
        } else {
            clean.push_str(part);
            clean.push('/');
        }
    }
    if clean.len() > 1 { clean.trim_end_matches('/').to_owned() } else { clean }
}

/// A path as seen from a directory, if that is known.
pub(super) fn joined(directory: Option<&str>, path: &str) -> Option<String> {
    if has_unknown(path) || path == "-" {
        None
    } else if path.starts_with(['/', '~']) {
        Some(path.to_owned())
    } else {
        directory.map(|directory| format!("{directory}/{path}"))
    }
}

/// A path whose loss nobody recovers from, seen from a directory.
pub(super) fn is_vital(path: &str, directory: Option<&str>) -> bool {
    let path = match directory {
        Some(directory) if !path.starts_with(['/', '~']) => format!("{directory}/{path}"),
        _ => path.to_owned(),
    };
    if path.is_empty() || !path.starts_with(['/', '~']) {
        return false;
    }
    // What lies above a home has all homes in it.
    let is_home = path.starts_with('~');
    let path = cleaned(&path);
    if is_home && path.is_empty() {
        return true;
    }
    let path = if is_home && !path.starts_with('~') { format!("/home/{path}") } else { path };
    // Everything in a directory is as much as the directory.
    let all_of =
        ["/*", "/.*", "/**", "/{*,.*}", "/.[!.]*", "/?*"].iter().find_map(|all| path.strip_suffix(all));
    let path = match all_of {
        Some("") => "/",
        Some(directory) => directory,
        None => path.as_str(),
    };
    let name_of_home =
        path.strip_prefix("/home/").or(path.strip_prefix("/Users/")).or(path.strip_prefix('~'));
    if path == "/" || name_of_home.is_some_and(|name| !name.contains('/')) {
        return true;
    }
    let fits = |system: &&&str| {
        path.matches('/').count() == system.matches('/').count()
            && path.split('/').zip(system.split('/')).all(|(part, name)| wildcard::fits(part, name))
    };
    SYSTEM.contains(&path) || path.contains(['*', '?', '[']) && SYSTEM.iter().any(|system| fits(&system))
}

/// Whether a path is a disk or a part of one.
pub(super) fn is_disk(path: &str) -> bool {
    let Some(device) = path.strip_prefix("/dev/") else { return false };
    const KINDS: [&str; 18] = [
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "dm-", "md", "loop", "zd",
        "nbd", "bcache", "sr", "mem", "kmem",
    ];
    KINDS.iter().any(|kind| device.starts_with(kind))
}

/// Whether a text names the address at which a cloud hands a machine its keys.
pub(super) fn is_metadata_address(text: &str) -> bool {
    ["169.254.169.254", "169.254.170.2", "metadata.google.internal", "fd00:ec2::254", "100.100.100.200"]
        .iter()
        .any(|address| text.contains(address))
}

/// Whether a pattern such as `~/.aw*/cred*` fits a file of a home or of the system that holds secrets. A pattern that
/// fits nearly everything, such as `~/.*`, is for other files.
fn fits_credential(pattern: &str) -> bool {
    const FILES: [&str; 14] = [
        ".ssh/id_rsa",
        ".ssh/id_ed25519",
        ".ssh/id_ecdsa",
        ".aws/credentials",
        ".netrc",
        ".pgpass",
        ".npmrc",
        ".kube/config",
        ".docker/config.json",
        ".git-credentials",
        ".config/gh/hosts.yml",
        ".gnupg/secring.gpg",
        "/etc/shadow",
        "/etc/sudoers",
    ];
    let of_home = pattern.strip_prefix("~/").or(pattern.strip_prefix("/root/")).or_else(|| {
        let rest = pattern.strip_prefix("/home/").or(pattern.strip_prefix("/Users/"))?;
        rest.split_once('/').map(|(_, rest)| rest)
    });
    let looked_for = of_home.unwrap_or(pattern);
    let last = looked_for.rsplit('/').next().unwrap_or(looked_for);
    let is_narrow = last.chars().filter(|letter| letter.is_ascii_alphanumeric()).count() >= 2;
    let fits = |file: &&str| {
        file.matches('/').count() == looked_for.matches('/').count()
            && looked_for.split('/').zip(file.split('/')).all(|(part, name)| {
                name.starts_with('.') == part.starts_with('.') && wildcard::fits(part, name)
            })
    };
    let is_pattern = looked_for.len() < 200 && looked_for.contains(['*', '?', '[']);
    is_pattern && is_narrow && (of_home.is_some() || pattern.starts_with('/')) && FILES.iter().any(fits)
}

/// Whether a file holds keys, passwords or other secrets.
pub(super) fn is_credential(path: &str) -> bool {
    if fits_credential(path) {
        return true;
    }
    let path = path.trim_start_matches("./").trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let shown = ["pub", "example", "sample", "template", "dist", "md"];
    if name.rsplit_once('.').is_some_and(|(_, end)| shown.contains(&end)) {
        return false;
    }
    const NAMES: [&str; 22] = [
        "rclone.conf",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "id_*",
        ".netrc",
        "_netrc",
        ".pgpass",
        ".my.cnf",
        ".git-credentials",
        ".pypirc",
        ".vault-token",
        ".env",
        ".htpasswd",
        "Login Data",
        "logins.json",
        "key4.db",
        "secring.gpg",
        "login.keyring",
        ".terraformrc",
        "shadow",
    ];
    const ENDS: [&str; 13] = [
        ".config/hub",
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/shadow-",
        ".aws/credentials",
        ".docker/config.json",
        ".kube/config",
        ".config/gh/hosts.yml",
        "~/.npmrc",
        ".cargo/credentials.toml",
        ".cargo/credentials",
        "/etc/master.passwd",
    ];
    const PLACES: [&str; 12] = [
        "/run/secrets/",
        "/etc/kubernetes/",
        "/.terraform.d/",
        "/.gnupg/",
        "/.azure/",
        "/.config/gcloud/",
        "/keyrings/",
        "/.password-store/",
        "/etc/ssl/private/",
        "/Library/Keychains/",
        "/.mozilla/firefox/",
        "/.config/op/",
    ];
    let below_home = format!("/{}/", path.trim_start_matches("~/").trim_start_matches('/'));
    let names_secret = ["credential", "token", "secret", "password"].iter().any(|part| name.contains(part));
    let is_in_home = ["~/.", "/home/", "/root/", "/Users/"].iter().any(|home| path.starts_with(home));
    NAMES.contains(&name) && name != "shadow"
        || names_secret && is_in_home && below_home.contains("/.")
        || name.starts_with(".env.") && !name.contains("example") && !name.contains("sample")
        || ENDS.iter().any(|end| path.ends_with(end))
        || PLACES.iter().any(|place| below_home.contains(place))
        || ["/.ssh", "/.aws", "/.gnupg", "/.kube"]
            .iter()
            .any(|place| below_home == format!("{place}/") || path.ends_with(place))
        || below_home.contains("/.ssh/") && !["config", "known_hosts", "authorized_keys"].contains(&name)
        || name.starts_with("ssh_host_") && name.ends_with("_key")
        || path.starts_with("/proc/") && (name == "environ" || name == "mem")
        || (name.contains("private") || name.contains("secret"))
            && (name.ends_with(".pem") || name.ends_with(".key"))
        || [".p12", ".pfx", ".jks", ".keystore", ".kdbx"].iter().any(|end| name.ends_with(end))
}
