//! Finds the bracket that closes another, over quotes, comments and here-documents.

use super::documents::Ending;
use super::lexer::Lexer;

impl Lexer<'_, '_> {
    /// What stands before the bracket that closes one already read.
    pub(super) fn until_closed(&mut self, opens: char, closes: char) -> String {
        let (mut inner, mut depth, mut quote) = (String::new(), 1, None);
        let mut documents = Vec::new();
        while let Some(character) = self.characters.raw() {
            // In `${…}` and `$((…))` there are none of them.
            let has_commands = quote.is_none() && opens == '(' && !inner.starts_with('(');
            match (quote, character) {
                (Some(open), character) if open == character => quote = None,
                (None, '\'' | '"') => quote = Some(character),
                (None | Some('"'), '\\') => {
                    inner.push(character);
                    inner.extend(self.characters.raw());
                    continue;
                }
                (None, '#')
                    if has_commands && inner.ends_with(|c: char| c.is_whitespace() || ";&|(".contains(c)) =>
                {
                    inner.push(character);
                    inner.push_str(&self.characters.raw_until('\n'));
                    continue;
                }
                (None, '<') if has_commands && self.characters.peek_raw() == Some('<') => {
                    inner.push_str(&self.document_named(&mut documents));
                    continue;
                }
                (None, '\n') if !documents.is_empty() => {
                    inner.push('\n');
                    for ending in documents.drain(..) {
                        inner.push_str(&self.raw_document(&ending));
                    }
                    continue;
                }
                (None, character) if character == opens => depth += 1,
                (None, character) if character == closes => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return inner;
            }
            inner.push(character);
        }
        self.unfinished = true;
        inner
    }

    /// Reads the rest of `<<` with the word behind it. Returns both as they stand.
    fn document_named(&mut self, documents: &mut Vec<Ending>) -> String {
        let mut shown = String::from("<");
        while let Some(sign) = self.characters.raw_if(|next| next == '<' || next == '-') {
            shown.push(sign);
        }
        let indented = shown == "<<-";
        if !indented && shown != "<<" {
            return shown;
        }
        while let Some(space) = self.characters.raw_if(|next| next == ' ' || next == '\t') {
            shown.push(space);
        }
        let mut word = String::new();
        while let Some(character) =
            self.characters.raw_if(|next| !next.is_whitespace() && !"|&;()<>".contains(next))
        {
            word.push(character);
        }
        shown.push_str(&word);
        let is_quote = |character: char| matches!(character, '\'' | '"' | '\\');
        documents.push(Ending {
            line: word.replace(is_quote, ""),
            quoted: word.contains(is_quote),
            indented,
        });
        shown
    }

    /// A here-document with the line that ends it, as they stand.
    fn raw_document(&mut self, ending: &Ending) -> String {
        let mut text = String::new();
        while self.characters.peek_raw().is_some() {
            let (line, raw) = self.document_line(ending);
            text.push_str(&raw);
            if line == ending.line {
                break;
            }
        }
        text
    }
}
