//! Keeps the beginning and the end of a text that is too long.

/// The first `head` and the last `tail` characters of a text, with a note on how many are missing in between; none if
/// the text is no longer than that.
pub fn both_ends(text: &str, head: usize, tail: usize, note: impl FnOnce(usize) -> String) -> Option<String> {
    let count = text.chars().count();
    let left_out = count.checked_sub(head.saturating_add(tail)).filter(|left_out| *left_out > 0)?;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    Some(format!("{start}\n{}\n{end}", note(left_out)))
}

#[cfg(test)]
mod tests {
    use super::both_ends;

    #[test]
    fn the_middle_of_a_long_text_is_left_out() {
        let short = |text| both_ends(text, 2, 3, |left_out| format!("[{left_out}]"));
        assert_eq!(short("äbcde"), None);
        assert_eq!(short("äbcdef"), Some("äb\n[1]\ndef".to_owned()));
        assert_eq!(both_ends("abc", 0, 0, |left_out| left_out.to_string()), Some("\n3\n".to_owned()));
    }
}
