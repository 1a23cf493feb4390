//! The tables: printed as they come, and written to a file at the end.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::{Bench, machine};

/// Fails unless a file can be written there: better before everything is measured than after.
pub(crate) fn can_write(path: &Path) -> Result<()> {
    let problem = || format!("cannot write {}", path.display());
    let is_new = !path.exists();
    std::fs::File::options().append(true).create(true).open(path).with_context(problem)?;
    // A run that fails must not leave an empty report behind.
    if is_new { std::fs::remove_file(path).with_context(problem) } else { Ok(()) }
}

/// A figure and what it should be.
pub(crate) struct Target {
    name: String,
    figure: f64,
    bound: String,
    unit: &'static str,
    reached: bool,
}

impl Target {
    pub(crate) fn at_most(name: &str, figure: f64, most: f64, unit: &'static str) -> Self {
        let bound = format!("≤ {most} {unit}");
        Target { name: name.to_owned(), figure, bound, unit, reached: figure <= most }
    }

    pub(crate) fn at_least(name: &str, figure: f64, least: f64, unit: &'static str) -> Self {
        let bound = format!("≥ {least} {unit}");
        Target { name: name.to_owned(), figure, bound, unit, reached: figure >= least }
    }
}

/// A figure that a change should not make worse.
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// Whether more is better: a rate, not a time.
    pub(crate) is_rate: bool,
}

/// One table with what is to be said about it.
pub(crate) struct Section {
    text: String,
    targets: Vec<Target>,
    /// What two binaries are compared by.
    pub(crate) figures: Vec<Figure>,
}

impl Section {
    pub(crate) fn new(title: &str) -> Self {
        Section { text: format!("## {title}\n\n"), targets: Vec::new(), figures: Vec::new() }
    }

    pub(crate) fn note(&mut self, note: &str) {
        self.text.push_str(note);
        self.text.push_str("\n\n");
    }

    pub(crate) fn header(&mut self, cells: &[&str]) {
        self.row(cells.iter().map(|cell| (*cell).to_owned()));
        self.row(
            cells.iter().enumerate().map(|(index, _)| if index == 0 { "---" } else { "---:" }.to_owned()),
        );
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }

    pub(crate) fn target(&mut self, target: Target) {
        self.targets.push(target);
    }

    /// Adds a time or an amount by which two binaries are compared.
    pub(crate) fn cost(&mut self, name: &str, value: f64, unit: &'static str) {
        self.figures.push(Figure { name: name.to_owned(), value, unit, is_rate: false });
    }

    /// Adds a rate by which two binaries are compared.
    pub(crate) fn rate(&mut self, name: &str, value: f64, unit: &'static str) {
        self.figures.push(Figure { name: name.to_owned(), value, unit, is_rate: true });
    }
}

/// Everything that was measured.
#[derive(Default)]
pub(crate) struct Report {
    head: String,
    sections: String,
    targets: Vec<Target>,
}

impl Report {
    /// What was measured where.
    pub(crate) fn head(&mut self, bench: &Bench, is_comparison: bool) -> Result<()> {
        let directory = bench.directory()?;
        let fsync = machine::fsync(directory.path(), bench.scale.of(300, 50))?;
        let head = &mut self.head;
        let _ = writeln!(head, "# Benchmark\n");
        let _ = writeln!(
            head,
            "Written by `cargo run --release -p petasos-bench -- --binary target/release/petasos{}`.\n",
            if is_comparison { " --against OLDER" } else { "" }
        );
        let _ = writeln!(head, "- commit: {}", machine::commit());
        let _ = writeln!(head, "- cores: {} ({})", machine::cores(), machine::processor());
        let fsync = (milliseconds(fsync.p50()), milliseconds(fsync.p99()));
        let _ = writeln!(head, "- bringing 8 KB to the disk (fdatasync): p50 {}, p99 {}", fsync.0, fsync.1);
        let _ = writeln!(head, "- load average before: {}", machine::load_average());
        if bench.scale.quick {
            let _ = writeln!(head, "- **quick run: these figures say nothing**");
        }
        print!("{head}");
        Ok(())
    }

    pub(crate) fn show(&mut self, section: Section) {
        print!("\n{}", section.text);
        self.sections.push('\n');
        self.sections.push_str(&section.text);
        self.targets.extend(section.targets);
    }

    /// What is known at the end: how long it took, and which targets were reached.
    pub(crate) fn tail(&mut self, time: Duration) {
        let load = machine::load_average();
        let _ = writeln!(self.head, "- load average after {} s: {load}", time.as_secs());
        let mut section = Section::new("Targets");
        section.header(&["", "measured", "target", ""]);
        for target in &self.targets {
            let verdict = if target.reached { "reached" } else { "**missed**" };
            let figure = format!("{:.2} {}", target.figure, target.unit);
            section.row([target.name.clone(), figure, target.bound.clone(), verdict.to_owned()]);
        }
        print!("\n{}\nload average after {} s: {load}\n", section.text, time.as_secs());
        self.sections = format!("\n{}{}", section.text, self.sections);
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = format!("{}{}", self.head, self.sections);
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("written to {}", path.display());
        Ok(())
    }
}

pub(crate) fn milliseconds(value: f64) -> String {
    format!("{value:.2} ms")
}

pub(crate) fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

/// A large figure, in whole numbers.
pub(crate) fn count(value: f64) -> String {
    whole(value.max(0.0) as u64)
}

/// A number with commas.
pub(crate) fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_whether_a_report_can_be_written_leaves_everything_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("RESULTS.md");
        can_write(&path).unwrap();
        assert!(!path.exists());
        std::fs::write(&path, "measured").unwrap();
        can_write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "measured");
        assert!(can_write(&directory.path().join("nowhere/RESULTS.md")).is_err());
    }
}
