//! Two binaries side by side.
//!
//! What takes milliseconds is measured on two servers that are up at the same time and take turns with every single
//! request (`duel`), so that whatever else the machine does hits both alike. Rates and memory are measured part by part,
//! with one binary and then with the other. All of it is repeated, and the medians of the rounds are compared.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::report::{Figure, Section, Target};
use crate::samples::Samples;
use crate::{Bench, duel, sections};

/// The most by which a figure may be worse than before.
const MOST: f64 = 1.05;
/// Parts whose figures a duel measures better.
const OF_DUEL: [&str; 4] = ["turn", "commands", "hooks", "growth"];

/// One figure of both binaries.
struct Pair {
    name: String,
    unit: &'static str,
    is_rate: bool,
    older: Samples,
    newer: Samples,
}

impl Pair {
    /// How much worse the newer binary is: above one is worse.
    fn ratio(&self) -> f64 {
        let ratio = self.newer.p50() / self.older.p50();
        if self.is_rate { ratio.recip() } else { ratio }
    }
}

pub(crate) async fn measure(bench: Bench, older: PathBuf, parts: &[&str], rounds: usize) -> Result<Section> {
    let mut bench = bench;
    let newer = bench.binary.clone();
    let mut pairs: Vec<Pair> = Vec::new();
    let is_wanted = |part: &&&str| parts.contains(part);
    if OF_DUEL.iter().any(|part| is_wanted(&part)) {
        let mut duel = duel::Duel::open(&bench, &older).await?;
        for _ in 0..rounds {
            let [of_older, of_newer] = duel.round(&bench).await?;
            add(&mut pairs, of_older, false);
            add(&mut pairs, of_newer, true);
        }
        duel.close().await?;
    }
    // The store that is searched is this program's own and not that of a binary.
    let rest = parts.iter().filter(|part| !OF_DUEL.contains(part) && **part != "search");
    for part in rest {
        for round in 0..rounds {
            // Each binary goes first in every other round, so that neither always meets the warmer machine.
            for is_newer in [round % 2 == 0, round % 2 != 0] {
                bench.binary = if is_newer { newer.clone() } else { older.clone() };
                let mut figures = Vec::new();
                sections(&bench, &[part], |section| figures.extend(section.figures)).await?;
                add(&mut pairs, figures, is_newer);
            }
        }
    }
    Ok(table(&pairs, &older, rounds))
}

fn add(pairs: &mut Vec<Pair>, figures: Vec<Figure>, is_newer: bool) {
    for figure in figures {
        let Figure { name, value, unit, is_rate } = figure;
        eprintln!("{}: {name} {value:.3} {unit}", if is_newer { "newer" } else { "older" });
        let index = pairs.iter().position(|pair| pair.name == name).unwrap_or_else(|| {
            let (older, newer) = (Samples::default(), Samples::default());
            pairs.push(Pair { name, unit, is_rate, older, newer });
            pairs.len() - 1
        });
        let pair = &mut pairs[index];
        if is_newer { &mut pair.newer } else { &mut pair.older }.add(value);
    }
}

fn table(pairs: &[Pair], older: &Path, rounds: usize) -> Section {
    let mut section = Section::new("Beside an older binary");
    section.note(&format!(
        "Medians of {rounds} rounds beside `{}`. A ratio above one is worse, for rates too. Times of turns and requests are \
         those of two servers that are up at once and take turns with every single request; the rest is measured with one \
         binary and then with the other.",
        older.file_name().unwrap_or_default().to_string_lossy()
    ));
    section.header(&["", "older", "newer", "ratio"]);
    for pair in pairs {
        let shown = |samples: &Samples| format!("{:.2} {}", samples.p50(), pair.unit);
        let ratio = pair.ratio();
        section.row([pair.name.clone(), shown(&pair.older), shown(&pair.newer), format!("{ratio:.2}×")]);
        section.target(if pair.name == duel::COMMAND {
            // Commands are confined more closely than before, and have a bound of their own.
            Target::at_most(&pair.name, pair.newer.p50(), 15.0, "ms")
        } else {
            Target::at_most(&pair.name, ratio, MOST, "×")
        });
    }
    section
}
