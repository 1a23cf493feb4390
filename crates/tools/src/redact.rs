//! Takes secrets out of what commands write and of what tools have to say.

use secrecy::{ExposeSecret, SecretString};

const MARK: &[u8] = b"[redacted]";
/// What is shorter occurs in any text.
const SHORTEST: usize = 4;
/// The same for one line of several. A key has long ones; a bracket in a line of its own gives nothing away.
const SHORTEST_LINE: usize = 8;

/// Takes secrets out of a text or a stream, wherever its pieces end.
pub struct Redactor {
    secrets: Vec<Vec<u8>>,
    held_back: Vec<u8>,
}

impl Redactor {
    /// Takes these out.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a SecretString>) -> Self {
        let mut secrets: Vec<_> =
            secrets.into_iter().flat_map(|secret| forms(secret.expose_secret())).collect();
        // One that contains another must be found first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Redactor { secrets, held_back: Vec::new() }
    }

    /// A text without them.
    pub fn redacted(mut self, text: String) -> String {
        if self.secrets.is_empty() {
            return text;
        }
        self.held_back = text.into_bytes();
        String::from_utf8_lossy(&self.without_secrets()).into_owned()
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

/// How a secret may stand in a text: as it is, line by line between other things, and either as a part of JSON.
fn forms(secret: &str) -> impl Iterator<Item = Vec<u8>> {
    let whole = Some(secret.trim()).filter(|whole| whole.len() >= SHORTEST);
    let lines = secret.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
    whole.into_iter().chain(lines).flat_map(|form| [form.as_bytes().to_vec(), escaped(form)])
}

fn escaped(text: &str) -> Vec<u8> {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text).into()
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

    #[test]
    fn secrets_are_found_in_the_shape_that_tools_give_them() {
        let password = "\"pa\\ss\"wörd\"\n";
        let text = serde_json::json!({ "content": format!("1|{password}") }).to_string();
        assert_eq!(redacted(&[password], &[&text]), r#"{"content":"1|[redacted]\n"}"#);
        let key = "-----BEGIN KEY-----\r\nMIIEvQIBADANBg\r\n}\r\n";
        let numbered = "1|-----BEGIN KEY-----\n2|MIIEvQIBADANBg\n3|}";
        assert_eq!(redacted(&[key], &[numbered]), "1|[redacted]\n2|[redacted]\n3|}");
        let whole = Redactor::new(&[SecretString::from("s3cret")]).redacted("ö s3cret ö".to_owned());
        assert_eq!(whole, "ö [redacted] ö");
    }
}
