//! What is known about models: what they can read, and what they cost.

use std::collections::BTreeMap;
use std::num::NonZero;

use petasos_models::{Catalog, ModelFacts, Prices};

use super::file::{Compaction, Facts, Price, Share};
use super::providers::Providers;

pub(super) fn catalog(
    models: BTreeMap<String, Facts>,
    compaction: &Compaction,
    providers: &Providers,
) -> Catalog {
    let mut catalog = Catalog::default();
    if let Some(Share(share)) = compaction.at {
        catalog.compact_at = share;
    }
    catalog.models = models.into_iter().map(|(name, facts)| (name, model_facts(&facts))).collect();
    catalog.vendors = providers.vendors.clone();
    for (provider, images) in &providers.images {
        let models = catalog.models.entry(format!("{provider}/*")).or_default();
        models.images.get_or_insert(*images);
    }
    catalog
}

fn model_facts(facts: &Facts) -> ModelFacts {
    let price = |Price(price): Price| price;
    ModelFacts {
        context_window: facts.context_window.map(NonZero::get),
        max_output_tokens: facts.max_output_tokens.map(NonZero::get),
        images: facts.images,
        files: facts.files,
        reasoning: facts.reasoning,
        prices: facts.prices.map(|prices| Prices {
            input: price(prices.input),
            output: price(prices.output),
            cached_input: prices.cached_input.map(price),
            cache_write: prices.cache_write.map(price),
        }),
    }
}
