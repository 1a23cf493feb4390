//! Replaces a part of a text.

/// What is replaced by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Patch {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) everywhere: bool,
}

impl Patch {
    /// The text with the part replaced, or why it cannot be.
    pub(super) fn apply(&self, text: &str) -> Result<String, String> {
        if self.old.is_empty() {
            return Err("old_string is empty; put the text to replace there".to_owned());
        }
        match text.matches(&self.old).count() {
            0 => {
                Err("old_string is not in the text; load it with skill_view and copy the part exactly"
                    .to_owned())
            }
            1 => Ok(text.replacen(&self.old, &self.new, 1)),
            _ if self.everywhere => Ok(text.replace(&self.old, &self.new)),
            count => Err(format!(
                "old_string is in the text {count} times; make it longer, or set replace_all to true"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_once_or_everywhere() {
        let patch = |old: &str, everywhere| Patch { old: old.into(), new: "x".into(), everywhere };
        assert_eq!(patch("b", false).apply("abc").as_deref(), Ok("axc"));
        assert_eq!(patch("b", true).apply("abcb").as_deref(), Ok("axcx"));
        assert!(patch("b", false).apply("abcb").unwrap_err().contains("2 times"));
        assert!(patch("d", false).apply("abc").unwrap_err().contains("not in the text"));
        assert!(patch("", false).apply("abc").unwrap_err().contains("empty"));
    }
}
