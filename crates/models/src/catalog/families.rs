//! Families of models that are compiled in: one data file of ours, `families.json`.
//!
//! Each entry says when and where its facts were read. A fact without a source is left out.

use std::sync::LazyLock;

use serde::Deserialize;

use super::{ModelFacts, fits, rank};

/// Names that stand before a model's own name, as in `us.anthropic.claude-opus-4-5-20251101-v1:0` of Bedrock.
const PREFIXES: [&str; 13] = [
    "us",
    "eu",
    "apac",
    "global",
    "jp",
    "anthropic",
    "openai",
    "meta",
    "mistral",
    "deepseek",
    "moonshotai",
    "moonshot",
    "qwen",
];

static FAMILIES: LazyLock<Vec<Family>> =
    LazyLock::new(|| serde_json::from_str(include_str!("families.json")).unwrap_or_default());

/// Models that are alike in something.
#[derive(Debug, Deserialize)]
pub struct Family {
    /// Their names without a provider, in lower case; one that ends in `*` stands for all that begin so.
    pub names: Vec<String>,
    /// The preset under which the vendor itself serves them, at whose prices they are.
    pub vendor: Option<String>,
    /// What they have in common.
    #[serde(flatten)]
    pub facts: ModelFacts,
    /// The day on which that was read.
    pub read: String,
    /// Where it was read.
    pub from: String,
}

/// The families that a vendor serves itself, by the name of its preset.
pub fn families_of(vendor: &str) -> impl Iterator<Item = &'static Family> {
    FAMILIES.iter().filter(move |family| family.vendor.as_deref() == Some(vendor))
}

/// The fact about a model, named as `provider/model`, from the family whose name fits best.
pub(super) fn fact<T>(model: &str, fact: impl Fn(&Family) -> Option<T>) -> Option<T> {
    let model = own_name(model);
    let names = FAMILIES.iter().flat_map(|family| family.names.iter().map(move |name| (name, family)));
    let known = names.filter(|(name, _)| fits(name, &model));
    let known = known.filter_map(|(name, family)| Some((name, fact(family)?)));
    known.max_by_key(|(name, _)| rank(name)).map(|(_, fact)| fact)
}

/// A model's name without what gateways put before it: `router/openai/gpt-5` is `gpt-5`.
fn own_name(model: &str) -> String {
    let mut name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    while let Some((first, rest)) = name.split_once('.')
        && PREFIXES.contains(&first)
    {
        name = rest.to_owned();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_is_read_and_each_entry_names_its_source() {
        let families: Vec<Family> = serde_json::from_str(include_str!("families.json")).unwrap();
        assert_eq!(families.len(), FAMILIES.len());
        assert!(families.len() > 50);
        for family in &families {
            let date: Vec<&str> = family.read.split('-').collect();
            assert!(date.len() == 3 && date[0].len() == 4 && !family.from.is_empty(), "{family:?}");
            assert!(family.facts != ModelFacts::default() && !family.names.is_empty(), "{family:?}");
            assert!(family.vendor.is_some() || family.facts.prices.is_none(), "{family:?}");
            let vendor = family.vendor.as_deref();
            assert!(vendor.is_none_or(|vendor| crate::presets::named(vendor).is_some()), "{family:?}");
            let (window, output) = (family.facts.context_window, family.facts.max_output_tokens);
            assert!(window.zip(output).is_none_or(|(window, output)| output <= window), "{family:?}");
        }
    }

    #[test]
    fn what_gateways_put_before_a_name_is_left_out() {
        for (model, name) in [
            ("anthropic/claude-opus-4-5", "claude-opus-4-5"),
            ("router/openai/GPT-5", "gpt-5"),
            ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5-20250929-v1:0"),
            ("openai/gpt-4.1", "gpt-4.1"),
            ("openrouter/moonshotai/kimi-k2.5", "kimi-k2.5"),
        ] {
            assert_eq!(own_name(model), name);
        }
    }
}
