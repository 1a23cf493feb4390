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

/// The longest pattern that is tried.
const MAX_PATTERN: usize = 500;

/// Whether a file's name is what a pattern of the shell describes: `*`, `?` and `[…]`. A pattern that is too long to be
/// tried describes everything.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let (mut pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Several stars are as good as one, and each would double the places that are looked at.
    pattern.dedup_by(|next, before| *next == '*' && *before == '*');
    if pattern.len() > MAX_PATTERN {
        return true;
    }
    // Which prefixes of the pattern describe what was read of the name so far.
    let mut at: Vec<usize> = starts(&pattern, 0);
    for character in name {
        let mut next = Vec::new();
        for place in at {
            match pattern.get(place) {
                Some('*') => next.extend(starts(&pattern, place)),
                Some('?') => next.extend(starts(&pattern, place + 1)),
                Some('[') => {
                    if let Some((end, found)) = one_of(&pattern, place, character) {
                        next.extend(found.then(|| starts(&pattern, end)).into_iter().flatten());
                    }
                }
                Some(expected) if *expected == character => next.extend(starts(&pattern, place + 1)),
                _ => {}
            }
        }
        next.sort_unstable();
        next.dedup();
        at = next;
    }
    at.contains(&pattern.len())
}

/// The places that may be read from next: this one, and those behind each `*` that stands for nothing.
fn starts(pattern: &[char], mut place: usize) -> Vec<usize> {
    let mut places = vec![place];
    while pattern.get(place) == Some(&'*') {
        place += 1;
        places.push(place);
    }
    places
}

/// Where `[…]` ends, and whether it has the character.
fn one_of(pattern: &[char], start: usize, character: char) -> Option<(usize, bool)> {
    let end = pattern.iter().skip(start + 1).position(|c| *c == ']')? + start + 1;
    let mut set = pattern.get(start + 1..end)?;
    let negated = matches!(set.first(), Some('!' | '^'));
    set = set.get(usize::from(negated)..)?;
    let mut found = set.contains(&character);
    for range in set.windows(3) {
        if let [from, '-', to] = range {
            found |= (*from..=*to).contains(&character);
        }
    }
    Some((end + 1, found != negated))
}

#[cfg(test)]
mod tests {
    use super::{fits, matches};

    #[test]
    fn patterns_of_files_are_those_of_a_shell() {
        assert!(fits("r?", "rm") && fits("*", "rm") && fits("[a-z]m", "rm") && fits("r*m*", "rm"));
        assert!(fits(&"*".repeat(90_000), "rm") && fits(&"?*".repeat(90_000), "rm"));
        assert!(!fits("[!r]m", "rm") && !fits("r", "rm") && !fits("rm?", "rm") && !fits("[", "x"));
    }

    #[test]
    fn a_star_is_anything() {
        assert!(matches("git *", "git push origin"));
        assert!(matches("*", ""));
        assert!(matches("*curl*|*sh", "x curl y | bash"));
        assert!(matches("ls", "ls") && !matches("ls", "ls -l") && !matches("git *", "legit x"));
        assert!(!matches("ab*ba", "aba"));
    }
}
