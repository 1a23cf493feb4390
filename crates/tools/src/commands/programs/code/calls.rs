//! The calls that matter, and the commands that do the same.

use super::functions::{DECODES, FETCHES, SENDS, STARTS, is_of_interest};
use super::values::Argument;
use super::{Language, Scan, scan};
use crate::commands::finding;
use crate::commands::lexer::UNKNOWN;
use crate::commands::programs::tokens::Piece;
use crate::commands::programs::{Inner, texts};
use crate::commands::rules::UNSEEN_CODE;
use crate::commands::rules::databases;

impl Scan<'_> {
    pub(super) fn name(&mut self, at: usize, name: &str, inner: &mut Inner) {
        let passed_on = name == "eval" && !self.pieces.get(at + 1).is_some_and(|next| next.is('('));
        if passed_on && self.language == Language::Javascript {
            return self.evaluates(&[], inner);
        }
        // A function that is looked up by its name may be any.
        let looks_up = matches!(
            name,
            "getattr" | "__getattribute__" | "__dict__" | "globals" | "import_module" | "vars"
        );
        let starts = ["os", "subprocess", "pty", "child_process", "builtins"];
        let imports =
            |module: &&str| self.says(module) || self.pieces.iter().any(|piece| piece.text() == Some(module));
        if looks_up && self.language == Language::Python && starts.iter().any(imports) {
            self.starts_programs = true;
            return self.cannot_be_seen(inner);
        }
        if !is_of_interest(name) || self.left == 0 {
            return;
        }
        if name == "Command" && self.language == Language::Other && self.builds(at, inner) {
            return;
        }
        let Some(arguments) = self.arguments_at(at).map(<[Piece]>::to_vec) else {
            return self.mentioned(name, inner);
        };
        // Code of calls within calls without end is not looked through.
        match self.left.checked_sub(arguments.len() + 1) {
            Some(left) => self.left = left,
            None => {
                self.left = 0;
                inner.has_unknown_code = true;
                return;
            }
        }
        if self.starts_program(at, name) {
            self.starts_programs = true;
            return self.started(name, &arguments, inner);
        }
        if self.is_evaluation(name) {
            return self.evaluates(&arguments, inner);
        }
        let text = || match self.values(&arguments).into_iter().next() {
            Some(Argument::Text(text)) => text,
            _ => UNKNOWN.to_string(),
        };
        match name {
            "rmtree"
            | "rm_rf"
            | "rm_r"
            | "remove_tree"
            | "remove_entry_secure"
            | "rimraf"
            | "removeSync"
            | "remove_dir_all" => {
                inner.program(["rm", "-rf", &text()]);
            }
            "rmSync" | "rm" | "rmdirSync" | "rmdir" | "unlink" | "remove"
                if arguments.iter().any(|piece| piece.name() == Some("recursive")) =>
            {
                inner.program(["rm", "-rf", &text()]);
            }
            "unlink" | "unlinkSync" | "remove" => inner.program(["rm", &text()]),
            "delete" if self.owner(at) == Some("File") => inner.program(["rm", &text()]),
            "include" | "include_once" | "require" | "require_once"
                if self.language == Language::Php && text().contains("://") =>
            {
                inner.findings.push(finding("remote_script", "runs what it downloads"));
            }
            "open" | "fopen" => self.opens(&arguments, inner),
            "writeFileSync" | "writeFile" | "appendFileSync" | "appendFile" | "file_put_contents" => {
                inner.writes.push(text());
            }
            "file_get_contents"
                if text().contains("://")
                    && ["urlencode", "base64_encode", "stream_context_create"]
                        .iter()
                        .any(|name| self.says(name)) =>
            {
                inner.findings.push(finding("send_file", "sends files to another machine"));
            }
            "readFileSync" | "readFile" | "file_get_contents" => inner.opens.push(text()),
            "write" if self.owner(at) == Some("File") => inner.writes.push(text()),
            "read" if self.owner(at) == Some("File") => inner.opens.push(text()),
            "Path" => inner.opens.push(text()),
            "chmod" | "chmodSync" => self.changes_mode(&arguments, inner),
            "kill" | "posix_kill"
                if arguments.windows(2).any(|pair| {
                    pair.first().is_some_and(|sign| sign.is('-'))
                        && pair.get(1).and_then(Piece::name) == Some("1")
                }) =>
            {
                inner.program(["kill", "-9", "-1"]);
            }
            "execute" | "executescript" | "executemany" | "query" | "raw" | "exec_driver_sql" => {
                let texts = arguments.iter().filter_map(Piece::text);
                inner.findings.extend(texts.filter_map(databases::statement));
            }
            "dropDatabase" => inner.findings.push(databases::DATABASE_DROP),
            name if SENDS.contains(&name)
                && (name.starts_with("upload_")
                    || arguments.iter().any(|piece| piece.name() == Some("open"))) =>
            {
                inner.findings.push(finding("send_file", "sends files to another machine"));
            }
            "post" | "put" | "urlopen" | "upload_file" | "request" | "fetch" | "get" => {
                let reads = ["open", "readFileSync", "read_bytes", "read_text", "File", "createReadStream"];
                let sends = arguments.iter().filter_map(Piece::name).any(|name| reads.contains(&name))
                    || name == "put" && self.says("paramiko")
                    || self.has_backticks()
                        && arguments.iter().any(|piece| matches!(piece, Piece::Command(_)))
                    || name == "request" && self.says("createReadStream") && self.says("pipe");
                if sends || name == "upload_file" {
                    inner.findings.push(finding("send_file", "sends files to another machine"));
                }
            }
            _ => {}
        }
    }

    /// `Command::new("rm").arg("-rf")` of Rust. Returns whether it is one.
    fn builds(&mut self, at: usize, inner: &mut Inner) -> bool {
        let rest = self.pieces.get(at + 1..).unwrap_or_default();
        let [Piece::Sign(':'), Piece::Sign(':'), Piece::Name(new), rest @ ..] = rest else { return false };
        if new != "new" {
            return false;
        }
        let until = |piece: &&Piece| !matches!(piece.name(), Some("spawn" | "status" | "output"));
        inner.program(rest.iter().take(60).take_while(until).filter_map(Piece::text));
        self.starts_programs = true;
        true
    }

    /// A function that starts programs may get another name: `from os import system as s`.
    fn mentioned(&mut self, name: &str, inner: &mut Inner) {
        let renames = matches!(self.language, Language::Python | Language::Javascript | Language::Ruby)
            && (STARTS.contains(&name) && !matches!(name, "shell" | "spawn")
                || matches!(name, "run" | "call" | "exec")
                    && (self.code.contains("subprocess") || self.code.contains("child_process")));
        if renames && !self.renamed {
            self.renamed = true;
            let texts: Vec<&str> = self.pieces.iter().filter_map(Piece::text).collect();
            texts::run_in_code(&texts, inner);
        }
    }

    /// A function may also be called by a text with its name: `call_user_func("system", …)`, `os["exec".."ute"]`.
    pub(super) fn named_in_texts(&mut self, inner: &mut Inner) {
        let is_start = |text: &str| {
            STARTS.contains(&text) && !matches!(text, "shell" | "spawn") || matches!(text, "exec" | "execute")
        };
        let mut joined = String::new();
        let mut found = false;
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => joined.push_str(text),
                Piece::Sign('+' | '.') => {}
                _ => joined.clear(),
            }
            found |= is_start(&joined) || piece.text().is_some_and(is_start);
        }
        if found && !self.renamed {
            self.renamed = true;
            let texts: Vec<&str> = self.pieces.iter().filter_map(Piece::text).collect();
            texts::run_in_code(&texts, inner);
        }
    }

    fn starts_program(&self, at: usize, name: &str) -> bool {
        match name {
            "run" | "call" => {
                self.language == Language::Python
                    && (self.code.contains("subprocess") || self.says("sh") || self.says("commands"))
                    || self.language == Language::Javascript && self.owner(at) == Some("Deno")
            }
            "exec" => match self.language {
                Language::Python => false,
                Language::Javascript => self.code.contains("child_process"),
                _ => true,
            },
            "execute" => self.language == Language::Lua,
            "cmd" => self.owner(at) == Some("System"),
            "Command" => matches!(self.language, Language::Javascript | Language::Other),
            "ProcessBuilder" => self.language == Language::Other,
            "shell" => matches!(self.language, Language::Other | Language::Ruby),
            "spawn" => self.language != Language::Tcl || self.code.contains("spawn"),
            name => STARTS.contains(&name),
        }
    }

    /// A program that is started, by a text for a shell or by its words.
    fn started(&self, name: &str, arguments: &[Piece], inner: &mut Inner) {
        let mentions =
            |names: &[&str]| arguments.iter().filter_map(Piece::name).any(|name| names.contains(&name));
        if mentions(&FETCHES) {
            inner.findings.push(finding("remote_script", "runs what it downloads"));
        } else if mentions(&["b64decode", "atob", "base64_decode", "decode_base64", "fromhex", "unhexlify"]) {
            inner
                .findings
                .push(finding("decoded_script", "runs what it decodes, which nobody can read before"));
        }
        let mut values = self.values(arguments);
        if name.starts_with("spawn") && self.language == Language::Python && values.len() > 1 {
            values.remove(0);
        }
        // These take the name that the program sees as well.
        if matches!(name, "execl" | "execlp" | "execle" | "execlpe" | "spawnl" | "spawnlp")
            && values.len() > 1
        {
            values.remove(1);
        }
        match values.as_slice() {
            [] => {}
            [Argument::Text(text), Argument::List(words), ..] if words.is_empty() => inner.script(text),
            [Argument::Text(program), Argument::List(words), ..] => {
                let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
                let repeats = words.first().is_some_and(|first| base(first) == base(program));
                let words = words.iter().skip(usize::from(repeats)).map(String::as_str);
                inner.program(std::iter::once(program.as_str()).chain(words));
            }
            [Argument::List(words), rest @ ..] => {
                let mut words = words.clone();
                // Lists are one there: `system(qw(rm -rf), "/")`.
                for value in rest.iter().filter(|_| self.language == Language::Perl) {
                    match value {
                        Argument::Text(text) => words.push(text.clone()),
                        Argument::List(others) => words.extend(others.iter().cloned()),
                        Argument::Unknown => {}
                    }
                }
                match words.as_slice() {
                    [text] => inner.script(text),
                    words => inner.program(words.iter().map(String::as_str)),
                }
            }
            [Argument::Text(text)] => inner.script(text),
            [Argument::Text(first), ..] => {
                let texts: Vec<&str> = values
                    .iter()
                    .filter_map(|value| match value {
                        Argument::Text(text) => Some(text.as_str()),
                        _ => None,
                    })
                    .collect();
                if first.contains(' ') || texts.len() == 1 {
                    inner.script(first);
                } else {
                    inner.program(texts);
                }
            }
            [Argument::Unknown, ..] => self.cannot_be_seen(inner),
        }
    }

    /// Something is run that is not written out. What it could be is looked at all the same.
    fn cannot_be_seen(&self, inner: &mut Inner) {
        if inner.findings.contains(&UNSEEN_CODE) {
            return;
        }
        inner.findings.push(UNSEEN_CODE);
        self.pieces.iter().filter_map(Piece::text).take(100).for_each(|text| inner.script(text));
        inner.script(&self.arguments.join(" "));
    }

    fn is_evaluation(&self, name: &str) -> bool {
        match self.language {
            Language::Python => matches!(name, "exec" | "eval"),
            Language::Javascript => matches!(name, "eval" | "Function"),
            Language::Php => matches!(name, "eval" | "assert"),
            Language::Lua => matches!(name, "load" | "loadstring"),
            _ => matches!(name, "eval" | "instance_eval" | "class_eval" | "loadstring"),
        }
    }

    /// Code that is run within code.
    fn evaluates(&self, arguments: &[Piece], inner: &mut Inner) {
        if let [Piece::Text(code)] = arguments {
            return scan(self.language, code, self.arguments, inner);
        }
        let says = |names: &[&str]| names.iter().any(|name| self.says(name));
        let reads_file = ["open", "read_text", "readFileSync"]
            .iter()
            .any(|name| arguments.iter().any(|piece| piece.name() == Some(name)));
        if says(&FETCHES) {
            inner.findings.push(finding("remote_script", "runs what it downloads"));
        } else if says(&DECODES) {
            inner
                .findings
                .push(finding("decoded_script", "runs what it decodes, which nobody can read before"));
        } else if !reads_file {
            self.cannot_be_seen(inner);
        }
    }

    /// A file that is opened, to be written to if its mode says so. Perl may open a command.
    fn opens(&self, arguments: &[Piece], inner: &mut Inner) {
        let texts: Vec<&str> = arguments.iter().filter_map(Piece::text).collect();
        let is_mode = |text: &&&str| {
            !text.is_empty() && text.len() <= 3 && text.chars().all(|letter| "rwaxbt+<>U".contains(letter))
        };
        let mode = texts
            .iter()
            .skip(usize::from(self.language != Language::Perl))
            .find(is_mode)
            .copied()
            .unwrap_or_default();
        if self.language == Language::Perl {
            for text in &texts {
                if let Some(command) = text
                    .trim()
                    .strip_prefix('|')
                    .or(text.trim().strip_suffix('|'))
                    .filter(|text| *text != "-")
                {
                    inner.script(command);
                } else if let Some(path) = text.trim().strip_prefix('>') {
                    inner.writes.push(path.trim_start_matches('>').trim().to_owned());
                }
            }
        }
        let Some(path) = texts.iter().find(|text| **text != mode) else { return };
        if mode.contains(['w', 'a', 'x', '+', '>']) {
            inner.writes.push((*path).to_owned());
        } else {
            inner.opens.push((*path).to_owned());
        }
    }

    fn changes_mode(&self, arguments: &[Piece], inner: &mut Inner) {
        let number = |name: &str| {
            let digits = name.trim_start_matches("0o").trim_start_matches('0');
            (!digits.is_empty() && digits.chars().all(|digit| digit.is_digit(8))).then(|| digits.to_owned())
        };
        let mode = arguments.iter().filter_map(Piece::name).find_map(number);
        let path = arguments.iter().find_map(Piece::text).unwrap_or("x");
        if let Some(mode) = mode {
            inner.program(["chmod", &mode, path]);
        }
    }
}
