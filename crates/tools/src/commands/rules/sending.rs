//! Sending files to other machines.

use crate::commands::lexer::has_unknown;
use crate::commands::names::is_shell;
use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let sends = match command.name() {
        "curl" => by_curl(command),
        "wget" | "wget2" => {
            let file = ["post-file", "body-file"].iter().any(|option| command.has('\0', option));
            let data = ["post-data", "body-data"].iter().any(|option| command.has('\0', option));
            (file || (data || command.operands().any(has_unknown)) && command.within.content)
                && !is_local(command)
        }
        "http" | "https" | "xh" | "httpie" => {
            (reads_file(command)
                || command.operands().any(|word| word.contains('@') && !word.contains("://")))
                && !is_local(command)
        }
        "scp" => command.operands().last().is_some_and(is_remote),
        "rsync" | "rclone" if command.has('n', "dry-run") => false,
        "rsync" => command.operands().last().is_some_and(|to| is_remote(to) || to.starts_with("rsync://")),
        "ftp" if command.has('u', "") => true,
        "sftp" if command.has('b', "") => true,
        "sftp" | "ftp" | "lftp" | "tftp" | "ncftp" | "smbclient" => puts(command),
        "ncftpput" | "slackcat" | "pastebinit" | "wgetpaste" | "ffsend" => true,
        "nc" | "ncat" | "netcat" | "telnet" => reads_file(command) && !is_local(command),
        "socat" => {
            command.operands().any(|word| {
                let kind = word.split(':').next().unwrap_or_default().to_ascii_lowercase();
                matches!(kind.as_str(), "file" | "open")
            }) || reads_file(command)
        }
        "openssl" => command.says("s_client") && reads_file(command),
        "ssh" => reads_file(command) && command.operands().next().is_some(),
        "xdg-open" | "open" | "lynx" | "w3m" | "links" | "elinks" => {
            command.within.content && command.operands().any(|word| word.contains("://") && has_unknown(word))
        }
        "aws" if command.says("s3") && command.says("--dryrun") => false,
        "aws" => {
            command.says("s3") && moves(command, &["cp", "mv", "sync"], "s3://") || command.says("put-object")
        }
        "gsutil" => moves(command, &["cp", "mv", "rsync"], "gs://"),
        "gcloud" => {
            command.says("storage") && moves(command, &["cp", "mv", "rsync"], "gs://")
                || command.says("compute")
                    && command.says("scp")
                    && command.operands().last().is_some_and(is_remote)
        }
        "s3cmd" | "s5cmd" | "s4cmd" => {
            command.operands().any(|verb| matches!(verb, "put" | "sync"))
                || moves(command, &["cp", "mv"], "s3://")
        }
        "az" => command.says("storage") && command.operands().any(|verb| verb.starts_with("upload")),
        "rclone" => {
            command
                .operands()
                .next()
                .is_some_and(|verb| matches!(verb, "copy" | "sync" | "move" | "copyto" | "moveto"))
                && command.operands().last().is_some_and(|to| to.contains(':'))
        }
        "mc" => matches!(command.operand(0), "cp" | "mirror"),
        "gh" | "glab" => (command.says("gist") || command.says("snippet")) && command.says("create"),
        "mail" | "mailx" | "mutt" | "sendmail" | "swaks" | "msmtp" | "s-nail" | "neomutt" => {
            command.has('a', "attach") || command.has('A', "attach") || reads_file(command)
        }
        "dig" | "nslookup" | "host" | "ping" | "drill" | "ping6" => {
            let carries = |word: &str| has_unknown(word) && word.contains('.') && !word.ends_with('.');
            command.operands().any(carries)
        }
        "whois" | "finger" => command.within.content && command.operands().any(has_unknown),
        "ab" => (command.has('p', "") || command.has('u', "")) && !is_local(command),
        "azcopy" => {
            matches!(command.operand(0), "copy" | "cp" | "sync")
                && command.operands().last().is_some_and(|to| to.starts_with("https://"))
        }
        "hping3" => command.has('E', "file"),
        "lp" | "lpr" => command.has('h', "") || command.has('H', ""),
        "tar" => {
            command.has('\0', "rsh-command") && command.values('f', "file").iter().any(|path| is_remote(path))
        }
        "b2" => command.operands().any(|verb| verb.starts_with("upload") || verb == "sync"),
        "restic" | "borg" | "duplicity" | "kopia" => {
            let copies = command.operands().any(|verb| matches!(verb, "backup" | "create" | "copy"));
            let away = |word: &String| {
                word.contains("://")
                    || word.starts_with("rest:")
                    || word.starts_with("sftp:")
                    || word.starts_with("s3:")
                    || word.contains('@') && word.contains(':')
            };
            copies && command.arguments().iter().any(away)
        }
        "httpd" | "http-server" | "serve" | "simple-http-server" | "miniserve" => {
            let whole = |path: &str| matches!(path, "/" | "~" | "~/" | "/etc" | "/home" | "/root");
            command.operands().any(whole)
        }
        // To an address that is no remote of the repository's.
        "git" if command.says("push") && !command.has('n', "dry-run") => {
            let address = |word: &str| {
                word.contains("://") && !word.starts_with("file://")
                    || word.contains('@') && word.contains(':')
            };
            command.operands().any(address)
        }
        "croc" | "wormhole" => command.says("send"),
        "magic-wormhole" => true,
        name => {
            let through_shell = command.writes.iter().any(|path| path.starts_with("/dev/tcp/"));
            through_shell && !is_shell(name) && !matches!(name, "" | "echo" | "printf" | ":" | "exec")
        }
    };
    sends.then_some(finding("send_file", "sends files to another machine"))
}

