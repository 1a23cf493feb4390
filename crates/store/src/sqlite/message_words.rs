//! Words as the index of messages has them, and what is asked of it.

/// The most characters of a message that are indexed.
const MAX_INDEXED_CHARS: usize = 100_000;
/// The most words and phrases of a question.
const MAX_TERMS: usize = 32;

/// A text as it goes into the index. Scripts that are written without spaces are taken apart, so that each of their
/// characters is a word, and a word of theirs is a phrase.
pub(super) fn indexed(text: &str) -> String {
    spaced(text, MAX_INDEXED_CHARS)
}

fn spaced(text: &str, most: usize) -> String {
    let mut spaced = String::with_capacity(text.len().min(4 * most));
    for character in text.chars().take(most) {
        if is_unspaced(character) {
            spaced.extend([' ', character, ' ']);
        } else if character.is_control() {
            spaced.push(' ');
        } else {
            spaced.push(character);
        }
    }
    spaced
}

/// Whether a character is of a script that is written without spaces.
fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}' // Thai, Lao
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{3040}'..='\u{30ff}' // Hiragana, Katakana
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' // Han
        | '\u{ac00}'..='\u{d7af}' // Hangul
        | '\u{20000}'..='\u{3ffff}')
}

/// What is asked of the index for words as [`MessageQuery`](crate::MessageQuery) describes them; none if there are none.
pub(super) fn expression(words: &str) -> Option<String> {
    let mut expression = String::new();
    let mut either = false;
    for term in terms(words).into_iter().take(MAX_TERMS) {
        if term == "OR" {
            either = true;
            continue;
        }
        let Some(quoted) = quoted(term) else { continue };
        if !expression.is_empty() {
            expression.push_str(if either { " OR " } else { " AND " });
        }
        either = false;
        expression.push_str(&quoted);
    }
    (!expression.is_empty()).then_some(expression)
}

/// Takes words and phrases apart. A phrase keeps the quote that it begins with.
fn terms(words: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut rest = words.trim_start();
    while !rest.is_empty() {
        let end = match rest.strip_prefix('"') {
            Some(phrase) => phrase.find('"').map_or(rest.len(), |end| end + 1),
            None => rest
                .find(|character: char| character.is_whitespace() || character == '"')
                .unwrap_or(rest.len()),
        };
        terms.push(&rest[..end]);
        rest = rest[end..].strip_prefix('"').unwrap_or(&rest[end..]).trim_start();
    }
    terms
}

/// One word or phrase as the index reads it; none if there is nothing to look for in it.
fn quoted(term: &str) -> Option<String> {
    let (term, is_phrase) = term.strip_prefix('"').map_or((term, false), |phrase| (phrase, true));
    let begins = !is_phrase && term.ends_with('*');
    if !term.chars().any(char::is_alphanumeric) {
        return None;
    }
    let text = spaced(&term.replace('"', " "), 1000);
    Some(format!("\"{}\"{}", text.trim(), if begins { "*" } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &str, expected: &str) {
        assert_eq!(expression(words).unwrap_or_default(), expected, "{words}");
    }

    #[test]
    fn words_become_an_expression() {
        check("", "");
        check("  ", "");
        check("tea", "\"tea\"");
        check("green tea", "\"green\" AND \"tea\"");
        check("green OR tea time", "\"green\" OR \"tea\" AND \"time\"");
        check("\"green tea\" please", "\"green tea\" AND \"please\"");
        check("deploy*", "\"deploy*\"*");
        check("OR", "");
        check("OR tea OR", "\"tea\"");
    }

    #[test]
    fn nothing_else_has_a_meaning() {
        check("NOT tea", "\"NOT\" AND \"tea\"");
        check("text:tea", "\"text:tea\"");
        check("(tea) + ^ -", "\"(tea)\"");
        check("unclosed \"green tea", "\"unclosed\" AND \"green tea\"");
        check("a\"b\"c", "\"a\" AND \"b\" AND \"c\"");
        check("a\u{0}b", "\"a b\"");
        check("\"\" \"", "");
    }

    #[test]
    fn scripts_without_spaces_are_taken_apart() {
        assert_eq!(indexed("一杯の茶, tea"), " 一  杯  の  茶 , tea");
        check("の茶", "\"の  茶\"");
    }
}
