//! Which tools a hook is about.

use fancy_regex::{Regex, RegexBuilder};

use super::python_pattern::translated;

/// How far a pattern may search. It decides about a name of a few characters, in the middle of a turn.
const MAX_STEPS: usize = 100_000;

/// A pattern that matches whole names of tools.
#[derive(Debug, Clone)]
pub struct Matcher {
    text: String,
    pattern: Option<Regex>,
}

impl Matcher {
    /// A regular expression in Python's style. What is none stands for itself.
    pub fn new(text: &str) -> Self {
        let python = translated(text);
        // A comment must not swallow what follows.
        let end = if python.is_verbose { "\n" } else { "" };
        let whole = format!(r"\A(?:{}{end})\z", python.text);
        // A pattern that closes our group and opens another would match less than the whole name.
        let sound = RegexBuilder::new(&python.text).build().is_ok();
        let pattern = RegexBuilder::new(&whole).backtrack_limit(MAX_STEPS).build().ok();
        Matcher { text: text.to_owned(), pattern: pattern.filter(|_| sound) }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is no pattern, and stands for itself.
    pub fn is_literal(&self) -> bool {
        self.pattern.is_none()
    }

    /// Whether it matches the whole name. If that cannot be found out, it does: a hook that is asked once too often is
    /// better than a guard that is passed over.
    pub fn matches(&self, name: &str) -> bool {
        match &self.pattern {
            Some(pattern) => pattern.is_match(name).unwrap_or(true),
            None => self.text == name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_name_is_matched() {
        let matcher = Matcher::new("write_file|patch");
        assert!(matcher.matches("patch") && matcher.matches("write_file"));
        assert!(!matcher.matches("patched") && !matcher.matches("a_write_file"));
        assert!(Matcher::new("mcp_.*").matches("mcp_github_search"));
        assert!(Matcher::new("(?i)TERMINAL").matches("terminal"));
    }

    #[test]
    fn python_can_look_around() {
        let matcher = Matcher::new(r"(?!read_)\w+");
        assert!(matcher.matches("write_file") && !matcher.matches("read_file"));
        assert!(Matcher::new(r"(?P<verb>web)_(?:search|extract)").matches("web_search"));
        assert!(Matcher::new(r"(a|b)\1").matches("aa") && !Matcher::new(r"(a|b)\1").matches("ab"));
    }

    #[test]
    fn what_only_python_writes_this_way_is_understood() {
        for pattern in
            [r"(?a)\w+", "(?ai)TERMINAL", "(?x) terminal # c", "[[a-z]+", r"\164erminal", r"terminal\Z"]
        {
            assert!(Matcher::new(pattern).matches("terminal"), "{pattern}");
        }
        assert!(Matcher::new("[a-z&&x]+").matches("xa&") && !Matcher::new("(?x) a # b").matches("ab"));
        assert!(Matcher::new("[a-z--x]+").matches("x-a") && !Matcher::new("[a--]").matches("a"));
    }

    #[test]
    fn what_is_no_pattern_stands_for_itself() {
        assert!(Matcher::new("term[inal").matches("term[inal"));
        assert!(!Matcher::new("term[inal").matches("terminal"));
        assert!(!Matcher::new("a)|(b").matches("b"));
    }

    #[test]
    fn a_pattern_that_searches_for_ever_matches() {
        let matcher = Matcher::new(r"(?:(?=a)a*)*(?!a)b(?=c)");
        assert!(!matcher.matches("terminal"));
        assert!(Matcher::new(r"(a*)*\1(?!x)y").matches(&"a".repeat(60)));
    }
}
