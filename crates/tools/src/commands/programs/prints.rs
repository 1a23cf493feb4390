//! Where what a program prints comes from, and where it goes.

use crate::commands::flow::Origin;
use crate::commands::names::is_shell;
use crate::commands::simple::Simple;

/// Whether a program, or a word of the shell, prints nothing.
pub(in crate::commands) fn is_silent(simple: &Simple) -> bool {
    const SILENT: [&str; 25] = [
        "true", "false", ":", "cd", "export", "unset", "local", "declare", "readonly", "shift", "read",
        "test", "[", "[[", "for", "select", "case", "mkdir", "touch", "rm", "chmod", "sleep", "wait", "let",
        "mkfifo",
    ];
    SILENT.contains(&simple.name()) || simple.name() == "set" && !simple.arguments().is_empty()
}

/// Whether a program prints lines of what it reads, as they are or changed.
pub(in crate::commands) fn passes_lines_on(name: &str) -> bool {
    matches!(name, "sed" | "grep" | "sort" | "uniq" | "head" | "tail" | "tac" | "cut" | "awk" | "shuf")
}

/// Whether a program unpacks an archive.
pub(in crate::commands) fn unpacks(simple: &Simple) -> bool {
    let letters = simple.operand(0);
    match simple.name() {
        "tar" | "bsdtar" | "gtar" | "star" | "jar" => {
            simple.has('x', "extract")
                || simple.says("--get")
                || letters.starts_with('x')
                || letters.contains("xf")
        }
        "unzip" | "unar" | "unrar" | "ditto" | "patool" | "aunpack" | "dtrx" | "unsquashfs" => true,
        "7z" | "7za" | "7zr" | "rar" | "ar" => letters.starts_with(['x', 'e']),
        "cpio" => simple.has('i', "extract"),
        "dpkg-deb" | "dpkg" => simple.has('x', "extract") || simple.has('X', "vextract"),
        name if name.starts_with("python") => simple.says("zipfile") || simple.says("tarfile"),
        _ => false,
    }
}

/// Where a program's output comes from, as far as its name tells.
pub(in crate::commands) fn origin(simple: &Simple) -> Origin {
    let name = simple.name();
    let decodes = match name {
        "base64" | "base32" | "basenc" => simple.has('d', "decode") || simple.has('D', ""),
        "xxd" => simple.has('r', "revert"),
        "unzip" => simple.has('p', ""),
        "gzip" | "xz" | "bzip2" | "zstd" | "lz4" | "brotli" => simple.has('d', "decompress"),
        "gpg" | "gpg2" | "age" => simple.has('d', "decrypt"),
        "openssl" => simple.has('d', ""),
        _ => [
            "tr", "rev", "gunzip", "zcat", "bzcat", "xzcat", "zstdcat", "bunzip2", "unxz", "uudecode",
            "rot13", "caesar", "7z",
        ]
        .contains(&name),
    };
    let shows_files = [
        "base64", "base32", "tar", "gzip", "zip", "xxd", "od", "hexdump", "head", "tail", "strings", "cat",
        "tac", "bzip2", "xz", "zstd",
    ];
    let is_interpreter = is_shell(name) && !simple.has('c', "");
    Origin {
        downloaded: fetches(simple),
        decoded: decodes,
        processes: matches!(name, "pgrep" | "pidof" | "ps" | "lsof" | "fuser" | "ss" | "netstat"),
        piped: false,
        content: shows_files.contains(&name) && !decodes || dumps(simple),
        environment: matches!(name, "env" | "printenv" | "export" | "declare" | "set"),
        shell: is_interpreter,
        settings: prints_settings(simple),
    }
}

/// Whether a program prints all that a database, an image or a repository holds.
fn dumps(simple: &Simple) -> bool {
    match simple.name() {
        "pg_dump" | "pg_dumpall" | "mysqldump" | "mariadb-dump" | "mongodump" => true,
        "docker" | "podman" => matches!(simple.operand(0), "save" | "export"),
        "git" => simple.says("archive") || simple.says("bundle"),
        "sqlite3" => simple.says(".dump"),
        _ => false,
    }
}

