//! What agents used, and bounds on what they may spend.

use jiff::civil::Date;
use petasos_core::budget::{Allowances, Budget};
use petasos_core::event::Failure;
use petasos_core::ids::{AgentId, TenantId};
use petasos_core::session::SessionHeader;
use petasos_core::spending::{DailyUsage, amount, day_of};

use crate::engine::{Engine, Shared, now};
use crate::error::Result;

impl Engine {
    /// What an agent used from one day to another, both included; days on which it used nothing are left out.
    pub async fn agent_usage(
        &self,
        tenant: &TenantId,
        id: &AgentId,
        from: Date,
        to: Date,
    ) -> Result<Vec<DailyUsage>> {
        self.agent(tenant, id, None).await?;
        Ok(self.shared.store.agent_usage(tenant, id, from, to).await?)
    }
}

/// Says why an agent may not call its model now, if it has spent what it may.
pub(crate) async fn check(
    shared: &Shared,
    header: &SessionHeader,
    allowances: &Allowances,
) -> std::result::Result<(), Failure> {
    let (day, month) = (shared.limits.agent_day_cost_nanos, shared.limits.agent_month_cost_nanos);
    if day.is_none() && month.is_none() {
        return Ok(());
    }
    let today = day_of(now());
    let read =
        shared.store.agent_usage(&header.tenant, &header.agent_id, today.first_of_month(), today).await;
    // A budget that nobody can count is used up.
    let days = read.map_err(|error| {
        tracing::error!(session_id = %header.id, %error, "what the agent spent cannot be read");
        let message =
            "What the agent spent cannot be read, so its budget cannot be kept; the server's log says why.";
        Failure { code: "server_error".to_owned(), message: message.to_owned() }
    })?;
    let cost = |day: &DailyUsage| day.usage.cost_nanos.unwrap_or(0);
    let spent_today = days.iter().filter(|day| day.day == today).map(cost).sum();
    let spent_this_month = days.iter().map(cost).sum();
    let raised = |budget: Budget, most: Option<u64>| most.map(|most| budget.raised(most, allowances));
    let (day, month) = (raised(Budget::AgentDay, day), raised(Budget::AgentMonth, month));
    within(Budget::AgentDay, day, spent_today, &header.agent_id)?;
    within(Budget::AgentMonth, month, spent_this_month, &header.agent_id)
}

fn within(
    budget: Budget,
    most: Option<u64>,
    spent: u64,
    agent_id: &AgentId,
) -> std::result::Result<(), Failure> {
    let Some(most) = most.filter(|most| spent >= *most) else { return Ok(()) };
    let (spent, most) = (amount(spent), amount(most));
    let period = if budget == Budget::AgentDay { "day" } else { "month" };
    let message = format!(
        "Agent {agent_id} spent {spent} of its budget of {most} for this {period} (in UTC); wait for the next one, or \
         raise limits.agent_{period}_cost."
    );
    Err(Failure { code: budget.code().to_owned(), message })
}
