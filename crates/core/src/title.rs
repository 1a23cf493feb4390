//! A title for a session that was given none.

const MAX_CHARS: usize = 60;

/// Makes a title of the first line of the user's first message, cut at a word. `None` if there is no text.
pub fn from_first_message(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() <= MAX_CHARS {
        return Some(words);
    }
    let cut: String = words.chars().take(MAX_CHARS).collect();
    let at_word = cut.rfind(' ').filter(|at| *at > MAX_CHARS / 2).map_or(cut.as_str(), |at| &cut[..at]);
    Some(format!("{at_word}…"))
}

#[cfg(test)]
mod tests {
    use super::from_first_message;

    #[test]
    fn the_first_line_is_cut_at_a_word() {
        assert_eq!(from_first_message("  \n Plan the  party\nfor ten"), Some("Plan the party".into()));
        let long = "Write a very long plan for the holiday campaign of the entire company, please";
        assert_eq!(
            from_first_message(long),
            Some("Write a very long plan for the holiday campaign of the…".into())
        );
        assert_eq!(from_first_message(&"ä".repeat(100)), Some(format!("{}…", "ä".repeat(60))));
        assert_eq!(from_first_message("\n  "), None);
    }
}