/// Whether a program prints settings for a shell to evaluate.
fn prints_settings(simple: &Simple) -> bool {
    const VERBS: [&str; 12] = [
        "init",
        "env",
        "hook",
        "shellenv",
        "activate",
        "docker-env",
        "shell.bash",
        "completion",
        "completions",
        "config",
        "shell",
        "init-shell",
    ];
    matches!(
        simple.name(),
        "ssh-agent" | "gpg-agent" | "dircolors" | "resize" | "getopt" | "tset" | "lesspipe"
    ) || simple.operands().take(2).any(|word| VERBS.contains(&word))
        && !matches!(simple.name(), "cat" | "echo" | "curl" | "wget" | "printf")
        || simple.name() == "direnv" && simple.operand(0) == "export"
}

/// Whether a program prints what it gets from the network.
fn fetches(simple: &Simple) -> bool {
    match simple.name() {
        "curl" | "wget" | "fetch" | "nc" | "ncat" | "netcat" | "aria2c" | "axel" | "lynx" | "w3m"
        | "elinks" | "links" | "http" | "https" | "xh" | "xhs" | "httpie" | "telnet" | "socat"
        | "lwp-request" | "lwp-download" | "ftp" | "tftp" | "scp" | "wget2" => true,
        "openssl" => simple.says("s_client"),
        "aws" => simple.says("s3") && simple.says("cp"),
        "gsutil" => simple.says("cat") || simple.says("cp"),
        "gh" => simple.says("api"),
        "ssh" => false,
        _ => false,
    }
}

/// The files that a program's arguments say it writes what it prints to.
pub(in crate::commands) fn writes_to(simple: &Simple) -> Vec<String> {
    let name = simple.name();
    if name == "tee" || name == "sponge" {
        return simple.operands().map(str::to_owned).collect();
    } else if matches!(name, "base64" | "gunzip" | "openssl") {
        return simple.values('\0', "output").into_iter().map(str::to_owned).collect();
    } else if !fetches(simple) || matches!(name, "nc" | "ncat" | "netcat" | "socat" | "telnet" | "openssl") {
        return Vec::new();
    }
    if name == "scp" || name == "aws" || name == "gsutil" {
        let to = simple.operands().last().unwrap_or_default().trim_end_matches('/');
        let from: Vec<&str> = simple.operands().filter_map(|word| word.rsplit(['/', ':']).next()).collect();
        let in_directory = from.iter().map(|name| format!("{to}/{name}"));
        let here = from.iter().map(|name| (*name).to_owned()).filter(|_| to == ".");
        return in_directory.chain(here).chain([to.to_owned()]).collect();
    }
    let words = simple.arguments();
    let letter = if name.starts_with("wget") { 'O' } else { 'o' };
    let named = words.iter().enumerate().filter_map(|(at, word)| match word.strip_prefix("--") {
        Some("output" | "output-document" | "out") => words.get(at + 1).cloned(),
        Some(long) => {
            long.strip_prefix("out").and_then(|rest| rest.split_once('=')).map(|(_, to)| to.to_owned())
        }
        None if word.starts_with('-') && word.ends_with(letter) => words.get(at + 1).cloned(),
        None => None,
    });
    // Or the last part of the address.
    let by_address = simple.operands().filter_map(|word| word.rsplit('/').next()).map(str::to_owned);
    let directories = simple.values('P', "directory-prefix").into_iter().filter(|_| name.starts_with("wget"));
    let in_directory = directories.flat_map(|directory| {
        let names = simple.operands().filter_map(|word| word.rsplit('/').next());
        names.map(move |name| format!("{}/{name}", directory.trim_end_matches('/')))
    });
    named.chain(by_address).chain(in_directory).collect()
}
