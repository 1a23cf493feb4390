//! The line that was written to a command in the background and has not ended yet.
//!
//! A shell runs whole lines. One that comes in pieces is harmless in each of them, so a piece is judged with what is there.

use crate::commands::{self, Approvals};
use crate::tool::Risk;

/// What was written of a line so far.
#[derive(Default)]
pub(crate) struct UnfinishedLine {
    text: String,
}

impl UnfinishedLine {
    /// Adds what is about to be written. What only becomes dangerous with the pieces before it was never asked about, and
    /// is refused: it can be asked about when it comes whole.
    pub(crate) fn add(&mut self, data: &str, approvals: &Approvals) -> Result<(), String> {
        let whole = format!("{}{}", self.text, ended(data));
        if !self.text.is_empty() && !data.trim().is_empty() {
            let why = match commands::judge_input(&whole, approvals).risk {
                Risk::Harmless | Risk::Ordinary => None,
                Risk::Dangerous(danger) => Some(format!("It {}.", danger.description)),
                Risk::Forbidden { reason } => Some(reason),
            };
            if let Some(why) = why {
                return Err(format!(
                    "This is not written: with what is in its line already it is another command. {why} End that line \
                     first (submit with empty data), then submit the whole command at once."
                ));
            }
        }
        let mut ends = whole.match_indices('\n').map(|(at, _)| at).rev();
        // A backslash joins a line with the next.
        let end = ends.find(|at| whole.get(..*at).is_some_and(|line| !line.ends_with('\\')));
        self.text = end.map_or(whole.as_str(), |end| whole.get(end + 1..).unwrap_or_default()).to_owned();
        Ok(())
    }
}

/// Data as it is judged: in a terminal the key for enter ends a line.
pub(crate) fn ended(data: &str) -> String {
    data.replace('\r', "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_in_pieces_is_judged_whole() {
        for (pieces, refused) in [
            (vec!["rm -rf ", "/\n"], true),
            (vec!["r", "m -r x\n"], true),
            (vec!["r", "m", " -r x"], true),
            (vec!["ls\nrm ", "-r x\n"], true),
            (vec!["ls\rrm ", "-r x\r"], true),
            (vec!["rm \\\n", "-r x\n"], true),
            (vec!["rm ", "\\\n", "-r x\n"], true),
            (vec!["rm -r x", "\n"], false),
            (vec!["r", "\n", "m -r x\n"], false),
            (vec!["y", "y", "\n", "ls\n"], false),
        ] {
            let mut line = UnfinishedLine::default();
            let (last, before) = pieces.split_last().unwrap();
            for piece in before {
                line.add(piece, &Approvals::default()).unwrap();
            }
            let added = line.add(last, &Approvals::default());
            assert_eq!(added.is_err(), refused, "{pieces:?}: {added:?}");
        }
    }
}
