//! What stands between the braces of `${…}`.

use super::lexer::{ARGUMENT, Lexer, Quotes, SECRET, UNKNOWN, has_unknown, is_name};
use super::scope::ARGUMENTS;
use super::script::Read;
use super::wildcard;

/// Variables that name a program by convention, with that program.
const PROGRAMS: [(&str, &str); 16] = [
    ("SHELL", "/bin/sh"),
    ("BASH", "/bin/bash"),
    ("PYTHON", "python3"),
    ("PYTHON3", "python3"),
    ("NODE", "node"),
    ("CC", "cc"),
    ("CXX", "c++"),
    ("MAKE", "make"),
    ("CARGO", "cargo"),
    ("GO", "go"),
    ("EDITOR", "editor"),
    ("VISUAL", "editor"),
    ("PAGER", "pager"),
    ("PIP", "pip"),
    ("NPM", "npm"),
    ("RUSTC", "rustc"),
];

impl Lexer<'_, '_> {
    /// `${…}`. Of a variable that the command has not set, the text given for that case is taken.
    pub(super) fn braced(&mut self, inner: &str, quotes: Quotes) -> Read<()> {
        if let Some(name) = inner.strip_prefix('!') {
            let named = self.scope.get(name).unwrap_or_default().to_owned();
            return if is_name(&named) { self.variable(&named, quotes) } else { self.unknown(name) };
        }
        let special = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let end = match inner.chars().next() {
            Some('@' | '*' | '#' | '?' | '$' | '!' | '-') => 1,
            _ => inner.find(special).unwrap_or(inner.len()),
        };
        let (name, rest) = inner.split_at(end);
        if name == "#" && !rest.is_empty() {
            return self.unknown(name);
        }
        let instead = [":-", ":=", ":+", "-", "=", "+"].into_iter().find_map(|sign| rest.strip_prefix(sign));
        if let Some(instead) = instead.filter(|_| is_name(name) || name.parse::<usize>().is_ok()) {
            let is_set = self.known(name).is_some();
            let wants_other = rest.trim_start_matches(':').starts_with('+');
            return match (is_set, wants_other) {
                (true, false) => self.variable(name, quotes),
                _ => {
                    let place = self.word.as_ref().map_or(0, String::len);
                    self.text_instead(instead, quotes)?;
                    let value =
                        self.word.as_ref().and_then(|word| word.get(place..)).unwrap_or_default().to_owned();
                    if rest.trim_start_matches(':').starts_with('=') {
                        self.scope.set(name, &value);
                    }
                    Ok(())
                }
            };
        }
        if let Some(index) = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return self.element(name, index, quotes);
        }
        if rest.is_empty() || name == "@" || name == "*" {
            return self.variable(name, quotes);
        }
        // `${HOME:?}` and `${HOME?text}` are the value, or nothing runs.
        if rest.starts_with(":?") || rest.starts_with('?') {
            return self.variable(name, quotes);
        }
        // The first character of these is known although the rest is not.
        if rest == ":0:1"
            && self.scope.get(name).is_none()
            && matches!(name, "PATH" | "HOME" | "PWD" | "SHELL")
        {
            self.push('/');
            return Ok(());
        }
        // A long value is not a disguise that anybody writes, and patterns take time.
        let is_plain = |value: &String| !has_unknown(value) && value.len() <= 1_000;
        let changed = self.known(name).filter(is_plain).and_then(|value| changed(&value, rest));
        match changed {
            Some(value) => self.value(&value, quotes),
            None => self.unknown(name),
        }
    }

    /// `${name[index]}`.
    fn element(&mut self, name: &str, index: &str, quotes: Quotes) -> Read<()> {
        let name = &self.scope.meant(name).to_owned();
        let index = index.trim_matches(['"', '\'']);
        if let Some(value) = self.scope.get(&format!("{name}[{index}]")).map(str::to_owned) {
            self.script.charge(value.len())?;
            return self.value(&value, quotes);
        }
        let Some(values) = self.scope.list(name).map(<[String]>::to_vec) else {
            return match index {
                "0" | "@" | "*" => self.variable(name, quotes),
                _ => self.unknown(name),
            };
        };
        match index {
            "@" | "*" => self.list(&values, quotes),
            index => match index.parse::<usize>().ok().and_then(|index| values.get(index)) {
                Some(value) => self.value(value, quotes),
                None => self.unknown(name),
            },
        }
    }

    /// Several words, each whole if they are quoted.
    fn list(&mut self, values: &[String], quotes: Quotes) -> Read<()> {
        for (at, value) in values.iter().enumerate() {
            self.script.charge(value.len() + 1)?;
            if at > 0 && self.assigns != Some(true) && self.redirection().is_none() {
                self.split_word()?;
            } else if at > 0 {
                self.push(' ');
            }
            match quotes {
                Quotes::Inside => self.push_text(value),
                Quotes::Outside => self.value(value, quotes)?,
            }
        }
        Ok(())
    }

    /// Ends a word within quotes. What follows is quoted too.
    fn split_word(&mut self) -> Read<()> {
        let quoted = self.quoted;
        self.end_word()?;
        self.quoted = quoted;
        Ok(())
    }

    /// A variable's value, if the command or a convention tells.
    fn known(&self, name: &str) -> Option<String> {
        let name = self.scope.meant(name);
        if let Some(value) = self.scope.get(name) {
            return Some(value.to_owned());
        }
        if let Ok(number) = name.parse::<usize>() {
            return self.scope.list(ARGUMENTS)?.get(number.checked_sub(1)?).cloned();
        }
        if let Some(first) = self.scope.list(name).and_then(<[String]>::first) {
            return Some(first.clone());
        }
        None
    }

    pub(super) fn variable(&mut self, name: &str, quotes: Quotes) -> Read<()> {
        if name == "@" || name == "*" {
            // Where there are no arguments this is nothing.
            let values = self.scope.list(ARGUMENTS).unwrap_or_default().to_vec();
            return self.list(&values, quotes);
        }
        if let Some(value) = self.known(name) {
            self.script.charge(value.len())?;
            return self.value(&value, quotes);
        }
        match name {
            "IFS" => return self.value(" ", quotes),
            "HOME" => self.push('~'),
            "0" => self.push_text("sh"),
            name => match PROGRAMS.iter().find(|(variable, _)| *variable == name) {
                Some((_, program)) => self.push_text(program),
                None => return self.unknown(name),
            },
        }
        Ok(())
    }

    /// A value that nobody knows before the command runs.
    pub(super) fn unknown(&mut self, name: &str) -> Read<()> {
        let character = if name.parse::<usize>().is_ok() {
            ARGUMENT
        } else if names_secret(name) {
            SECRET
        } else {
            UNKNOWN
        };
        self.push(character);
        Ok(())
    }
}

