//! What is known about models beside their names: how much they can read, and what they cost.

use std::collections::BTreeMap;

use petasos_core::model::Usage;

/// Tokens that a model can read unless more is known. Most models of the last years read at least this much.
const DEFAULT_WINDOW: u64 = 128_000;

/// What families of models can read, by the beginning of their names. The longest beginning wins.
const WINDOWS: &[(&str, u64)] = &[
    ("claude", 200_000),
    ("gemini", 1_000_000),
    ("gpt-3.5", 16_000),
    ("gpt-4", 8_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
];

/// What was configured about one model, or about all whose names begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModelFacts {
    /// Tokens that it can read.
    pub context_window: Option<u64>,
    /// What it costs.
    pub prices: Option<Prices>,
}

/// What a model costs, per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// For what it reads.
    pub input: f64,
    /// For what it writes.
    pub output: f64,
    /// For what it reads from the provider's cache; as any other input unless set.
    pub cached_input: Option<f64>,
    /// For what is written to the provider's cache; as any other input unless set.
    pub cache_write: Option<f64>,
}

impl Prices {
    /// What a use of the model costs, in billionths.
    pub fn cost_nanos(&self, usage: &Usage) -> u64 {
        let special = usage.cached_input_tokens.saturating_add(usage.cache_write_tokens);
        let parts = [
            (usage.input_tokens.saturating_sub(special), self.input),
            (usage.cached_input_tokens, self.cached_input.unwrap_or(self.input)),
            (usage.cache_write_tokens, self.cache_write.unwrap_or(self.input)),
            (usage.output_tokens, self.output),
        ];
        // A price of 1 for a million is a thousand billionths for one.
        parts.iter().map(|(tokens, price)| (*tokens as f64 * price * 1000.0).round() as u64).sum()
    }
}

/// What is known about models.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    /// What was configured, by `provider/model`; a name that ends in `*` stands for all that begin so.
    pub models: BTreeMap<String, ModelFacts>,
    /// The part of its window at which a context is compacted.
    pub compact_at: f64,
}

impl Default for Catalog {
    fn default() -> Self {
        Catalog { models: BTreeMap::new(), compact_at: 0.75 }
    }
}

impl Catalog {
    /// Tokens that a model, named as `provider/model`, can read.
    pub fn context_window(&self, model: &str) -> u64 {
        if let Some(window) = self.find(model, |facts| facts.context_window) {
            return window;
        }
        // A gateway's names have the vendor before the model: `router/openai/gpt-5`.
        let name = model.rsplit('/').next().unwrap_or(model);
        let family = WINDOWS.iter().filter(|(family, _)| name.starts_with(family));
        family.max_by_key(|(family, _)| family.len()).map_or(DEFAULT_WINDOW, |(_, window)| *window)
    }

    /// Tokens at which the context of a model is compacted.
    pub fn compact_at(&self, model: &str) -> u64 {
        (self.context_window(model) as f64 * self.compact_at) as u64
    }

    /// What a use of a model costs, in billionths; none if its prices are not known.
    pub fn cost_nanos(&self, model: &str, usage: &Usage) -> Option<u64> {
        self.find(model, |facts| facts.prices).map(|prices| prices.cost_nanos(usage))
    }

    /// The fact about a model whose name fits best.
    fn find<T>(&self, model: &str, fact: impl Fn(&ModelFacts) -> Option<T>) -> Option<T> {
        let fits = self.models.iter().filter(|(name, _)| match name.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning),
            None => *name == model,
        });
        let known = fits.filter_map(|(name, facts)| Some((name, fact(facts)?)));
        // A whole name is longer than any beginning of it, but for the asterisk.
        known.max_by_key(|(name, _)| (!name.ends_with('*'), name.len())).map(|(_, fact)| fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(tokens: u64) -> ModelFacts {
        ModelFacts { context_window: Some(tokens), prices: None }
    }

    #[test]
    fn the_name_that_fits_best_counts() {
        let models = [("a/x*", window(1)), ("a/xyz*", window(2)), ("a/xy", window(3)), ("*", window(4))];
        let models = models.map(|(name, facts)| (name.to_owned(), facts)).into();
        let catalog = Catalog { models, ..Catalog::default() };
        let found = ["a/x1", "a/xyz9", "a/xy", "b/claude-5"].map(|model| catalog.context_window(model));
        assert_eq!(found, [1, 2, 3, 4]);
    }

    #[test]
    fn families_are_known_by_their_names() {
        let catalog = Catalog::default();
        assert_eq!(catalog.context_window("anthropic/claude-opus-4-5"), 200_000);
        assert_eq!(catalog.context_window("router/openai/gpt-4.1-mini"), 1_000_000);
        assert_eq!(catalog.context_window("local/whatever"), 128_000);
        assert_eq!(catalog.compact_at("local/whatever"), 96_000);
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let prices = Prices { input: 3.0, output: 15.0, cached_input: Some(0.3), cache_write: Some(3.75) };
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 100_000,
            cached_input_tokens: 500_000,
            cache_write_tokens: 200_000,
            cost_nanos: None,
        };
        // 300,000 at 3, 500,000 at 0.3, 200,000 at 3.75 and 100,000 at 15.
        assert_eq!(prices.cost_nanos(&usage), 3_300_000_000);
        let plain = Prices { cached_input: None, cache_write: None, ..prices };
        assert_eq!(plain.cost_nanos(&usage), 4_500_000_000);
    }
}
