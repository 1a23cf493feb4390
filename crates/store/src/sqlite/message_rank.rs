//! Which of some messages fit words best.
//!
//! The index could say so itself, but to do that it looks at every message of everybody that has one of the words. This
//! looks at the few that were found, with the same formula (BM25).

use std::collections::HashMap;

/// How soon more of the same word stops to count, and how much the length of a message counts.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// The order in which messages fit, best first. Of two that fit alike, the one that comes first stays first.
pub(super) fn best_first(words: &str, texts: &[&str]) -> Vec<usize> {
    let stems: Vec<String> = tokens(words).filter(|word| word != "or").map(|word| stem(&word)).collect();
    let counted: Vec<Counted> = texts.iter().map(|text| count(&stems, text)).collect();
    let all = counted.len() as f64;
    let length = counted.iter().map(|text| text.length).sum::<f64>() / all.max(1.0);
    let rarity: Vec<f64> = (0..stems.len())
        .map(|word| {
            let having = counted.iter().filter(|text| text.times.contains_key(&word)).count() as f64;
            (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
        })
        .collect();
    let score = |text: &Counted| -> f64 {
        let long = 1.0 - LENGTH + LENGTH * text.length / length.max(1.0);
        text.times.iter().map(|(word, times)| rarity[*word] * times / (times + SATURATION * long)).sum()
    };
    let mut order: Vec<(usize, f64)> = counted.iter().map(score).enumerate().collect();
    order.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    order.into_iter().map(|(index, _)| index).collect()
}

/// How often a text has which words, by the place of the word.
struct Counted {
    times: HashMap<usize, f64>,
    length: f64,
}

fn count(stems: &[String], text: &str) -> Counted {
    let mut counted = Counted { times: HashMap::new(), length: 0.0 };
    for token in tokens(text) {
        counted.length += 1.0;
        for (word, _) in stems.iter().enumerate().filter(|(_, stem)| token.starts_with(stem.as_str())) {
            *counted.times.entry(word).or_default() += 1.0;
        }
    }
    counted
}

fn tokens(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// What the inflections of a word have in common, more or less: they were found by the index, and are only weighed here.
fn stem(word: &str) -> String {
    let count = word.chars().count();
    word.chars().take(if count > 5 { count - count / 3 } else { count }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_words_rarer_words_and_shorter_messages_come_first() {
        let best = |words: &str, texts: &[&str]| best_first(words, texts)[0];
        assert_eq!(best("tea", &["a long talk about many things and tea", "tea"]), 1);
        assert_eq!(best("tea", &["tea and milk", "tea tea tea"]), 1);
        assert_eq!(best("tea OR teapot", &["tea", "tea", "a teapot", "tea"]), 2);
        assert_eq!(best("deploying site", &["the site", "site deployment"]), 1);
        assert_eq!(best_first("zebra", &["a", "b"]), [0, 1]);
        assert!(best_first("tea", &[]).is_empty());
    }
}
