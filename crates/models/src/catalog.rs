//! What is known about models beside their names: what they read, write and take in, and what they cost.
//!
//! What was configured comes first, field by field; then the families of [`families`]. Nothing here asks a provider.

mod families;

use std::collections::BTreeMap;

use petasos_core::model::Usage;
use serde::Deserialize;

pub use self::families::{Family, families_of};

/// Tokens that a model can read unless more is known. Most models of the last years read at least this much.
const DEFAULT_WINDOW: u64 = 128_000;

/// What is known about one model, or about all whose names begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct ModelFacts {
    /// Tokens that it can read and write, both together.
    pub context_window: Option<u64>,
    /// The most tokens of one answer.
    pub max_output_tokens: Option<u64>,
    /// Whether it takes pictures.
    pub images: Option<bool>,
    /// Whether it takes files such as PDFs.
    pub files: Option<bool>,
    /// Whether it can think before it answers.
    pub reasoning: Option<bool>,
    /// What it costs.
    pub prices: Option<Prices>,
}

/// What a model costs, per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
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
    /// The vendor behind a provider that has another name than the vendor: its prices are the vendor's.
    pub vendors: BTreeMap<String, String>,
    /// The part of its window at which a context is compacted.
    pub compact_at: f64,
}

impl Default for Catalog {
    fn default() -> Self {
        Catalog { models: BTreeMap::new(), vendors: BTreeMap::new(), compact_at: 0.75 }
    }
}

impl Catalog {
    /// Tokens that a model, named as `provider/model`, can read.
    pub fn context_window(&self, model: &str) -> u64 {
        self.fact(model, |facts| facts.context_window).unwrap_or(DEFAULT_WINDOW)
    }

    /// The most tokens that an answer of a model can have, if that is known.
    pub fn max_output_tokens(&self, model: &str) -> Option<u64> {
        self.fact(model, |facts| facts.max_output_tokens)
    }

    /// Whether a model takes pictures, if that is known.
    pub fn takes_images(&self, model: &str) -> Option<bool> {
        self.fact(model, |facts| facts.images)
    }

    /// The same as far as it was configured, without the families that are compiled in.
    pub(crate) fn configured_images(&self, model: &str) -> Option<bool> {
        self.configured(model, |facts| facts.images)
    }

    /// Whether a model takes files such as PDFs. Of one that is not known nothing is expected: a file that goes to it
    /// as text is read in any case.
    pub fn takes_files(&self, model: &str) -> bool {
        self.fact(model, |facts| facts.files).unwrap_or(false)
    }

    /// Tokens at which the context of a model is compacted: a part of its window, and early enough that the longest
    /// answer still fits. Many vendors refuse a request that leaves less room than that.
    pub fn compact_at(&self, model: &str) -> u64 {
        let window = self.context_window(model);
        let share = (window as f64 * self.compact_at) as u64;
        match self.max_output_tokens(model) {
            // A model that can write as much as it reads shares its window between both as it likes.
            Some(output) if output <= window / 2 => share.min(window - output),
            _ => share,
        }
    }

    /// What a use of a model costs, in billionths; none if its prices are not known.
    pub fn cost_nanos(&self, model: &str, usage: &Usage) -> Option<u64> {
        self.prices(model).map(|prices| prices.cost_nanos(usage))
    }

    /// All that is known about a model.
    pub fn facts(&self, model: &str) -> ModelFacts {
        ModelFacts {
            context_window: self.fact(model, |facts| facts.context_window),
            max_output_tokens: self.max_output_tokens(model),
            images: self.takes_images(model),
            files: self.fact(model, |facts| facts.files),
            reasoning: self.fact(model, |facts| facts.reasoning),
            prices: self.prices(model),
        }
    }

    fn prices(&self, model: &str) -> Option<Prices> {
        let configured = self.configured(model, |facts| facts.prices);
        configured.or_else(|| {
            // A model costs what its vendor asks at the vendor only: other hosts have their own prices, and one's own
            // machine has none.
            let provider = model.split('/').next().unwrap_or_default();
            let vendor = self.vendors.get(provider).map_or(provider, String::as_str);
            families::fact(model, |family| {
                (family.vendor.as_deref() == Some(vendor)).then_some(family.facts.prices?)
            })
        })
    }

    fn fact<T>(&self, model: &str, fact: impl Fn(&ModelFacts) -> Option<T>) -> Option<T> {
        self.configured(model, &fact).or_else(|| families::fact(model, |family| fact(&family.facts)))
    }

    /// The configured fact about a model whose name fits best.
    fn configured<T>(&self, model: &str, fact: impl Fn(&ModelFacts) -> Option<T>) -> Option<T> {
        let known = self.models.iter().filter(|(name, _)| fits(name, model));
        let known = known.filter_map(|(name, facts)| Some((name, fact(facts)?)));
        known.max_by_key(|(name, _)| rank(name)).map(|(_, fact)| fact)
    }
}

/// Whether a name, or a beginning with an asterisk, is that of a model.
fn fits(name: &str, model: &str) -> bool {
    match name.strip_suffix('*') {
        Some(beginning) => model.starts_with(beginning),
        None => name == model,
    }
}

/// How well a name fits: a whole name is better than any beginning of it, and a longer one than a shorter one.
fn rank(name: &str) -> (bool, usize) {
    (!name.ends_with('*'), name.len())
}

#[cfg(test)]
mod tests;
