//! What `echo` and `printf` print.

use super::escapes::unescaped;
use super::simple::Simple;

/// What one of them prints. Stops soon after that many bytes.
pub(super) fn by(simple: &Simple, most: usize) -> String {
    if simple.name() == "echo" {
        return echo(simple.arguments());
    }
    let mut words = simple.arguments().iter().map(String::as_str).skip_while(|word| *word == "--");
    let format = words.next().unwrap_or_default();
    printf(format, words.collect(), most)
}

fn echo(words: &[String]) -> String {
    let is_option = |word: &&String| {
        word.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.chars().all(|letter| "neE".contains(letter))
        })
    };
    let options = words.iter().take_while(is_option).count();
    let (options, words) = words.split_at(options);
    let text = words.join(" ");
    let escapes = options.iter().any(|option| option.contains('e'));
    let mut text = if escapes { unescaped(&text) } else { text };
    text.push('\n');
    text
}

/// The format, with the words in their places, and again while there are more of them.
fn printf(format: &str, words: Vec<&str>, most: usize) -> String {
    let format = unescaped(format);
    let mut words = words.into_iter();
    let mut printed = String::new();
    loop {
        let before = words.len();
        let mut rest = format.as_str();
        while let Some((text, directive)) = rest.split_once('%') {
            printed.push_str(text);
            let end = directive.find(|c: char| c.is_ascii_alphabetic() || c == '%').unwrap_or(0);
            match directive.get(end..).and_then(|rest| rest.chars().next()) {
                Some('%') | None => printed.push('%'),
                Some('b') => printed.push_str(&unescaped(words.next().unwrap_or_default())),
                Some(_) => printed.push_str(words.next().unwrap_or_default()),
            }
            rest = directive.get(end + 1..).unwrap_or_default();
        }
        printed.push_str(rest);
        if words.len() == 0 || words.len() == before || printed.len() > most {
            return printed;
        }
    }
}
