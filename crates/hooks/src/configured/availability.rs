//! Whether the command of a hook can be started, as far as that can be told without starting it.

use std::ffi::OsStr;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::place::{Place, has_ending};

/// Programs whose first script is what they run.
const INTERPRETERS: [&str; 14] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "pypy", "ruby", "perl", "lua", "node", "deno",
    "bun",
];
/// How much of a script is read to find its interpreter: as much as the system reads.
const MAX_SHEBANG: u64 = 256;

/// Why a command cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// The command line cannot be read.
    Malformed(String),
    /// There is no such program.
    NotFound(String),
    /// The program may not be executed.
    NotExecutable(String),
    /// The script is not there.
    NoScript(String),
    /// The script may not be read.
    Unreadable(String),
    /// The program that its first line names is not there.
    NoInterpreter {
        /// The script.
        script: String,
        /// The program that its first line names.
        interpreter: String,
    },
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::Malformed(problem) => f.write_str(problem),
            Unavailable::NotFound(program) => write!(f, "{program} was not found"),
            Unavailable::NotExecutable(program) => write!(f, "{program} is not executable"),
            Unavailable::NoScript(script) => write!(f, "{script} was not found"),
            Unavailable::Unreadable(script) => write!(f, "{script} cannot be read"),
            Unavailable::NoInterpreter { script, interpreter } => {
                write!(f, "{script} needs {interpreter}, which was not found")
            }
        }
    }
}

impl Place {
    /// Whether a command can be started.
    pub fn availability(&self, command: &str) -> Result<(), Unavailable> {
        let arguments = self.split(command).map_err(Unavailable::Malformed)?;
        let program = arguments.first().cloned().unwrap_or_default();
        let path = self.find_program(&program).ok_or_else(|| Unavailable::NotFound(program.clone()))?;
        if !may(&path, Access::EXEC_OK) {
            return Err(Unavailable::NotExecutable(program));
        }
        self.interpreter_is_there(&path)?;
        match script_of_interpreter(&arguments) {
            Some(script) if !Path::new(script).is_file() => Err(Unavailable::NoScript(script.to_owned())),
            Some(script) if !may(Path::new(script), Access::READ_OK) => {
                Err(Unavailable::Unreadable(script.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// The file that a program's name stands for.
    fn find_program(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            return Some(PathBuf::from(program)).filter(|path| path.is_file());
        }
        let path = self.env.get("PATH").map(String::as_str).unwrap_or_default();
        let mut candidates = std::env::split_paths(path).map(|directory| directory.join(program));
        candidates.find(|path| path.is_file())
    }

    /// Checks the program that the first line of a script names, if it names one.
    fn interpreter_is_there(&self, script: &Path) -> Result<(), Unavailable> {
        let Some(line) = shebang(script) else { return Ok(()) };
        let mut words = line.split_whitespace();
        let Some(named) = words.next() else { return Ok(()) };
        let is_env = Path::new(named).file_name() == Some(OsStr::new("env"));
        // `env` finds the program in the path. Its options and variables come first.
        let of_env = words.find(|word| !word.starts_with('-') && !word.contains('='));
        let missing = |interpreter: &str| Unavailable::NoInterpreter {
            script: script.display().to_string(),
            interpreter: interpreter.to_owned(),
        };
        if !may(Path::new(named), Access::EXEC_OK) {
            return Err(missing(named));
        }
        match of_env.filter(|_| is_env) {
            Some(program) if self.find_program(program).is_none() => Err(missing(program)),
            _ => Ok(()),
        }
    }
}

/// The rest of a file's first line after `#!`.
fn shebang(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_SHEBANG).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

/// The script that an interpreter is given, if it can be told from options and their values.
fn script_of_interpreter(arguments: &[String]) -> Option<&str> {
    let (program, rest) = arguments.split_first()?;
    let program = Path::new(program).file_name()?.to_str()?;
    let program = program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if !INTERPRETERS.contains(&program) {
        return None;
    }
    let script = rest.iter().find(|argument| has_ending(argument));
    script.or_else(|| rest.first().filter(|first| first.starts_with('/'))).map(String::as_str)
}

fn may(path: &Path, what: Access) -> bool {
    access(path, what).is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_command_that_cannot_be_started_is_recognised() {
        let directory = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str, mode| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        script("good.sh", "#!/bin/sh\n", 0o755);
        script("plain.sh", "#!/bin/sh\n", 0o644);
        script("strange.sh", "#!/no/such/interpreter\n", 0o755);
        script("lang.sh", "#!/usr/bin/env -S no-such-language -u\n", 0o755);
        script("env.sh", "#!/usr/bin/env X=1 sh\n", 0o755);
        let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
        let place = Place { env, directory: PathBuf::new(), scripts: directory.path().to_owned() };
        for good in
            ["./good.sh", "sh plain.sh", "sh -c 'exit 1'", "./env.sh --x", "sh -e good.sh more.sh", "sh"]
        {
            assert_eq!(place.availability(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", "the command is empty"),
            ("sh -c 'x", "quote that never ends"),
            ("./none.sh", "none.sh was not found"),
            ("no-such-program x", "no-such-program was not found"),
            ("./plain.sh", "plain.sh is not executable"),
            ("./strange.sh", "needs /no/such/interpreter"),
            ("./lang.sh", "needs no-such-language"),
            ("sh none.sh", "none.sh was not found"),
            ("/bin/sh /none/at/all", "/none/at/all was not found"),
            (".", "was not found"),
        ] {
            let found = place.availability(bad).unwrap_err().to_string();
            assert!(found.contains(why), "{bad}: {found}");
        }
    }
}
