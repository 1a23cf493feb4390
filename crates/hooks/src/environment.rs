//! The environment of all user code: the server's own, made safe for a working directory that a model writes to.
//!
//! Command hooks run in the session's workspace, with the server's rights. Programs that they call look around there
//! for code and for configuration that names code. Everything that a variable can turn off is turned off here, once,
//! when the server starts. What a variable of the operator's already says stays as it is.

use std::collections::BTreeMap;

/// Where programs are found if the environment does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Lists of directories in which an empty or relative entry stands for the working directory.
const SEARCH_PATHS: [&str; 9] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "PYTHONPATH",
    "PERL5LIB",
    "PERLLIB",
    "RUBYLIB",
    "NODE_PATH",
    "CLASSPATH",
];

/// Variables that keep interpreters from importing out of the working directory. They are set whatever the operator says.
const INTERPRETERS: [(&str, &str); 2] = [("PYTHONSAFEPATH", "1"), ("PERL_USE_UNSAFE_INC", "0")];

/// Variables by which git ignores what a repository's configuration would have it run, unless the operator set them.
const GIT_VARIABLES: [(&str, &str); 8] = [
    // `core.pager` and `pager.<command>`.
    ("GIT_PAGER", "cat"),
    // `core.editor` and `sequence.editor`.
    ("GIT_EDITOR", ":"),
    ("GIT_SEQUENCE_EDITOR", ":"),
    // `core.gitProxy`.
    ("GIT_PROXY_COMMAND", ""),
    ("GIT_TERMINAL_PROMPT", "0"),
    // `ext::` addresses and helpers by name run programs; so does a remote in a local directory by `uploadpack`.
    ("GIT_ALLOW_PROTOCOL", "http:https:ssh:git"),
    // A repository that misses objects on purpose would have git fetch them, whatever the hook asked for.
    ("GIT_NO_LAZY_FETCH", "1"),
    // `core.sshCommand`; `GIT_SSH` of the operator's comes before this.
    ("GIT_SSH_COMMAND", "ssh"),
];

/// Settings that take precedence over those of a repository.
const GIT_SETTINGS: [(&str, &str); 16] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    // An empty value forgets the helpers that were named before it, those for certain addresses included.
    ("credential.helper", ""),
    ("core.alternateRefsCommand", ":"),
    ("interactive.diffFilter", "cat"),
    ("log.showSignature", "false"),
    ("gpg.program", "gpg"),
    ("gpg.openpgp.program", "gpg"),
    ("gpg.x509.program", "gpgsm"),
    ("gpg.ssh.program", "ssh-keygen"),
    ("gpg.ssh.defaultKeyCommand", "ssh-add -L"),
    ("tar.tgz.command", "gzip -cn"),
    ("tar.tar.gz.command", "gzip -cn"),
    // `gc.recentObjectsHook` runs when git tidies up by itself.
    ("maintenance.auto", "false"),
    // Files of a workspace that look like a repository without a working tree are none.
    ("safe.bareRepository", "explicit"),
    // `submodule.<name>.update` may be a command.
    ("submodule.recurse", "false"),
];

