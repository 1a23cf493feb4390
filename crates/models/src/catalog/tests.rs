use super::*;

fn window(tokens: u64) -> ModelFacts {
    ModelFacts { context_window: Some(tokens), ..ModelFacts::default() }
}

fn with(models: impl IntoIterator<Item = (&'static str, ModelFacts)>) -> Catalog {
    let models = models.into_iter().map(|(name, facts)| (name.to_owned(), facts)).collect();
    Catalog { models, ..Catalog::default() }
}

const MILLION: Usage = Usage {
    input_tokens: 1_000_000,
    output_tokens: 0,
    cached_input_tokens: 0,
    cache_write_tokens: 0,
    cost_nanos: None,
};

#[test]
fn the_name_that_fits_best_counts() {
    let catalog = with([("a/x*", window(1)), ("a/xyz*", window(2)), ("a/xy", window(3)), ("*", window(4))]);
    let found = ["a/x1", "a/xyz9", "a/xy", "b/claude-5"].map(|model| catalog.context_window(model));
    assert_eq!(found, [1, 2, 3, 4]);
}

#[test]
fn families_are_known_by_their_names() {
    let catalog = Catalog::default();
    assert_eq!(catalog.context_window("anthropic/claude-opus-4-5"), 200_000);
    assert_eq!(catalog.context_window("router/openai/gpt-4.1-mini"), 1_047_576);
    assert_eq!(catalog.context_window("local/whatever"), 128_000);
    assert_eq!(catalog.compact_at("local/whatever"), 96_000);
    assert_eq!(catalog.max_output_tokens("anthropic/claude-sonnet-4-5-20250929"), Some(64_000));
    assert_eq!(catalog.max_output_tokens("anthropic/claude-3-5-sonnet-20241022"), Some(8_192));
    assert_eq!(catalog.max_output_tokens("local/whatever"), None);
    assert_eq!(catalog.takes_images("openai/o3-mini"), Some(false));
    assert_eq!(catalog.takes_images("ollama/llama3.3:70b"), Some(false));
    assert_eq!(catalog.takes_images("openai/gpt-5-mini"), Some(true));
    assert_eq!(catalog.takes_images("local/whatever"), None);
    assert!(catalog.takes_files("gemini/gemini-2.5-pro") && !catalog.takes_files("local/whatever"));
    assert_eq!(catalog.facts("openai/o3").reasoning, Some(true));
}

#[test]
fn an_unknown_claude_can_write_long_answers() {
    let catalog = Catalog::default();
    for model in
        ["anthropic/claude-next-9", "router/anthropic/claude-9", "bedrock/eu.anthropic.claude-9-v1:0"]
    {
        assert!(catalog.max_output_tokens(model) >= Some(16_000), "{model}");
    }
}

#[test]
fn what_is_configured_lies_over_what_is_compiled_in_field_by_field() {
    let facts = ModelFacts { max_output_tokens: Some(9), files: Some(false), ..ModelFacts::default() };
    let catalog = with([("anthropic/claude-opus-4-5*", facts), ("anthropic/*", window(7))]);
    let found = catalog.facts("anthropic/claude-opus-4-5");
    assert_eq!((found.context_window, found.max_output_tokens), (Some(7), Some(9)));
    assert_eq!((found.images, found.files), (Some(true), Some(false)));
    assert_eq!(found.prices.map(|prices| prices.output), Some(25.0));
}

#[test]
fn compiled_in_prices_are_those_of_the_vendor_alone() {
    let mut catalog = Catalog::default();
    assert_eq!(catalog.cost_nanos("openai/gpt-4.1", &MILLION), Some(2_000_000_000));
    assert_eq!(catalog.cost_nanos("openai/gpt-4.1-mini-2025-04-14", &MILLION), Some(400_000_000));
    for model in ["openrouter/openai/gpt-4.1", "work/gpt-4.1", "openai/gpt-99", "anthropic/claude-next"] {
        assert_eq!(catalog.cost_nanos(model, &MILLION), None, "{model}");
    }
    catalog.vendors.insert("work".to_owned(), "openai".to_owned());
    assert_eq!(catalog.cost_nanos("work/gpt-4.1", &MILLION), Some(2_000_000_000));
    let free = Prices { input: 0.0, output: 0.0, cached_input: None, cache_write: None };
    catalog.models.insert("openai/*".to_owned(), ModelFacts { prices: Some(free), ..ModelFacts::default() });
    assert_eq!(catalog.cost_nanos("openai/gpt-4.1", &MILLION), Some(0));
}

#[test]
fn a_context_is_compacted_while_the_longest_answer_still_fits() {
    let catalog = Catalog::default();
    // 75 % of 200,000 would leave 50,000 tokens of the 64,000 that an answer can have.
    assert_eq!(catalog.compact_at("anthropic/claude-sonnet-4-5"), 136_000);
    assert_eq!(catalog.compact_at("anthropic/claude-opus-4-1"), 150_000);
    let writes_all = ModelFacts { max_output_tokens: Some(100), ..window(100) };
    assert_eq!(with([("a/b", writes_all)]).compact_at("a/b"), 75);
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
