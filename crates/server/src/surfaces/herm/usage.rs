//! What sessions and agents used, and what it cost.

use axum::Json;
use axum::extract::{Path, State};
use axum::routing;
use jiff::Timestamp;
use jiff::civil::Date;
use petasos_core::key::KeyScope;
use petasos_core::model;
use petasos_core::spending::{DailyUsage, NANOS, day_of};
use petasos_engine::Engine;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::auth::ReadsAgents;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;

pub(super) fn api() -> Api {
    let day = json!({ "type": "string", "format": "date" });
    let about = "What an agent used on each day, in UTC. Days on which it used nothing are left out.";
    Api::default().get(
        "/v1/agents/{agentId}/usage",
        routing::get(of_agent),
        Operation::new::<AgentUsage>("getAgentUsage", about, KeyScope::AgentsRead)
            .query("from", "The first day; that of this month unless given.", day.clone())
            .query("to", "The last day; today unless given.", day),
    )
}

/// What model calls used.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    input_tokens: u64,
    output_tokens: u64,
    cached_input_tokens: u64,
    model_calls: u64,
    /// In the currency of the configured prices; absent if no price was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

impl Usage {
    pub(super) fn new(usage: &model::Usage, model_calls: u64) -> Self {
        Usage {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_input_tokens: usage.cached_input_tokens,
            model_calls,
            cost: usage.cost_nanos.map(|nanos| nanos as f64 / NANOS),
        }
    }
}

/// What an agent used.
#[derive(Serialize, JsonSchema)]
struct AgentUsage {
    /// Day by day, oldest first.
    data: Vec<Day>,
    /// All of these days together.
    total: Usage,
}

/// What an agent used on one day.
#[derive(Serialize, JsonSchema)]
struct Day {
    date: String,
    usage: Usage,
}

async fn of_agent(
    State(engine): State<Engine>,
    ReadsAgents(tenant): ReadsAgents,
    Path(agent): Path<String>,
    query: Query,
) -> Result<Json<AgentUsage>, Problem> {
    let expected = "a day, as in 2026-01-31";
    let to = query.parsed("to", expected)?.unwrap_or_else(|| day_of(Timestamp::now()));
    let from = query.parsed("from", expected)?.unwrap_or_else(|| to.first_of_month());
    let days = engine.agent_usage(&tenant, &id("agent", &agent)?, from, to).await?;
    Ok(Json(AgentUsage::of(&days)))
}

impl AgentUsage {
    fn of(days: &[DailyUsage]) -> Self {
        let mut total = model::Usage::default();
        days.iter().for_each(|day| total += day.usage);
        let day =
            |day: &DailyUsage| Day { date: date(day.day), usage: Usage::new(&day.usage, day.model_calls) };
        let calls = days.iter().map(|day| day.model_calls).sum();
        AgentUsage { data: days.iter().map(day).collect(), total: Usage::new(&total, calls) }
    }
}

fn date(day: Date) -> String {
    day.to_string()
}