/// The environment for hooks and plugins, made of the server's.
pub fn hook_environment(server: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut env = server;
    for name in SEARCH_PATHS {
        if let Some(list) =
            env.remove(name).map(|list| absolute_entries(&list)).filter(|list| !list.is_empty())
        {
            env.insert(name.to_owned(), list);
        }
    }
    env.entry("PATH".to_owned()).or_insert_with(|| DEFAULT_PATH.to_owned());
    for (name, value) in INTERPRETERS {
        env.insert(name.to_owned(), value.to_owned());
    }
    // The operator's own programs for these are weaker than a repository's configuration, and ours would be stronger.
    let askpass = env.get("SSH_ASKPASS").cloned().unwrap_or_default();
    env.entry("GIT_ASKPASS".to_owned()).or_insert(askpass);
    if let Some(ssh) =
        env.get("GIT_SSH").and_then(|ssh| shlex::try_quote(ssh).ok()).map(|ssh| ssh.into_owned())
    {
        env.entry("GIT_SSH_COMMAND".to_owned()).or_insert(ssh);
    }
    for (name, value) in GIT_VARIABLES {
        env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    add_git_settings(&mut env);
    env
}

/// The entries of a list of directories that do not depend on the working directory.
fn absolute_entries(list: &str) -> String {
    list.split(':').filter(|entry| entry.starts_with('/')).collect::<Vec<_>>().join(":")
}

/// Puts our settings before those that the environment already has, so that the operator's win.
fn add_git_settings(env: &mut BTreeMap<String, String>) {
    let count = env.get("GIT_CONFIG_COUNT").and_then(|count| count.trim().parse().ok()).unwrap_or(0usize);
    let mut settings: Vec<(String, String)> =
        GIT_SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    // An entry that is missing would be an error for git; it is left out. No environment holds more than it has.
    for index in 0..count.min(env.len()) {
        let key = env.get(&format!("GIT_CONFIG_KEY_{index}")).cloned();
        let value = env.get(&format!("GIT_CONFIG_VALUE_{index}")).cloned();
        settings.extend(key.zip(value));
    }
    env.retain(|name, _| !name.starts_with("GIT_CONFIG_KEY_") && !name.starts_with("GIT_CONFIG_VALUE_"));
    env.insert("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string());
    for (index, (key, value)) in settings.into_iter().enumerate() {
        env.insert(format!("GIT_CONFIG_KEY_{index}"), key);
        env.insert(format!("GIT_CONFIG_VALUE_{index}"), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment<const N: usize>(variables: [(&str, &str); N]) -> BTreeMap<String, String> {
        hook_environment(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }

    #[test]
    fn search_paths_keep_only_absolute_directories() {
        let env = environment([
            ("PATH", ".:/usr/bin::bin:/bin:"),
            ("LD_LIBRARY_PATH", ":"),
            ("PYTHONPATH", "/lib:"),
        ]);
        assert_eq!(env["PATH"], "/usr/bin:/bin");
        assert_eq!((env.get("LD_LIBRARY_PATH"), env["PYTHONPATH"].as_str()), (None, "/lib"));
        assert_eq!(environment([("PATH", ".")])["PATH"], DEFAULT_PATH);
    }

    #[test]
    fn git_settings_of_the_operator_come_last_and_win() {
        let env = environment([
            ("GIT_CONFIG_COUNT", "3"),
            ("GIT_CONFIG_KEY_0", "credential.helper"),
            ("GIT_CONFIG_VALUE_0", "store"),
            ("GIT_CONFIG_KEY_2", "user.name"),
            ("GIT_CONFIG_VALUE_2", "Ada"),
        ]);
        let last = GIT_SETTINGS.len() + 1;
        assert_eq!(env["GIT_CONFIG_COUNT"], (last + 1).to_string());
        assert_eq!(env["GIT_CONFIG_KEY_0"], "core.fsmonitor");
        assert_eq!(env[&format!("GIT_CONFIG_VALUE_{}", last - 1)], "store");
        assert_eq!(env[&format!("GIT_CONFIG_VALUE_{last}")], "Ada");
        for nonsense in ["many", "-1", "99999999999999999999"] {
            let env = environment([("GIT_CONFIG_COUNT", nonsense)]);
            assert_eq!(env["GIT_CONFIG_COUNT"], GIT_SETTINGS.len().to_string(), "{nonsense}");
        }
    }

    #[test]
    fn variables_of_the_operator_stay() {
        let env = environment([
            ("GIT_SSH_COMMAND", "ssh -i /key"),
            ("GIT_SSH", "/opt/ssh"),
            ("SSH_ASKPASS", "/opt/ask"),
            ("GIT_ALLOW_PROTOCOL", "file"),
            ("PYTHONSAFEPATH", ""),
        ]);
        assert_eq!(
            (env["GIT_SSH_COMMAND"].as_str(), env["GIT_ASKPASS"].as_str()),
            ("ssh -i /key", "/opt/ask")
        );
        assert_eq!((env["GIT_ALLOW_PROTOCOL"].as_str(), env["PYTHONSAFEPATH"].as_str()), ("file", "1"));
        assert_eq!(environment([("GIT_SSH", "/my ssh")])["GIT_SSH_COMMAND"], "'/my ssh'");
        assert_eq!(environment([])["GIT_ASKPASS"], "");
    }
}
