//! Options whose value is a command.

use super::Inner;
use crate::commands::finding;
use crate::commands::simple::Simple;

/// Programs with the letter and the long name of options whose value a shell runs.
const OPTIONS: &[(&str, char, &str)] = &[
    ("tar", 'I', "use-compress-program"),
    ("tar", '\0', "to-command"),
    ("tar", 'F', "info-script"),
    ("tar", '\0', "new-volume-script"),
    ("tar", '\0', "rsh-command"),
    ("bsdtar", '\0', "use-compress-program"),
    ("cpio", '\0', "rsh-command"),
    ("zip", '\0', "unzip-command"),
    ("split", '\0', "filter"),
    ("sort", '\0', "compress-program"),
    ("rsync", 'e', "rsh"),
    ("scp", 'S', ""),
    ("sftp", 'S', ""),
    ("man", 'P', "pager"),
    ("tcpdump", 'z', ""),
    ("fzf", '\0', "preview"),
    ("rg", '\0', "pre"),
    ("nodemon", 'x', "exec"),
    ("nix-shell", '\0', "run"),
    ("nix-shell", '\0', "command"),
    ("script", 'c', "command"),
    ("su", 'c', "command"),
    ("runuser", 'c', "command"),
    ("sg", 'c', ""),
    ("flock", 'c', "command"),
    ("dmsetup", '\0', "exec"),
    ("vagrant", 'c', "command"),
    ("gcloud", '\0', "command"),
    ("fly", 'C', "command"),
    ("ansible", 'a', "args"),
    ("npx", 'c', "call"),
    ("npm", 'c', "call"),
    ("cargo", 's', "shell"),
    ("start-stop-daemon", 'a', "startas"),
    ("run-parts", '\0', "exec"),
    ("dotenv", 'c', ""),
    ("complete", 'C', ""),
    ("mapfile", 'C', ""),
    ("wsl", 'e', "exec"),
    ("less", 'P', ""),
    ("ctags", '\0', "etags-include"),
    ("pssh", '\0', ""),
    ("dpkg", '\0', "pre-invoke"),
    ("ssh-keygen", 'D', ""),
];

/// Programs all of whose operands are commands, behind these letters of options with a value.
const OPERANDS: &[(&str, &str)] = &[
    ("hyperfine", "wmMrnNLSpcsu"),
    ("concurrently", "nckp"),
    ("mispipe", ""),
    ("watch", "n"),
    ("run-one", ""),
];

pub(super) fn run_by(simple: &Simple, inner: &mut Inner) {
    let name = simple.name();
    for (program, short, long) in OPTIONS {
        if *program == name && !(name == "rsync" && simple.says("--list-only")) {
            simple.values(*short, long).into_iter().for_each(|text| inner.script(text));
        }
    }
    if let Some((_, letters)) = OPERANDS.iter().find(|(program, _)| *program == name) {
        run_operands(simple, letters, inner);
    }
    match name {
        "tar" => checkpoint(simple, inner),
        "zip" => {
            let after = |at: usize| simple.arguments().get(at + 1);
            let at = simple.arguments().iter().position(|word| word == "-TT");
            at.and_then(after).into_iter().for_each(|text| inner.script(text));
        }
        "ssh" | "scp" | "sftp" | "autossh" => ssh_options(simple, inner),
        "apt" | "apt-get" | "aptitude" => {
            for value in simple.values('o', "option") {
                let command = value.split_once('=').filter(|(name, _)| name.contains("Invoke"));
                command.into_iter().for_each(|(_, text)| inner.script(text));
            }
        }
        "strace" | "ltrace" => {
            for output in simple.values('o', "output") {
                output.strip_prefix(['|', '!']).into_iter().for_each(|text| inner.script(text));
            }
        }
        "nmap" => {
            let scripts = simple.values('\0', "script");
            let own = scripts.iter().any(|script| script.contains('/') || script.ends_with(".nse"));
            if simple.has('\0', "interactive") || own {
                inner.findings.push(finding("shell_escape", "starts a shell that nobody attends"));
            }
        }
        "gcc" | "cc" | "g++" | "clang" => {
            let wrapper = simple.arguments().iter().position(|word| word == "-wrapper");
            let words = wrapper.and_then(|at| simple.arguments().get(at + 1));
            words.into_iter().for_each(|words| inner.program(words.split(',').filter(|word| *word != "-s")));
        }
        _ => {}
    }
}

/// Each operand, or all of them together for `watch`.
fn run_operands(simple: &Simple, letters: &'static str, inner: &mut Inner) {
    use crate::commands::options::{Options, Shape};
    let options = Options::of(
        simple,
        Shape::new(letters, &["warmup", "runs", "interval", "prepare", "names", "style"]),
    );
    if simple.name() == "watch" {
        if options.has("x") || options.has_long("exec") {
            inner.program(options.words.iter().copied());
        } else {
            inner.script(&options.words.join(" "));
        }
        return;
    }
    for text in simple.values('p', "prepare").into_iter().chain(options.words.iter().copied()) {
        inner.script(text);
    }
}

fn checkpoint(simple: &Simple, inner: &mut Inner) {
    for action in simple.values('\0', "checkpoint-action") {
        if let Some(command) = action.strip_prefix("exec=") {
            inner.script(command);
        }
    }
}

/// `-o ProxyCommand=…`, in one word or two.
fn ssh_options(simple: &Simple, inner: &mut Inner) {
    for option in simple.values('o', "") {
        let (name, value) = option.split_once(['=', ' ']).unwrap_or((option, ""));
        let name = name.to_ascii_lowercase();
        if matches!(name.as_str(), "proxycommand" | "localcommand" | "knownhostscommand" | "remotecommand") {
            let command = value.trim_start_matches([';', ' ']);
            let program = command.split([' ', ';']).next().unwrap_or_default();
            if crate::commands::names::is_shell(program.rsplit('/').next().unwrap_or(program))
                && !command.contains("-c")
            {
                inner.findings.push(finding("shell_escape", "starts a shell that nobody attends"));
            }
            inner.script(command);
        }
    }
}
