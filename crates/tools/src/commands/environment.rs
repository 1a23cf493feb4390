//! Variables that make programs run something.

use super::Finding;
use super::groups::assignment;
use super::rules::UNSEEN_CODE;

/// The ends of the names of variables whose value is a command.
const COMMANDS: [&str; 11] = [
    "_COMMAND",
    "_SSH",
    "PAGER",
    "EDITOR",
    "ASKPASS",
    "PASSCOMMAND",
    "_RSH",
    "VISUAL",
    "BROWSER",
    "_DIFF",
    "AUTOM4TE",
];
/// Variables whose value is expanded as a text in double quotes.
const PROMPTS: [&str; 5] = ["PS0", "PS1", "PS2", "PS4", "LESSOPEN"];
/// Variables that name code which another program loads.
const CODE: [&str; 13] = [
    "GIT_CONFIG_PARAMETERS",
    "NODE_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "PERL5OPT",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "PERL5DB",
    "BASH_ENV",
    "SHELLOPTS",
];

/// The functions that a shell is given in variables, `BASH_FUNC_f%%=() { …; }`, each as a script that calls it.
pub(super) fn functions(words: &[String]) -> Vec<String> {
    let functions = words.iter().filter_map(|word| word.strip_prefix("BASH_FUNC_")?.split_once('='));
    functions.map(|(_, body)| format!("f {body}\nf")).collect()
}

/// Whether a variable's value is a command.
fn holds_command(name: &str) -> bool {
    // Settings of git that are given in the environment may be commands, and are judged as such.
    name.starts_with("GIT_CONFIG_VALUE_") || COMMANDS.iter().any(|end| name.ends_with(end))
}

/// The assignments that make a program run something.
pub(super) fn of_interest(assignments: &[String]) -> Vec<String> {
    let is_it = |word: &&String| {
        let name = assignment(word).map_or("", |(name, _)| name);
        holds_command(name) || PROMPTS.contains(&name) || CODE.contains(&name) || name == "ENV"
    };
    assignments.iter().filter(is_it).cloned().collect()
}

/// The commands that variables hold.
pub(super) fn scripts(assignments: &[String]) -> Vec<String> {
    let script = |word: &String| {
        let (name, value) = assignment(word)?;
        let value = value.trim_start_matches('|');
        if value.is_empty() {
            None
        } else if holds_command(name) {
            Some(value.trim_start_matches('!').to_owned())
        } else if PROMPTS.contains(&name) {
            Some(format!(": \"{}\"", value.replace('"', "")))
        } else if name == "BASH_ENV" && value.starts_with("/dev/fd/") {
            Some(format!(". {value}"))
        } else {
            None
        }
    };
    assignments.iter().filter_map(script).collect()
}

/// Whether a variable makes a program load code that nobody sees here.
pub(super) fn loads_code(assignments: &[String]) -> Option<Finding> {
    let loads = |word: &String| {
        assignment(word).is_some_and(|(name, value)| {
            // A file that a shell reads first. Elsewhere it is the name of a surrounding, such as `production`.
            if name == "ENV" {
                return value.starts_with(['/', '~', '.']) && value != "/dev/null";
            }
            let has_options = name.ends_with("_OPTIONS");
            let options = ["-r ", "--require", "--import", "-javaagent", "-agent", "--loader"];
            let loads = !has_options || options.iter().any(|option| value.contains(option));
            CODE.contains(&name) && loads && !value.is_empty() && value != "/dev/null"
        })
    };
    let found = assignments.iter().any(loads);
    found.then_some(UNSEEN_CODE)
}
