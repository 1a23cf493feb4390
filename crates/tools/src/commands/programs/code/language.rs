//! Interpreters of other languages, and how they are given code.

use crate::commands::options::{Options, Shape};
use crate::commands::simple::Simple;

/// The language that an interpreter runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Language {
    Python,
    Perl,
    Ruby,
    Javascript,
    Php,
    Lua,
    Tcl,
    Other,
}

impl Language {
    /// The language of an interpreter.
    pub(in crate::commands) fn of(name: &str) -> Option<Self> {
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        Some(match plain {
            "python" | "pypy" | "ipython" | "micropython" => Language::Python,
            "perl" | "cpan" => Language::Perl,
            "ruby" | "irb" | "jruby" => Language::Ruby,
            "node" | "nodejs" | "bun" | "deno" | "ts-node" | "tsx" => Language::Javascript,
            "php" => Language::Php,
            "lua" | "luajit" => Language::Lua,
            "tclsh" | "wish" => Language::Tcl,
            "m" if name == "m4" => Language::Other,
            "rscript" | "r" | "julia" | "elixir" | "groovy" | "scala" | "octave" | "octave-cli" | "guile"
            | "iex" | "clisp" | "sbcl" | "racket" | "csi" | "clojure" | "clj" | "bb" | "jshell" | "erl"
            | "ghci" | "gnuplot" | "swipl" | "kotlin" | "maxima" | "ocaml" | "jrunscript" | "jjs"
            | "slsh" | "ghc" | "runghc" | "crystal" | "nim" | "raku" | "janet" | "fennel" | "newlisp"
            | "scheme" | "bpftrace" => Language::Other,
            _ => return None,
        })
    }

    /// Letters of options with code, and the shape of all options.
    fn options(self) -> (&'static str, Shape) {
        match self {
            Language::Python => ("c", Shape::new("cWXm", &[])),
            Language::Perl => ("eE", Shape::new("eEIMmCD", &[])),
            Language::Ruby => ("e", Shape::new("eIrCK", &[])),
            Language::Javascript => {
                ("ep", Shape::new("epr", &["eval", "print", "require", "import", "loader"]))
            }
            Language::Php => ("rBRE", Shape::new("rBREdcz", &["run"])),
            Language::Lua => ("e", Shape::new("el", &[])),
            Language::Tcl => ("", Shape::new("", &[])),
            Language::Other => ("eE", Shape::new("eE", &["eval"])),
        }
    }

    /// The code among a program's words.
    pub(in crate::commands) fn code(self, simple: &Simple) -> Vec<&str> {
        let (letters, ..) = self.options();
        let mut code: Vec<&str> = letters.chars().flat_map(|letter| simple.values(letter, "")).collect();
        code.extend(["eval", "print", "run"].iter().flat_map(|name| simple.values('\0', name)));
        if matches!(simple.name(), "deno") && simple.operand(0) == "eval" {
            code.extend(simple.operands().nth(1));
        }
        code
    }

    /// The file that an interpreter runs: none if it has its code elsewhere, and no name if it reads it.
    pub(in crate::commands) fn script(self, simple: &Simple) -> Option<Option<&str>> {
        if matches!(simple.name(), "deno" | "bun") || simple.has('\0', "version") || simple.says("-v") {
            return None;
        }
        let (code, shape) = self.options();
        let options = Options::of(simple, shape);
        let has_code = options.has(code)
            || self == Language::Python && options.has("m")
            || self == Language::Php && options.has("aSilmv")
            || ["eval", "print", "run"].iter().any(|name| options.has_long(name));
        (!has_code).then(|| options.words.first().copied())
    }
}
