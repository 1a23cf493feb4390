//! Looks into code of other languages for the calls that matter: those that start programs, run code, and delete or write
//! files. Each is taken for the command of a shell that does the same.

mod calls;
mod functions;
mod language;
mod renames;
mod values;

pub(in crate::commands) use language::Language;

use std::collections::{BTreeMap, BTreeSet};

use super::Inner;
use super::tokens::{Piece, pieces};
use crate::commands::finding;
use crate::commands::lexer::is_unknown;
use crate::commands::paths;
use crate::commands::rules::CREDENTIALS_READ;
use crate::commands::simple::Simple;

/// Adds what the code among an interpreter's words does.
pub(super) fn run_by(simple: &Simple, language: Language, inner: &mut Inner) {
    let arguments: Vec<&str> = simple.operands().collect();
    for code in language.code(simple) {
        scan(language, code, &arguments, inner);
    }
    // Each of these has options of its own for code.
    if language == Language::Other && inner.scripts.is_empty() && inner.programs.is_empty() {
        super::texts::run_in(simple.arguments().iter().map(String::as_str), inner);
    }
    let address = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
    if simple.name() == "deno" && simple.operand(0) == "run" && simple.operands().any(|word| address(&word)) {
        inner.findings.push(finding("remote_script", "runs what it downloads"));
    }
}

/// Code with all that is known about it.
struct Scan<'a> {
    language: Language,
    code: &'a str,
    pieces: Vec<Piece>,
    /// The words that the program is given.
    arguments: &'a [&'a str],
    starts_programs: bool,
    /// Whether a function that starts programs was seen under another name.
    renamed: bool,
    names: BTreeSet<String>,
    /// Other names that the code gives to functions.
    renames: BTreeMap<String, String>,
    /// How many more pieces are looked at.
    left: usize,
}

/// Adds what a piece of code does.
pub(super) fn scan(language: Language, code: &str, arguments: &[&str], inner: &mut Inner) {
    let shown = code.trim();
    if !shown.is_empty() && shown.chars().all(is_unknown) {
        inner.has_unknown_code = true;
        return;
    }
    if is_fork_bomb(code) {
        inner.findings.push(crate::commands::hard::FORK_BOMB);
    }
    if language == Language::Tcl {
        return commands_of_tcl(code, inner);
    }
    let pieces = pieces(code);
    // Pieces of inner calls are looked at again with each call around them.
    let left = 10_000 + 4 * pieces.len();
    let renames = renames::renames(language, &pieces);
    let names = pieces.iter().filter_map(|piece| piece.name().map(str::to_owned)).collect();
    let mut scan = Scan {
        language,
        code,
        pieces,
        arguments,
        starts_programs: false,
        renamed: false,
        names,
        renames,
        left,
    };
    for at in 0..scan.pieces.len() {
        scan.piece(at, inner);
    }
    scan.named_in_texts(inner);
    if scan.deletes_what_it_lists() {
        inner.findings.push(finding("find_delete", "deletes all files that a search finds"));
    }
    if language == Language::Other {
        super::texts::run_in(code.lines(), inner);
    }
    if paths::is_metadata_address(code) {
        inner.findings.push(CREDENTIALS_READ);
    }
    if scan.starts_programs && scan.opens_socket() {
        inner.findings.push(finding("reverse_shell", "connects a shell to the network"));
    } else if scan.opens_socket() && (!inner.opens.is_empty() || scan.says("sendfile")) {
        inner.findings.push(finding("send_file", "sends files to another machine"));
    }
    if language == Language::Other && shown.starts_with('(') {
        super::lisp::scan(code, inner);
    }
}

impl Scan<'_> {
    fn piece(&mut self, at: usize, inner: &mut Inner) {
        match self.pieces.get(at).cloned() {
            Some(Piece::Command(text)) if self.has_backticks() || self.is_shell_template(at) => {
                self.starts_programs = true;
                inner.script(&text);
            }
            Some(Piece::Name(name)) => {
                let is_call = self.pieces.get(at + 1).is_some_and(|next| next.is('('));
                let function = self.renames.get(&name).filter(|_| is_call).cloned().unwrap_or(name);
                self.name(at, &function, inner);
            }
            _ => {}
        }
    }

    /// Whether a text in backticks is a command, and no text like any other.
    fn has_backticks(&self) -> bool {
        matches!(self.language, Language::Perl | Language::Ruby | Language::Php | Language::Other)
    }

    /// Whether a text in backticks is a command of `Bun.$` or `zx`.
    fn is_shell_template(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| self.pieces.get(at));
        self.language == Language::Javascript && before.is_some_and(|piece| piece.is('$'))
    }

    fn says(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn opens_socket(&self) -> bool {
        let names = [
            "socket",
            "Socket",
            "TCPSocket",
            "fsockopen",
            "create_connection",
            "stream_socket_client",
            "inet_aton",
            "Dial",
            "TcpStream",
        ];
        names.iter().any(|name| self.says(name))
            || self.language == Language::Javascript
                && self.code.contains("net")
                && self.code.contains("connect(")
                && (self.code.contains("'net'") || self.code.contains("\"net\""))
    }

    /// Whether the code lists files and deletes files. It does that with all that it lists.
    fn deletes_what_it_lists(&self) -> bool {
        const LISTS: [&str; 9] =
            ["glob", "rglob", "walk", "iterdir", "scandir", "listdir", "readdir", "readdirSync", "iglob"];
        let deletes = ["unlink", "unlinkSync"].iter().any(|name| self.says(name))
            || self.code.contains("os.remove(")
            || self.pieces.iter().any(|piece| piece.text() == Some("unlink"));
        deletes && LISTS.iter().any(|name| self.says(name))
    }

    /// The name before a name, as in `os.system`.
    fn owner(&self, at: usize) -> Option<&str> {
        let owner = |back: usize| at.checked_sub(back).and_then(|at| self.pieces.get(at));
        match (owner(1)?, owner(2)?) {
            (Piece::Sign('.'), Piece::Name(name)) => Some(name),
            (Piece::Sign(':'), Piece::Sign(':')) => owner(3)?.name(),
            (Piece::Sign(':'), Piece::Name(name)) => Some(name),
            _ => None,
        }
    }
}

/// `exec …` of Tcl, whose words are like those of a shell.
fn commands_of_tcl(code: &str, inner: &mut Inner) {
    for line in code.split([';', '\n', '[']) {
        let command = line.trim().strip_prefix("exec ").or(line.trim().strip_prefix("spawn "));
        if let Some(command) = command {
            inner.script(command.split(['<', '>', '&', ']']).next().unwrap_or_default());
        }
    }
}

/// A loop that starts itself again and again.
fn is_fork_bomb(code: &str) -> bool {
    const FORMS: [&str; 12] = [
        "forkwhile",
        "loop{fork",
        "whiletrue:os.fork",
        "while1:os.fork",
        "while(1){fork",
        "while(true){fork",
        "for(;;){fork",
        "while1{fork",
        "os.fork()for",
        "loop{fork}",
        "whiletrue;os.fork",
        "while(1):os.fork",
    ];
    if !code.contains("fork") {
        return false;
    }
    let compact: String =
        code.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_lowercase()).collect();
    FORMS.iter().any(|form| compact.contains(form))
}
