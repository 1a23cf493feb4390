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

    /// The table as text.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
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
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most - 1).chain(['…']).collect()
}

/// Text without the control characters that could change what the terminal shows.
pub(crate) fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// Text of which every character is seen: who agrees to something must not be shown less, or in another order.
pub(crate) fn revealed(text: &str) -> String {
    let is_hidden = |c: char| c.is_control() || HIDDEN.iter().any(|range| range.contains(&c));
    let shown = |c: char| if is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() };
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
        assert_eq!(table.render(), format!("ID      NAME\na       first line\nlonger  {cut}"));
    }

    #[test]
    fn nothing_hides_from_who_agrees_to_it() {
        assert_eq!(revealed("rm \u{202e}fr\u{200b} ä👍\n\u{7f}"), r"rm \u{202e}fr\u{200b} ä👍\u{a}\u{7f}");
        for hidden in ['\u{17b4}', '\u{17b5}', '\u{2800}', '\u{ffa0}', '\u{1d173}', '\u{1d17a}'] {
            assert_eq!(revealed(&hidden.to_string()), hidden.escape_unicode().to_string());
        }
    }

    #[test]
    fn a_title_cannot_move_the_cursor() {
        let mut table = Table::new(&["TITLE"]);
        table.row(["\u{1b}[2Jgone".to_owned()]);
        assert!(!table.render().contains('\u{1b}'));
        assert_eq!(fields(&json!({ "a": 1, "b": null }), &[("A", "a"), ("B", "b")]), "A  1");
    }
}
