//! Finds a piece of text in a file as a person would: exactly if it is there, else without regard to the white space
//! and the kinds of quotes that models get wrong.

use std::ops::Range;

/// How strictly lines are compared, the strictest first.
const LEVELS: [fn(&str) -> String; 4] = [
    |line| line.trim_end().to_owned(),
    |line| line.trim().to_owned(),
    |line| line.split_whitespace().collect::<Vec<_>>().join(" "),
    |line| plain_signs(&line.split_whitespace().collect::<Vec<_>>().join(" ")),
];

/// Where a piece of text was found, and what stands there instead of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) range: Range<usize>,
    /// Whether it is there letter by letter.
    pub(super) exact: bool,
}

/// The places of `wanted` in `text`, at most `most`, by the strictest comparison that finds any.
pub(super) fn places(text: &str, wanted: &str, most: usize) -> Vec<Place> {
    let exact: Vec<Place> = text
        .match_indices(wanted)
        .take(most)
        .map(|(start, found)| Place { range: start..start + found.len(), exact: true })
        .collect();
    if !exact.is_empty() || wanted.trim().is_empty() {
        return exact;
    }
    let wanted: Vec<&str> = wanted.trim_matches('\n').lines().collect();
    let lines = lines(text);
    for level in LEVELS {
        let found: Vec<Place> = line_ranges(&lines, &wanted, level, 0)
            .map(|range| Place { range: byte_range(&lines, text, &range), exact: false })
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// Where `wanted` lines are, at line `from` or after it, by the strictest comparison that finds them.
pub(super) fn find_lines(lines: &[&str], wanted: &[&str], from: usize) -> Option<Range<usize>> {
    let numbered: Vec<(usize, &str)> = lines.iter().map(|&line| (0, line)).collect();
    let exact: fn(&str) -> String = str::to_owned;
    [exact].into_iter().chain(LEVELS).find_map(|level| line_ranges(&numbered, wanted, level, from).next())
}

/// The lines of a text with where they start.
fn lines(text: &str) -> Vec<(usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n')
        .map(|line| {
            let at = start;
            start += line.len();
            (at, line.trim_end_matches(['\n', '\r']))
        })
        .collect()
}

fn line_ranges<'a>(
    lines: &'a [(usize, &'a str)],
    wanted: &[&str],
    level: fn(&str) -> String,
    from: usize,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let wanted: Vec<String> = wanted.iter().map(|line| level(line)).collect();
    let count = wanted.len();
    let compared: Vec<String> = lines.iter().map(|(_, line)| level(line)).collect();
    let last = (lines.len() + 1).saturating_sub(count);
    (from..last.max(from)).filter_map(move |start| {
        let found = compared.get(start..start + count)? == wanted.as_slice();
        (found && count > 0).then_some(start..start + count)
    })
}

fn byte_range(lines: &[(usize, &str)], text: &str, range: &Range<usize>) -> Range<usize> {
    let start = lines.get(range.start).map_or(text.len(), |(start, _)| *start);
    let end = lines.get(range.end - 1).map_or(text.len(), |(start, line)| start + line.len());
    start..end
}

/// `new`, moved as far to the right or left as what was found is from what was asked for.
pub(super) fn reindented(found: &str, wanted: &str, new: &str) -> String {
    let indent = |text: &str| {
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        line.get(..line.len() - line.trim_start().len()).unwrap_or_default().to_owned()
    };
    let (is, was) = (indent(found), indent(wanted));
    let moved = new.split('\n').map(|line| match line.strip_prefix(was.as_str()) {
        Some(rest) if !line.trim().is_empty() => format!("{is}{rest}"),
        _ => line.to_owned(),
    });
    moved.collect::<Vec<_>>().join("\n")
}

/// Typographic signs as they are typed.
fn plain_signs(line: &str) -> String {
    line.chars()
        .map(|sign| match sign {
            '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' => '\'',
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' => '"',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            '\u{a0}' | '\u{202f}' => ' ',
            sign => sign,
        })
        .collect()
}
