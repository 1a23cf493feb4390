//! The part of a message that shows why it was found.

/// The beginning of a text.
pub(super) fn beginning(text: &str, most: usize) -> String {
    cut(text, 0, most)
}

/// The part of a text around the first of the words in it, or its beginning.
pub(super) fn snippet(text: &str, words: &str, most: usize) -> String {
    let haystack: Vec<char> = text.chars().flat_map(|character| lower(character).next()).collect();
    let found = words
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty() && *word != "OR")
        .filter_map(|word| {
            // Words are found in any inflection, so the beginning of a long one is enough.
            let needle: Vec<char> = word.chars().flat_map(|character| lower(character).next()).collect();
            let needle =
                if needle.len() > 5 { &needle[..needle.len() - needle.len() / 3] } else { &needle[..] };
            haystack.windows(needle.len()).position(|window| window == needle)
        })
        .min();
    cut(text, found.unwrap_or(0).saturating_sub(most / 3), most)
}

fn lower(character: char) -> impl Iterator<Item = char> {
    character.to_lowercase()
}

/// At most so many characters of a text from one on, with marks where something is left out.
fn cut(text: &str, from: usize, most: usize) -> String {
    let count = text.chars().count();
    let from = if count <= most { 0 } else { from.min(count - most) };
    let mut part: String = text.chars().skip(from).take(most).collect();
    if from > 0 {
        part.insert(0, '…');
    }
    if from + most < count {
        part.push('…');
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_shows_the_first_word_that_was_found() {
        assert_eq!(snippet("short text", "text", 20), "short text");
        let long = format!("{}the Deployment failed{}", "x ".repeat(50), " y".repeat(50));
        let part = snippet(&long, "deploying OR nothing", 30);
        assert!(part.contains("Deployment") && part.starts_with('…') && part.ends_with('…'), "{part}");
        assert_eq!(snippet("abcdef", "zzz", 3), "abc…");
        assert_eq!(snippet("ab cd", "", 2), "ab…");
        assert!(snippet(&format!("{}Ünïcode", "ß".repeat(90)), "ünïcode", 20).ends_with("Ünïcode"));
    }
}
