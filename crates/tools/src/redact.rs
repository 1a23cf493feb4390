//! Takes secrets out of what commands write.

use secrecy::{ExposeSecret, SecretString};

const MARK: &[u8] = b"[redacted]";
/// What is shorter occurs in any text.
const SHORTEST: usize = 4;

/// Takes secrets out of a stream, wherever its pieces end.
pub(crate) struct Redactor {
    secrets: Vec<Vec<u8>>,
    held_back: Vec<u8>,
}

impl Redactor {
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a SecretString>) -> Self {
        let secrets = secrets.into_iter().map(|secret| secret.expose_secret().as_bytes().to_vec());
        let mut secrets: Vec<_> = secrets.filter(|secret| secret.len() >= SHORTEST).collect();
        // One that contains another must be found first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Redactor { secrets, held_back: Vec::new() }
    }

    /// What may be shown, now that this has come.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(longest) = self.secrets.first().map(Vec::len) else { return bytes.to_vec() };
        self.held_back.extend_from_slice(bytes);
        let mut text = self.without_secrets();
        // The beginning of a secret may be at the end.
        let shown = text.len().saturating_sub(longest - 1);
        self.held_back = text.split_off(shown);
        text
    }

    /// What is left at the end.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let text = self.without_secrets();
        self.held_back.clear();
        text
    }

    fn without_secrets(&self) -> Vec<u8> {
        let mut rest = self.held_back.as_slice();
        let mut text = Vec::with_capacity(rest.len());
        while let Some((&first, after)) = rest.split_first() {
            match self.secrets.iter().find(|secret| rest.starts_with(secret)) {
                Some(secret) => {
                    text.extend_from_slice(MARK);
                    rest = rest.get(secret.len()..).unwrap_or_default();
                }
                None => {
                    text.push(first);
                    rest = after;
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(secrets: &[&str], pieces: &[&str]) -> String {
        let secrets: Vec<SecretString> = secrets.iter().map(|&secret| SecretString::from(secret)).collect();
        let mut redactor = Redactor::new(&secrets);
        let mut text: Vec<u8> = pieces.iter().flat_map(|piece| redactor.push(piece.as_bytes())).collect();
        text.extend(redactor.finish());
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn secrets_are_found_across_pieces() {
        assert_eq!(redacted(&["s3cret"], &["a s3cret b"]), "a [redacted] b");
        assert_eq!(redacted(&["s3cret"], &["a s3", "c", "ret b s3cre"]), "a [redacted] b s3cre");
        assert_eq!(redacted(&["s3cret", "s3cret-long"], &["s3cret-long s3cret"]), "[redacted] [redacted]");
        assert_eq!(redacted(&["abc", ""], &["abc"]), "abc");
        assert_eq!(redacted(&[], &["plain"]), "plain");
    }
}
