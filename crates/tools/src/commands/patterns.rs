//! Patterns of commands that a person may allow in place of the whole tool, such as `git push *`.
//!
//! A pattern is the first words of a command and a star for the rest. A pattern fits one plain command: no operators, no
//! redirections, no variables, no other program inside. Dangers are judged beside it, so that a pattern never allows more
//! than its commands do.

use super::explain::plain_command;

/// Programs that run others or code of their own. The words after them say too little to stand for all of their uses.
const RUN_ANYTHING: &[&str] = &[
    "awk", "bash", "busybox", "bun", "command", "dash", "deno", "doas", "docker", "env", "eval", "exec",
    "find", "gawk", "kubectl", "ksh", "lua", "make", "nice", "node", "nohup", "npx", "parallel", "perl",
    "php", "podman", "python", "python2", "python3", "ruby", "sed", "sh", "ssh", "su", "sudo", "tclsh",
    "time", "timeout", "uv", "uvx", "xargs", "zsh",
];

/// The patterns that fit a command, the narrowest first. None for anything but one plain command.
pub(crate) fn offered(command: &str) -> Vec<String> {
    let Some(words) = plain_command(command) else { return Vec::new() };
    let mut patterns = Vec::new();
    let mut offer = |count: usize| {
        let start = words.get(..count).unwrap_or_default();
        if start.len() == count && start.iter().all(|word| is_simple(word)) {
            patterns.push(if words.len() == count {
                start.join(" ")
            } else {
                format!("{} *", start.join(" "))
            });
        }
    };
    let is_word = |word: &String| !word.starts_with('-');
    if words.get(1).is_some_and(is_word) {
        offer(2);
    }
    if words.first().is_some_and(|name| !RUN_ANYTHING.contains(&name.as_str())) {
        offer(1);
    }
    patterns
}

/// Whether a pattern that was offered fits a command.
pub(crate) fn fits(pattern: &str, command: &str) -> bool {
    let Some(words) = plain_command(command) else { return false };
    let (start, more) = match pattern.strip_suffix(" *") {
        Some(start) => (start, true),
        None => (pattern, false),
    };
    let start: Vec<&str> = start.split(' ').collect();
    let begins =
        words.len() >= start.len() && words.iter().zip(&start).all(|(word, expected)| word == expected);
    begins && (more || words.len() == start.len())
}

/// Whether a word can stand in a pattern as it is.
fn is_simple(word: &str) -> bool {
    let is_usual = |character: char| character.is_ascii_alphanumeric() || "_-./:@+=%,".contains(character);
    !word.is_empty() && word.len() <= 100 && word.chars().all(is_usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_commands_offer_their_first_words() {
        for (command, patterns) in [
            ("git push origin main", vec!["git push *", "git *"]),
            ("git push", vec!["git push", "git *"]),
            ("npm install left-pad", vec!["npm install *", "npm *"]),
            ("ls -la", vec!["ls *"]),
            ("pytest", vec!["pytest"]),
            ("python3 deploy.py --all", vec!["python3 deploy.py *"]),
            ("python3 -c 'print(1)'", vec![]),
            ("bash -c 'git push'", vec![]),
            ("git push; rm x", vec![]),
            ("git push > log", vec![]),
            ("git push $REMOTE", vec![]),
            ("GIT_SSH_COMMAND=x git push", vec![]),
            ("./deploy now", vec!["./deploy now", "./deploy *"]),
            ("git push $(cat remote)", vec![]),
        ] {
            assert_eq!(offered(command), patterns, "{command}");
        }
    }

    #[test]
    fn a_pattern_fits_one_plain_command() {
        for (pattern, command, expected) in [
            ("git push *", "git push origin main", true),
            ("git push *", "git push", true),
            ("git push *", "git  push 'origin' main", true),
            ("git push *", "git pushy", false),
            ("git push *", "git push && rm -r x", false),
            ("git push *", "git push origin $(rm -r x)", false),
            ("git push *", "GIT_CONFIG_COUNT=1 git push origin", false),
            ("git push *", "HOME=. git push origin", false),
            ("git push *", "/tmp/git push", false),
            ("git push *", "env git push", false),
            ("git push", "git push origin", false),
            ("git push", "git push", true),
        ] {
            assert_eq!(fits(pattern, command), expected, "{pattern} on {command}");
        }
    }
}
