//! Tables for people.

use std::ops::RangeInclusive;

use serde_json::Value;

/// The widest that a column gets before its text is cut.
const MAX_WIDTH: usize = 48;

/// Rows under headings, with columns as wide as they need to be.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings and no rows.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Table { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| one_line(&cell)).collect());
    }

    /// The table as text, with lines of at most `most` characters if that is given.
    pub(crate) fn render(&self, most: Option<usize>) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cut(cells.collect::<Vec<_>>().join("  ").trim_end(), most.unwrap_or(usize::MAX))
        };
        self.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A field of an object as text; nothing for null.
pub(crate) fn field(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Names and values under each other, those without a value left out.
pub(crate) fn fields(value: &Value, names: &[(&str, &str)]) -> String {
    let widest = names.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
    let lines = names.iter().filter_map(|(label, name)| {
        let text = plain(&field(value, name));
        (!text.is_empty()).then(|| format!("{label:<widest$}  {text}"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Text on one line, cut where it is too long for a column.
fn one_line(text: &str) -> String {
    short(text, MAX_WIDTH)
}

/// Text on one line of at most `most` characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    let line = plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&line, most)
}

fn cut(line: &str, most: usize) -> String {
    if line.chars().count() <= most {
        return line.to_owned();
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Text without the characters that could change what the terminal shows: those that control it, those that turn
/// around what is beside them, and those that nobody sees.
pub(crate) fn plain(text: &str) -> String {
    let misleads = |c: char| (c.is_control() && c != '\n' && c != '\t') || (is_hidden(c) && !is_joining(c));
    text.chars().map(|c| if misleads(c) { '\u{fffd}' } else { c }).collect()
}

/// Whether a character is part of how ordinary words and emojis are written.
fn is_joining(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200c}'..='\u{200d}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}')
}

fn is_hidden(c: char) -> bool {
    HIDDEN.iter().any(|range| range.contains(&c))
}

/// Text of which every character is seen: who agrees to something must not be shown less, or in another order.
pub(crate) fn revealed(text: &str) -> String {
    let is_unseen = |c: char| c.is_control() || is_hidden(c);
    let shown = |c: char| if is_unseen(c) { c.escape_unicode().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// Characters that show nothing, or that turn around what is beside them.
const HIDDEN: [RangeInclusive<char>; 17] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_line_up_and_long_text_is_cut() {
        let mut table = Table::new(&["ID", "NAME"]);
        table.row(["a".to_owned(), "first\nline".to_owned()]);
        table.row(["longer".to_owned(), "x".repeat(100)]);
        let cut = format!("{}…", "x".repeat(MAX_WIDTH - 1));
        assert_eq!(table.render(None), format!("ID      NAME\na       first line\nlonger  {cut}"));
        assert_eq!(table.render(Some(12)), "ID      NAME\na       fir…\nlonger  xxx…");
    }

    #[test]
    fn nothing_hides_from_who_agrees_to_it() {
        assert_eq!(revealed("rm \u{202e}fr\u{200b} ä👍\n\u{7f}"), r"rm \u{202e}fr\u{200b} ä👍\u{a}\u{7f}");
        for hidden in ['\u{17b4}', '\u{17b5}', '\u{2800}', '\u{ffa0}', '\u{1d173}', '\u{1d17a}'] {
            assert_eq!(revealed(&hidden.to_string()), hidden.escape_unicode().to_string());
        }
    }

    #[test]
    fn what_turns_text_around_is_replaced_and_what_joins_it_stays() {
        assert_eq!(
            plain("a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{1b}f"),
            "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}f"
        );
        for fine in ["👩\u{200d}👩\u{200d}👧", "❤\u{fe0f}", "می\u{200c}خواهم", "tab\tand\nline"]
        {
            assert_eq!(plain(fine), fine);
        }
    }

    #[test]
    fn a_title_cannot_move_the_cursor() {
        let mut table = Table::new(&["TITLE"]);
        table.row(["\u{1b}[2Jgone".to_owned()]);
        assert!(!table.render(None).contains('\u{1b}'));
        assert_eq!(fields(&json!({ "a": 1, "b": null }), &[("A", "a"), ("B", "b")]), "A  1");
    }
}