/// Whether the name of a variable says that its value is secret.
pub(super) fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let parts = [
        "SECRET",
        "TOKEN",
        "PASSWORD",
        "PASSWD",
        "API_KEY",
        "APIKEY",
        "ACCESS_KEY",
        "PRIVATE_KEY",
        "CREDENTIAL",
    ];
    parts.iter().any(|part| name.contains(part))
}

/// A value as `${name…}` changes it, if this is one of the changes that are known.
fn changed(value: &str, change: &str) -> Option<String> {
    let after = |sign: &str| change.strip_prefix(sign);
    if let Some(pattern) = after("##") {
        return Some(cut_start(value, pattern, Cut::Longest));
    } else if let Some(pattern) = after("#") {
        return Some(cut_start(value, pattern, Cut::Shortest));
    } else if let Some(pattern) = after("%%") {
        return Some(cut_end(value, pattern, Cut::Longest));
    } else if let Some(pattern) = after("%") {
        return Some(cut_end(value, pattern, Cut::Shortest));
    } else if let Some(all) = after("//") {
        let (from, to) = all.split_once('/').unwrap_or((all, ""));
        return (!from.is_empty()).then(|| value.replace(from, to));
    } else if let Some(first) = after("/") {
        let (from, to) = first.split_once('/').unwrap_or((first, ""));
        return Some(value.replacen(from, to, 1));
    }
    match change {
        ",," => Some(value.to_lowercase()),
        "^^" => Some(value.to_uppercase()),
        "," | "^" => {
            let mut characters = value.chars();
            let first = characters.next()?;
            let first = if change == "," { first.to_ascii_lowercase() } else { first.to_ascii_uppercase() };
            Some(std::iter::once(first).chain(characters).collect())
        }
        "@Q" | "@E" | "@P" => Some(value.to_owned()),
        _ => part(value, after(":")?),
    }
}

/// `${name:offset:length}`.
fn part(value: &str, range: &str) -> Option<String> {
    let (offset, length) = match range.split_once(':') {
        Some((offset, length)) => (offset, Some(length.trim().parse::<usize>().ok()?)),
        None => (range, None),
    };
    let characters: Vec<char> = value.chars().collect();
    let offset = match offset.trim().parse::<isize>().ok()? {
        back if back < 0 => characters.len().checked_sub(back.unsigned_abs())?,
        offset => offset.unsigned_abs(),
    };
    let rest = characters.get(offset..).unwrap_or_default();
    Some(rest.iter().take(length.unwrap_or(usize::MAX)).collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Shortest,
    Longest,
}

fn cut_start(value: &str, pattern: &str, cut: Cut) -> String {
    let ends: Vec<usize> = value.char_indices().map(|(at, _)| at).chain([value.len()]).take(1_000).collect();
    let fits = |end: &&usize| value.get(..**end).is_some_and(|start| wildcard::matches(pattern, start));
    let end = if cut == Cut::Shortest { ends.iter().find(fits) } else { ends.iter().rev().find(fits) };
    value.get(end.copied().unwrap_or(0)..).unwrap_or_default().to_owned()
}

fn cut_end(value: &str, pattern: &str, cut: Cut) -> String {
    let starts: Vec<usize> =
        value.char_indices().map(|(at, _)| at).chain([value.len()]).take(1_000).collect();
    let fits = |start: &&usize| value.get(**start..).is_some_and(|end| wildcard::matches(pattern, end));
    let start = if cut == Cut::Shortest { starts.iter().rev().find(fits) } else { starts.iter().find(fits) };
    value.get(..start.copied().unwrap_or(value.len())).unwrap_or_default().to_owned()
}
