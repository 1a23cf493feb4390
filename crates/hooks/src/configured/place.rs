//! Where hooks run: their environment, and what paths in their commands mean.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Endings by which a script is known.
const SCRIPTS: [&str; 13] =
    ["sh", "bash", "zsh", "fish", "py", "pyw", "rb", "pl", "lua", "js", "mjs", "cjs", "ts"];

/// Where hooks run.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Their environment, all of it.
    pub env: BTreeMap<String, String>,
    /// Where a hook runs that is about no session.
    pub directory: PathBuf,
    /// What a relative path of a script is relative to. Hooks run in workspaces, where agents write files: a script
    /// must never be looked for there.
    pub scripts: PathBuf,
}

impl Place {
    /// The command with a leading `~` replaced by the home directory.
    pub fn expand_home(&self, command: &str) -> String {
        let home = self.env.get("HOME").map(String::as_str).unwrap_or_default();
        match command.strip_prefix('~') {
            Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with(['/', ' '])) => {
                format!("{}{rest}", home.trim_end_matches('/'))
            }
            _ => command.to_owned(),
        }
    }

    /// A command line as a program and its arguments: split as in a shell, but without one.
    pub fn split(&self, command: &str) -> Result<Vec<String>, String> {
        let arguments = shlex::split(&self.expand_home(command))
            .ok_or_else(|| format!("the command {command} has a quote that never ends"))?;
        if arguments.is_empty() {
            return Err("the command is empty".to_owned());
        }
        Ok(self.anchored(arguments))
    }

    /// The arguments with the program and the script made absolute.
    fn anchored(&self, mut arguments: Vec<String>) -> Vec<String> {
        let script = script_index(&arguments);
        for (index, argument) in arguments.iter_mut().enumerate() {
            let path = self.absolute(argument);
            let is_script = || Some(index) == script && (has_ending(argument) || path.is_file());
            if index == 0 && argument.contains('/') || index > 0 && is_script() {
                *argument = path.display().to_string();
            }
        }
        arguments
    }

    /// The file that a command's behaviour comes from, as far as that can be told.
    pub fn script(&self, arguments: &[String]) -> Option<PathBuf> {
        let argument = arguments.get(script_index(arguments)?)?;
        Some(self.absolute(argument))
    }

    fn absolute(&self, path: &str) -> PathBuf {
        self.scripts.join(self.expand_home(path))
    }
}

/// The argument that is the script: the first with the ending of one, else the first that is a path, else the first.
fn script_index(arguments: &[String]) -> Option<usize> {
    let is_path = |argument: &String| argument.contains('/') || argument.starts_with('~');
    let ending = arguments.iter().position(|argument| has_ending(argument));
    let index = ending.or_else(|| arguments.iter().position(is_path));
    index.or_else(|| (!arguments.is_empty()).then_some(0))
}

pub(super) fn has_ending(argument: &str) -> bool {
    let ending = Path::new(argument).extension().and_then(|ending| ending.to_str());
    !argument.contains("://") && ending.is_some_and(|ending| SCRIPTS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        let env = BTreeMap::from([("HOME".to_owned(), "/home/ada".to_owned())]);
        Place { env, directory: PathBuf::new(), scripts: PathBuf::from("/srv") }
    }

    fn split(command: &str) -> Vec<String> {
        place().split(command).unwrap()
    }

    #[test]
    fn a_command_is_split_as_in_a_shell_and_its_script_is_anchored() {
        assert_eq!(split("~/hooks/check.sh --fast 'a b'"), ["/home/ada/hooks/check.sh", "--fast", "a b"]);
        assert_eq!(split("python3 hooks/check.py $X"), ["python3", "/srv/hooks/check.py", "$X"]);
        assert_eq!(split("./check"), ["/srv/./check"]);
        assert_eq!(split("jq ."), ["jq", "."]);
        assert_eq!(split("curl -sd @- https://x.test/a.sh"), ["curl", "-sd", "@-", "https://x.test/a.sh"]);
        assert_eq!(split("env -i check.sh"), ["env", "-i", "/srv/check.sh"]);
    }

    #[test]
    fn the_script_is_what_has_the_ending_of_one() {
        let script = |command: &str| place().script(&split(command)).unwrap();
        assert_eq!(script("python3 -u ~/x.py /tmp/log"), PathBuf::from("/home/ada/x.py"));
        assert_eq!(script("bash /opt/hook"), PathBuf::from("/opt/hook"));
        assert_eq!(script("jq ."), PathBuf::from("/srv/jq"));
    }
}