fn by_curl(command: &Simple) -> bool {
    let mut command = command.clone();
    command.words.retain(|word| !names_method(word));
    let command = &command;
    let file = |value: &&str| value.starts_with('@') || value.contains("=@") || value.contains("=<");
    let mut data: Vec<&str> = command.values('F', "form");
    for option in ["data", "data-binary", "data-raw", "data-ascii", "json"] {
        data.extend(command.values(if option == "data" { 'd' } else { '\0' }, option));
    }
    let encoded = command.values('\0', "data-urlencode");
    let known_input = command.input.as_ref().is_some_and(|input| !has_unknown(&input.text));
    let sends_file = data.iter().any(|value| file(value) && !(*value == "@-" && known_input))
        || encoded.iter().any(|value| value.contains('@'))
        || !command.values('T', "upload-file").is_empty();
    let parts = data.iter().copied().chain(encoded.iter().copied()).chain(command.operands());
    let sends_content =
        (command.within.content || command.within.environment) && parts.into_iter().any(has_unknown);
    (sends_file || sends_content) && !is_local(command)
}

/// `-XPUT`, whose letters are no options.
fn names_method(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    letters.and_then(|letters| letters.split_once('X')).is_some_and(|(_, method)| {
        method.len() > 2 && method.chars().all(|letter| letter.is_ascii_uppercase())
    })
}

/// Whether a program's input is the content of a file.
fn reads_file(command: &Simple) -> bool {
    let is_file = |path: &String| path != "/dev/null" && !path.starts_with("/dev/fd/");
    command.opens.iter().any(is_file) || command.input.as_ref().is_some_and(|input| input.origin.content)
}

/// A path on another machine: `host:path`.
fn is_remote(path: &str) -> bool {
    path.split_once(':')
        .is_some_and(|(host, _)| !host.is_empty() && !host.contains('/') && !host.starts_with('.'))
}

/// Whether something is copied to this kind of address.
fn moves(command: &Simple, verbs: &[&str], to: &str) -> bool {
    let copies = command.operands().any(|verb| verbs.contains(&verb));
    let places: Vec<&str> = command.operands().filter(|word| word.starts_with(to)).collect();
    let last = command.operands().last().unwrap_or_default();
    copies
        && places.len() == 1
        && last.starts_with(to)
        && command.arguments().last().is_none_or(|word| word != "-")
}

/// Commands of a client for file transfer.
fn puts(command: &Simple) -> bool {
    let says = |text: &str| {
        text.split(|c: char| c.is_whitespace() || c == ';')
            .any(|word| matches!(word, "put" | "mput" | "mirror" | "send"))
    };
    command.arguments().iter().any(|word| says(word))
        || command.input.as_ref().is_some_and(|input| says(&input.text))
}

/// Whether all that a program talks to is this machine.
pub(super) fn is_local(command: &Simple) -> bool {
    const HERE: [&str; 5] = ["localhost", "127.0.0.1", "0.0.0.0", "[::1]", "::1"];
    command.operands().any(|word| {
        let address = word.split_once("://").map_or(word, |(_, rest)| rest);
        HERE.iter().any(|here| {
            address.strip_prefix(here).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
        })
    })
}
