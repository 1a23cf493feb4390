//! Python's regular expressions in the words of the engine that runs them.

/// A pattern for our engine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translated {
    /// The pattern.
    pub(super) text: String,
    /// Whether it ignores blanks and may end in a comment.
    pub(super) is_verbose: bool,
}

/// What a pattern of Python's means. What our engine has no word for stays as it is, and it will refuse that.
pub(super) fn translated(pattern: &str) -> Translated {
    let mut translated = Translated { text: String::with_capacity(pattern.len()), is_verbose: false };
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '\\' => escape(rest, &mut translated.text),
            '[' => class(rest, &mut translated.text),
            '(' => group(rest, &mut translated),
            _ => copy(rest, first, &mut translated.text),
        };
    }
    translated
}

fn copy<'a>(rest: &'a str, first: char, out: &mut String) -> &'a str {
    out.push(first);
    rest.get(first.len_utf8()..).unwrap_or_default()
}

/// `\141` is a character, and `\1` a group. `\Z` is the very end.
fn escape<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let after = rest.get(1..).unwrap_or_default();
    let octal: String = after.chars().take(3).take_while(|digit| digit.is_digit(8)).collect();
    if octal.starts_with('0') || octal.len() == 3 {
        let code = u32::from_str_radix(&octal, 8).unwrap_or_default();
        out.push_str(&format!("\\x{{{code:x}}}"));
        return after.get(octal.len()..).unwrap_or_default();
    }
    out.push('\\');
    match after.chars().next() {
        Some('Z') => {
            out.push('z');
            after.get(1..).unwrap_or_default()
        }
        Some(escaped) => copy(after, escaped, out),
        None => after,
    }
}

/// Inside brackets another bracket is a character like any other, and there are no operations on sets.
fn class<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let mut rest = copy(rest, '[', out);
    if rest.starts_with('^') {
        rest = copy(rest, '^', out);
    }
    let mut is_first = true;
    while let Some(next) = rest.chars().next() {
        if next == ']' && !is_first {
            return copy(rest, next, out);
        }
        rest = member(rest, next, out);
        // Between two members a hyphen makes a range of them. Anywhere else it is a member itself.
        if let Some(after) = rest.strip_prefix('-')
            && let Some(last) = after.chars().next().filter(|last| *last != ']')
        {
            out.push('-');
            rest = member(after, last, out);
        }
        is_first = false;
    }
    rest
}

fn member<'a>(rest: &'a str, first: char, out: &mut String) -> &'a str {
    match first {
        '\\' => escape(rest, out),
        ']' | '[' | '&' | '~' | '-' => {
            out.push('\\');
            copy(rest, first, out)
        }
        _ => copy(rest, first, out),
    }
}

/// A group may begin with flags. Those that say which characters are letters make no difference for names of tools.
fn group<'a>(rest: &'a str, translated: &mut Translated) -> &'a str {
    let flags: String =
        rest.chars().skip(2).take_while(|flag| flag.is_ascii_alphabetic() || *flag == '-').collect();
    let after = rest.strip_prefix("(?").and_then(|after| after.get(flags.len()..)).unwrap_or_default();
    let is_known = !flags.is_empty() && flags.chars().all(|flag| "aimsux-".contains(flag));
    if !is_known || !after.starts_with([')', ':']) {
        return copy(rest, '(', &mut translated.text);
    }
    let is_global = after.starts_with(')');
    translated.is_verbose |= is_global && flags.contains('x');
    let kept: String = flags.chars().filter(|flag| !"au".contains(*flag)).collect();
    if is_global && kept.is_empty() {
        return after.get(1..).unwrap_or_default();
    }
    translated.text.push_str("(?");
    translated.text.push_str(&kept);
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_the_same_stays() {
        for same in
            [r"write_file|patch", r"(?!read_)\w+", r"(?P<a>t)(?P=a)?x", r"(a|b)\1", r"[^]x]nal\d", "("]
        {
            let expected = same.replace("[^]", r"[^\]");
            assert_eq!(translated(same), Translated { text: expected, is_verbose: false });
        }
    }

    #[test]
    fn what_is_written_otherwise_is_translated() {
        for (python, ours) in [
            (r"(?a)\w+", r"\w+"),
            (r"(?ai)TERMINAL", r"(?i)TERMINAL"),
            (r"(?a:x)", "(?:x)"),
            ("[[a-z]+", r"[\[a-z]+"),
            ("[a&&b]", r"[a\&\&b]"),
            ("[a-z--x]", r"[a-z\--x]"),
            ("[-a-]", r"[\-a\-]"),
            (r"\141\0", r"\x{61}\x{0}"),
            (r"\Ax\Z", r"\Ax\z"),
        ] {
            assert_eq!(translated(python).text, ours);
        }
        assert!(translated("(?x) a # b").is_verbose);
    }
}
