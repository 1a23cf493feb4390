//! Finds a piece of text in a file as a person would: exactly if it is there, else without regard to the white space
//! and the kinds of quotes that models get wrong.

use std::ops::Range;
use std::time::{Duration, Instant};

/// How strictly lines are compared, the strictest first.
const LEVELS: [fn(&str) -> String; 4] = [
    |line| line.trim_end().to_owned(),
    |line| line.trim().to_owned(),
    |line| line.split_whitespace().collect::<Vec<_>>().join(" "),
    |line| plain_signs(&line.split_whitespace().collect::<Vec<_>>().join(" ")),
];

/// How long one call may look for lines.
const MAX_TIME: Duration = Duration::from_secs(10);

/// When a call must have found its lines. Many lines that are nearly alike take long to tell apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// The deadline of a call that begins now.
    pub(super) fn from_now() -> Self {
        Deadline(Instant::now() + MAX_TIME)
    }

    /// Refuses to go on after the deadline.
    pub(super) fn check(self) -> Result<(), String> {
        if Instant::now() < self.0 {
            return Ok(());
        }
        let seconds = MAX_TIME.as_secs();
        Err(format!(
            "Finding the lines took more than {seconds} s, so nothing was changed; change less at once."
        ))
    }
}

/// Where a piece of text was found, and what stands there instead of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) range: Range<usize>,
    /// Whether it is there letter by letter.
    pub(super) exact: bool,
}

/// The places of `wanted` in `text`, at most `most`, by the strictest comparison that finds any.
pub(super) fn places(
    text: &str,
    wanted: &str,
    most: usize,
    deadline: Deadline,
) -> Result<Vec<Place>, String> {
    let exact: Vec<Place> = text
        .match_indices(wanted)
        .take(most)
        .map(|(start, found)| Place { range: start..start + found.len(), exact: true })
        .collect();
    if !exact.is_empty() || wanted.trim().is_empty() {
        return Ok(exact);
    }
    let wanted: Vec<&str> = wanted.trim_matches('\n').lines().collect();
    let lines = lines(text);
    for level in LEVELS {
        let found = line_ranges(&lines, &wanted, level, most, deadline)?;
        if !found.is_empty() {
            let place = |range| Place { range: byte_range(&lines, text, &range), exact: false };
            return Ok(found.into_iter().map(place).collect());
        }
    }
    Ok(Vec::new())
}

/// Where `wanted` lines are, at line `from` or after it, by the strictest comparison that finds them.
pub(super) fn find_lines(
    lines: &[&str],
    wanted: &[&str],
    from: usize,
    deadline: Deadline,
) -> Result<Option<Range<usize>>, String> {
    let after: Vec<(usize, &str)> = lines.iter().skip(from).map(|&line| (0, line)).collect();
    let exact: fn(&str) -> String = str::to_owned;
    for level in [exact].into_iter().chain(LEVELS) {
        if let Some(found) = line_ranges(&after, wanted, level, 1, deadline)?.pop() {
            return Ok(Some(from + found.start..from + found.end));
        }
    }
    Ok(None)
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

/// The first places of the wanted lines, at most `most`.
fn line_ranges(
    lines: &[(usize, &str)],
    wanted: &[&str],
    level: fn(&str) -> String,
    most: usize,
    deadline: Deadline,
) -> Result<Vec<Range<usize>>, String> {
    let wanted: Vec<String> = wanted.iter().map(|line| level(line)).collect();
    let compared: Vec<String> = lines.iter().map(|(_, line)| level(line)).collect();
    let (mut found, count) = (Vec::new(), wanted.len());
    if count == 0 {
        return Ok(found);
    }
    for (start, there) in compared.windows(count).enumerate() {
        deadline.check()?;
        if there == wanted.as_slice() {
            found.push(start..start + count);
            if found.len() == most {
                break;
            }
        }
    }
    Ok(found)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_for_lines_ends_in_time() {
        let (lines, over) = (vec!["a"; 1000], Deadline(Instant::now()));
        let refused = find_lines(&lines, &["a", "b"], 0, over).unwrap_err();
        assert!(refused.contains("nothing was changed"), "{refused}");
        assert!(places(&"a\n".repeat(1000), "a \nb", 1, over).is_err());
        assert_eq!(find_lines(&lines, &["a ", "a"], 7, Deadline::from_now()), Ok(Some(7..9)));
    }
}
