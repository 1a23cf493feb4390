//! Counts what sessions do, for whoever watches the server, and says in the log which turns failed.
//!
//! Counting never decides anything, and neither labels nor the log hold what a user wrote.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use petasos_core::budget::Budget;
use petasos_core::event::{Event, Payload, StopReason, ToolUse};
use petasos_core::spending::NANOS;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// What the engine counts. Clones share the counts.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Those that are configured.
    providers: Arc<BTreeSet<String>>,
    events: Counter,
    turns: Family<Outcome, Counter>,
    model_calls: Family<ProviderOutcome, Counter>,
    tokens: Family<ProviderTokens, Counter>,
    model_seconds: Family<Provider, Histogram>,
    first_token_seconds: Family<Provider, Histogram>,
    tool_calls: Family<Outcome, Counter>,
    cost: Family<Provider, Counter<f64, AtomicU64>>,
    budgets: Family<BudgetOutcome, Counter>,
    expired: Counter,
    deliveries: Family<Outcome, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BudgetOutcome {
    budget: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Provider {
    provider: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderOutcome {
    provider: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderTokens {
    provider: String,
    kind: &'static str,
}

impl Metrics {
    /// Counts nothing yet. Model calls are counted under the names of these providers.
    pub(crate) fn new(providers: Vec<&str>) -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.01, 2.0, 16));
        Metrics {
            providers: Arc::new(providers.into_iter().map(str::to_owned).collect()),
            events: Counter::default(),
            turns: Family::default(),
            model_calls: Family::default(),
            tokens: Family::default(),
            model_seconds: Family::new_with_constructor(seconds),
            first_token_seconds: Family::new_with_constructor(seconds),
            tool_calls: Family::default(),
            cost: Family::default(),
            budgets: Family::default(),
            expired: Counter::default(),
            deliveries: Family::default(),
        }
    }

    /// Puts everything into a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("petasos_events_appended", "Events appended to logs", self.events.clone());
        registry.register("petasos_turns", "Turns that ended or paused, by how", self.turns.clone());
        registry.register("petasos_model_calls", "Model calls that ended, by how", self.model_calls.clone());
        registry.register("petasos_tokens", "Tokens of model calls, by kind", self.tokens.clone());
        let about = "Cost of model calls whose prices are configured, in the currency of the prices";
        registry.register("petasos_cost", about, self.cost.clone());
        let about = "Seconds from the start of a model call to its end, retries included";
        registry.register("petasos_model_call_seconds", about, self.model_seconds.clone());
        let about = "Seconds from the start of a model call to its first text or reasoning";
        registry.register("petasos_first_token_seconds", about, self.first_token_seconds.clone());
        let about = "Budgets that were used up, by whether the turn paused or stopped";
        registry.register("petasos_budgets_used_up", about, self.budgets.clone());
        let about = "Pending actions that nobody answered in time";
        registry.register("petasos_actions_expired", about, self.expired.clone());
        registry.register("petasos_tool_calls", "Tool calls that ended, by how", self.tool_calls.clone());
        let about = "Attempts to deliver, by what they came to";
        registry.register("petasos_deliveries", about, self.deliveries.clone());
    }

    /// Counts what was appended.
    pub(crate) fn count(&self, events: &[Event]) {
        self.events.inc_by(events.len() as u64);
        for event in events {
            match &event.payload {
                Payload::StatusIdle(idle) => {
                    let outcome = match &idle.stop_reason {
                        StopReason::EndTurn { interrupted: true, .. } => "interrupted",
                        StopReason::EndTurn { reason: Some(_), .. } => "cut_short",
                        StopReason::EndTurn { .. } => "end_turn",
                        StopReason::Error { .. } => "error",
                        StopReason::RequiresAction { .. } => "paused",
                    };
                    self.turns.get_or_create(&Outcome { outcome }).inc();
                    if let StopReason::Error { code, .. } = &idle.stop_reason {
                        // Without its message, which may hold what a provider or a user said.
                        tracing::warn!(session_id = %event.session_id, code, "a turn ended with an error");
                        if let Some(budget) = Budget::of_code(code) {
                            self.budget(budget, "stopped");
                        }
                    }
                }
                Payload::ModelFinished(finished) => {
                    let provider = self.provider_of(&finished.model);
                    let outcome = if finished.error.is_some() { "error" } else { "ok" };
                    self.model_calls
                        .get_or_create(&ProviderOutcome { provider: provider.clone(), outcome })
                        .inc();
                    let usage = finished.usage;
                    if let Some(nanos) = usage.cost_nanos {
                        let provider = Provider { provider: provider.clone() };
                        self.cost.get_or_create(&provider).inc_by(nanos as f64 / NANOS);
                    }
                    for (kind, count) in [
                        ("input", usage.input_tokens),
                        ("cached_input", usage.cached_input_tokens),
                        ("output", usage.output_tokens),
                    ] {
                        self.tokens
                            .get_or_create(&ProviderTokens { provider: provider.clone(), kind })
                            .inc_by(count);
                    }
                }
                Payload::ToolUse(ToolUse { budget: Some(budget), .. }) => self.budget(*budget, "paused"),
                Payload::ActionExpired(_) => drop(self.expired.inc()),
                Payload::ToolResult(result) | Payload::McpToolResult(result) => {
                    let outcome = if result.is_error { "error" } else { "ok" };
                    self.tool_calls.get_or_create(&Outcome { outcome }).inc();
                }
                _ => {}
            }
        }
    }

    fn budget(&self, budget: Budget, outcome: &'static str) {
        self.budgets.get_or_create(&BudgetOutcome { budget: budget.code(), outcome }).inc();
    }

    /// An attempt to deliver ended: `delivered`, `failed` or `dead`.
    pub(crate) fn delivery(&self, outcome: &'static str) {
        self.deliveries.get_or_create(&Outcome { outcome }).inc();
    }

    /// The model said its first word.
    pub(crate) fn first_token(&self, model: &str, after: Duration) {
        let provider = self.provider_of(model);
        self.first_token_seconds.get_or_create(&Provider { provider }).observe(after.as_secs_f64());
    }

    /// The model call is over.
    pub(crate) fn model_call(&self, model: &str, took: Duration) {
        let provider = self.provider_of(model);
        self.model_seconds.get_or_create(&Provider { provider }).observe(took.as_secs_f64());
    }

    /// The provider of `provider/model`. A call that an interrupt cut off has no model in the log. Whoever makes agents
    /// can make up a provider, and each label takes memory for good.
    fn provider_of(&self, model: &str) -> String {
        match model.split_once('/') {
            Some((provider, _)) if self.providers.contains(provider) => provider.to_owned(),
            Some(_) => "unknown".to_owned(),
            None => "interrupted".to_owned(),
        }
    }
}
