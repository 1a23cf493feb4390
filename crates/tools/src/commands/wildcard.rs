//! Patterns in which `*` stands for anything.

/// Whether the whole text is what the pattern describes.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_is_anything() {
        assert!(matches("git *", "git push origin"));
        assert!(matches("*", ""));
        assert!(matches("*curl*|*sh", "x curl y | bash"));
        assert!(matches("ls", "ls") && !matches("ls", "ls -l") && !matches("git *", "legit x"));
        assert!(!matches("ab*ba", "aba"));
    }
}
