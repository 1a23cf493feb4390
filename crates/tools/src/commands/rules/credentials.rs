//! Reading keys, passwords and other secrets.

use crate::commands::lexer::SECRET;
use crate::commands::parameters::names_secret;
use crate::commands::paths::{is_credential, is_metadata_address};
use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

/// Programs that name files without reading them, or that use a key for what it is for.
const DO_NOT_SHOW: [&str; 46] = [
    "npx",
    "npm",
    "ls",
    "stat",
    "test",
    "[",
    "[[",
    "touch",
    "echo",
    "printf",
    "git",
    "mkdir",
    "rm",
    "chmod",
    "chown",
    "ssh",
    "ssh-keygen",
    "ssh-add",
    "file",
    "du",
    "realpath",
    "readlink",
    "dirname",
    "basename",
    "source",
    ".",
    "export",
    "find",
    "fd",
    "cd",
    "unlink",
    "scp",
    "sftp",
    "ssh-copy-id",
    "docker",
    "podman",
    "docker-compose",
    "kubectl",
    "dotenv",
    "env",
    "code",
    "sha256sum",
    "md5sum",
    "wc",
    "rmdir",
    "set",
];

pub(in crate::commands) const CREDENTIALS_READ: Finding =
    finding("credentials_read", "reads keys, passwords or other secrets");

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let found =
        reads_file(command) || prints_secret(command) || searches(command) || asks_machine_for_keys(command);
    found.then_some(CREDENTIALS_READ)
}

/// Clouds hand a machine its keys at an address that only the machine itself reaches.
fn asks_machine_for_keys(command: &Simple) -> bool {
    let fetches = matches!(
        command.name(),
        "curl"
            | "wget"
            | "wget2"
            | "http"
            | "https"
            | "xh"
            | "nc"
            | "ncat"
            | "fetch"
            | "aria2c"
            | "lynx"
            | "w3m"
    );
    fetches && command.arguments().iter().any(|word| is_metadata_address(word))
}

fn reads_file(command: &Simple) -> bool {
    let name = command.name();
    let sources = !matches!(name, "source" | "." | "ssh" | "docker" | "rm" | "ssh-add" | "ssh-keygen");
    if sources && command.opens.iter().any(|path| is_credential(path)) {
        return true;
    }
    if DO_NOT_SHOW.contains(&name) {
        return false;
    }
    // The first word of a search is what is searched for.
    let searches = matches!(
        name,
        "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" | "sed" | "awk" | "gawk" | "jq" | "yq"
    );
    let skipped = usize::from(searches);
    let operands: Vec<&str> = command.operands().skip(skipped).collect();
    let operands = match name {
        // What comes last is written, not read.
        "cp" | "mv" | "install" | "ln" => operands.split_last().map_or(&[][..], |(_, read)| read),
        "tee" | "sponge" => &[],
        _ => &operands[..],
    };
    operands.iter().any(|word| is_credential(word))
        || command
            .arguments()
            .iter()
            .filter_map(|word| word.split_once("if="))
            .any(|(_, path)| is_credential(path))
}

/// Tools that print a secret.
fn prints_secret(command: &Simple) -> bool {
    let words: Vec<&str> = command.operands().collect();
    let has = |word: &str| words.contains(&word);
    match command.name() {
        "echo" | "printf" => {
            command.writes.is_empty() && command.arguments().iter().any(|word| word.contains(SECRET))
        }
        "printenv" => words.iter().any(|name| names_secret(name)),
        "grep" | "egrep" | "rg" => {
            let pattern = words.first().copied().unwrap_or_default().to_ascii_lowercase();
            let secret =
                ["pass", "secret", "token", "key", "cred", "aws"].iter().any(|part| pattern.contains(part));
            secret && command.input.as_ref().is_some_and(|input| input.origin.environment)
        }
        "gh" | "glab" => has("auth") && has("token"),
        "gcloud" => {
            has("print-access-token") || has("print-identity-token") || has("secrets") && has("access")
        }
        "aws" => {
            has("get-secret-value")
                || has("get-session-token")
                || has("get-login-password")
                || has("export-credentials")
                || has("create-access-key")
                || has("configure")
                    && words.iter().any(|word| word.contains("secret") || word.contains("token"))
                || has("ssm") && command.has('\0', "with-decryption")
        }
        "az" => has("get-access-token") || has("keyvault") && has("show"),
        "vault" => has("get") || has("read") || has("print"),
        "op" => has("read") || has("get"),
        "pass" => has("show") || words.len() == 1 && !has("ls") && !has("init"),
        "bw" | "lpass" => has("get") || has("show") || has("export"),
        "doppler" => has("secrets"),
        "kubectl" | "oc" => {
            let secret =
                words.iter().any(|word| matches!(*word, "secret" | "secrets") || word.starts_with("secret/"));
            let shown =
                command.values('o', "output").iter().any(|format| !matches!(*format, "name" | "wide"))
                    || command
                        .arguments()
                        .iter()
                        .any(|word| word.starts_with("-ojson") || word.starts_with("-oyaml"));
            secret && has("get") && shown
                || has("create") && has("token")
                || has("config") && has("view") && command.has('\0', "raw")
        }
        "security" => words
            .first()
            .is_some_and(|verb| verb.starts_with("find-") || *verb == "dump-keychain" || *verb == "export"),
        "sops" => command.has('d', "decrypt") || has("decrypt"),
        "ansible-vault" => has("view") || has("decrypt"),
        "age" | "rage" => command.has('d', "decrypt"),
        "secret-tool" => has("lookup") || has("search"),
        "git" => has("credential") && has("fill"),
        "gpg" | "gpg2" => command.arguments().iter().any(|word| word.starts_with("--export-secret")),
        "getent" => has("shadow") || has("gshadow"),
        "heroku" => has("auth:token") || words.first() == Some(&"config"),
        "fly" | "flyctl" => has("auth") && has("token"),
        "vercel" => has("env") && has("pull"),
        "chamber" => has("export") || has("read") || has("env"),
        "npm" => has("token"),
        "unshadow" | "mimikatz" | "secretsdump.py" | "lazagne" => true,
        _ => false,
    }
}

/// A search for keys over a home or the whole machine.
fn searches(command: &Simple) -> bool {
    let place = command.operand(0);
    let wide = place == "/"
        || place.starts_with('~')
        || place == "/home"
        || place == "/root"
        || place.starts_with("/etc");
    let is_key = |word: &String| {
        is_credential(word) && !word.starts_with(".env")
            || word.ends_with(".pem")
            || word.starts_with("id_rsa")
            || word.ends_with(".key")
    };
    let greps = matches!(command.name(), "grep" | "egrep" | "rg" | "ag")
        && (command.has('r', "recursive") || command.has('R', "") || matches!(command.name(), "rg" | "ag"));
    let looks_for_secret = || names_secret(place) || place.eq_ignore_ascii_case("passwd");
    let in_home = |path: &str| ["~", "~/", "/", "/home", "/root", "/etc", "~/.config"].contains(&path);
    greps && looks_for_secret() && command.operands().skip(1).any(in_home)
        || command.name() == "find" && wide && command.arguments().iter().skip(1).any(is_key)
}
