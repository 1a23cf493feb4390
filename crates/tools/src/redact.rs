//! Takes secrets out of what commands write and of what tools have to say.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, MatchKind};
use secrecy::{ExposeSecret, SecretString};

const MARK: &[u8] = b"[redacted]";
/// What is shorter occurs in any text.
const SHORTEST: usize = 4;
/// The same for one line of several. A key has long ones; a bracket in a line of its own gives nothing away.
///
/// Longer lines that are no secret (`apiVersion: v1`) are taken out too, wherever they are. Nothing tells them from
/// `password: hunter2` for sure, and a mark too many does less harm than a password.
const SHORTEST_LINE: usize = 8;

/// Takes secrets out of a text or a stream, wherever its pieces end.
pub struct Redactor {
    finder: Finder,
    /// The length of the longest secret.
    longest: usize,
    held_back: Vec<u8>,
}

enum Finder {
    /// There are no secrets.
    Nothing,
    Secrets(AhoCorasick),
    /// They cannot be looked for, so nothing may be shown.
    Everything,
}

impl Redactor {
    /// Takes these out.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a SecretString>) -> Self {
        let secrets: BTreeSet<Vec<u8>> =
            secrets.into_iter().flat_map(|secret| forms(secret.expose_secret())).collect();
        let longest = secrets.iter().map(Vec::len).max().unwrap_or_default();
        let finder = match longest {
            0 => Finder::Nothing,
            _ => finder(&secrets).map_or(Finder::Everything, Finder::Secrets),
        };
        Redactor { finder, longest, held_back: Vec::new() }
    }

    /// A text without them.
    pub fn redacted(mut self, text: String) -> String {
        if matches!(self.finder, Finder::Nothing) {
            return text;
        }
        self.held_back = text.into_bytes();
        String::from_utf8_lossy(&self.finish()).into_owned()
    }

    /// What may be shown, now that this has come.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held_back.extend_from_slice(bytes);
        // The beginning of a secret may be at the end.
        let certain = self.held_back.len().saturating_sub(self.longest.saturating_sub(1));
        self.shown(certain)
    }

    /// What is left at the end.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.shown(self.held_back.len())
    }

    /// What begins in the first `certain` bytes of what is held back, without secrets. The rest stays.
    fn shown(&mut self, certain: usize) -> Vec<u8> {
        let text = std::mem::take(&mut self.held_back);
        let found = match &self.finder {
            Finder::Nothing => return text,
            Finder::Everything => return if text.is_empty() { text } else { MARK.to_vec() },
            Finder::Secrets(finder) => finder.find_iter(&text).take_while(|found| found.start() < certain),
        };
        let (mut shown, mut end) = (Vec::with_capacity(text.len()), 0);
        for found in found {
            shown.extend_from_slice(text.get(end..found.start()).unwrap_or_default());
            shown.extend_from_slice(MARK);
            end = found.end();
        }
        shown.extend_from_slice(text.get(end..certain).unwrap_or_default());
        self.held_back = text.get(end.max(certain)..).unwrap_or_default().to_vec();
        shown
    }
}

/// Finds all secrets in one pass. Of those that begin in the same place the longest counts: it contains the others.
fn finder(secrets: &BTreeSet<Vec<u8>>) -> Result<AhoCorasick, BuildError> {
    // It is made for each output, and this kind is the quickest to make.
    let kind = Some(AhoCorasickKind::NoncontiguousNFA);
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).kind(kind).build(secrets)
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
        assert_eq!(redacted(&["s3cret", "s3cret-long"], &["s3cret", "-lo", "ng"]), "[redacted]");
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

    #[test]
    fn many_lines_and_much_text_take_one_pass() {
        let secret: String = (0..2000).map(|line| format!("line {line:05}\n")).collect();
        let text: String = (0..20_000).map(|line| format!("nothing {line:05}\n")).collect();
        // Line by line this took a minute.
        let shown = redacted(&[&secret, &secret], &[&text, "a line 00042 b"]);
        assert!(shown.starts_with(&text) && shown.ends_with("a [redacted] b"));
    }
}
