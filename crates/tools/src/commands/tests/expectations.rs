//! The table of expectations: commands with the verdict that they must get.
//!
//! A line that begins with `@` names the verdict of the commands below it (`run`, `ask` or `never`), and for `ask` the
//! key that must be among the reasons. Lines that begin with `;;` are comments. `␤` stands for the end of a line.

use super::*;

const TABLES: [(&str, &str); 14] = [
    ("harmless", include_str!("../expectations/harmless.txt")),
    ("never", include_str!("../expectations/never.txt")),
    ("files", include_str!("../expectations/files.txt")),
    ("services", include_str!("../expectations/services.txt")),
    ("network", include_str!("../expectations/network.txt")),
    ("data", include_str!("../expectations/data.txt")),
    ("everyday", include_str!("../expectations/everyday.txt")),
    ("published", include_str!("../expectations/published.txt")),
    ("further", include_str!("../expectations/further.txt")),
    ("spellings", include_str!("../expectations/spellings.txt")),
    ("families", include_str!("../expectations/families.txt")),
    ("plain", include_str!("../expectations/plain.txt")),
    ("acceptance", include_str!("../expectations/acceptance.txt")),
    ("rules", include_str!("../expectations/rules.txt")),
];
/// A command with what must be found in it.
struct Expectation {
    table: &'static str,
    verdict: &'static str,
    key: &'static str,
    line: &'static str,
}

impl Expectation {
    fn command(&self) -> String {
        self.line.replace('␤', "\n")
    }

    /// The verdict and the keys that the command gets, if they are not those that are expected.
    fn mismatch(&self) -> Option<String> {
        let keys = key(&self.command());
        let verdict = match keys.as_str() {
            "" => "run",
            "hard" => "never",
            _ => "ask",
        };
        let named = self.key.is_empty() || keys.split(' ').any(|key| key == self.key);
        (verdict != self.verdict || !named).then(|| format!("{verdict} {keys}"))
    }
}

fn expectations() -> Vec<Expectation> {
    let mut expectations = Vec::new();
    for (table, text) in TABLES {
        let (mut verdict, mut key) = ("", "");
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with(";;")) {
            match line.strip_prefix('@') {
                Some(header) => (verdict, key) = header.split_once(' ').unwrap_or((header, "")),
                None => expectations.push(Expectation { table, verdict, key, line }),
            }
        }
    }
    expectations
}

#[test]
fn every_command_of_the_table_gets_its_verdict() {
    let expectations = expectations();
    assert!(expectations.len() >= 5_500);
    let wrong = |expected: &Expectation| {
        let Expectation { table, verdict, key, line } = expected;
        expected.mismatch().map(|got| format!("{table}: expected {verdict} {key}, got {got}: {line}"))
    };
    let failures: Vec<String> = expectations.iter().filter_map(wrong).collect();
    assert!(failures.is_empty(), "{} of {} commands: {failures:#?}", failures.len(), expectations.len());
}

/// One `bash -n` for all commands: it prints the numbers of those that it cannot read.
const CHECK: &str = "n=0; while IFS= read -r -d '' command; do n=$((n + 1)); \
                     bash -n -c \"$command\" 2>/dev/null || echo \"$n\"; done";

#[test]
#[expect(clippy::disallowed_methods, reason = "bash itself is what the reader is held against")]
fn what_bash_cannot_read_is_what_the_reader_cannot_read() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let expectations = expectations();
    let Ok(mut bash) =
        Command::new("bash").args(["-c", CHECK]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    else {
        println!("SKIPPED: there is no bash here");
        return;
    };
    let texts: String = expectations.iter().map(|expected| expected.command() + "\0").collect();
    let mut input = bash.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(texts.as_bytes()));
    let output = bash.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let numbers = String::from_utf8(output.stdout).unwrap();
    let refused: Vec<usize> = numbers.lines().map(|number| number.parse().unwrap()).collect();
    for (at, expected) in expectations.iter().enumerate() {
        let read = script::Script::read(&expected.command()).is_ok_and(|script| !script.unfinished);
        assert_eq!(read, !refused.contains(&(at + 1)), "{}", expected.line);
    }
}
