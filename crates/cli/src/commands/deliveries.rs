//! `petasos deliveries`.

use anyhow::Result;
use serde_json::{Value, json};

use super::Format;
use crate::api::{Api, ITEMS, path_below};
use crate::args::{DeliveriesCommand, DeliveryFilterArgs};
use crate::table::{field, fields, plain};

/// Does what the command says.
pub(crate) async fn run(api: &Api, command: DeliveriesCommand, format: Format) -> Result<()> {
    match command {
        DeliveriesCommand::List { filter, list } => {
            let listing = api.list_named(&path(&[]), &query(&filter), list.limit.get(), ITEMS).await?;
            let headings = ["ID", "STATUS", "WEBHOOK ID", "ATTEMPTS", "LAST", "NEXT", "URL"];
            format.show_list(&listing, "deliveries", &headings, row)
        }
        DeliveriesCommand::Show { id } => format.show(&api.get(&path(&[&id]), &[]).await?, text),
        DeliveriesCommand::Replay { id } => {
            let replay = api.post(&path(&[&id, "replay"]), &json!({})).await?;
            format.show(&replay, |replay| {
                format!("Delivers {} again, as {}", field(replay, "replay_of"), field(replay, "id"))
            })
        }
        DeliveriesCommand::Credentials => {
            let credentials = api.get(&path(&["credentials"]), &[]).await?;
            format.show(&credentials, |shown| fields(shown, &[("token", "token"), ("secret", "secret")]))
        }
    }
}

fn path(parts: &[&str]) -> String {
    path_below("/deliveries", parts)
}

fn query(filter: &DeliveryFilterArgs) -> Vec<(&str, &str)> {
    let given = [
        ("status", filter.status.map(|status| status.as_str())),
        ("session_id", filter.session.as_deref()),
        ("run_id", filter.run.as_deref()),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn row(delivery: &Value) -> Vec<String> {
    let attempts = delivery["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    vec![
        field(delivery, "id"),
        field(delivery, "status"),
        field(delivery, "webhook_id"),
        attempts.len().to_string(),
        attempts.last().map(outcome).unwrap_or_default(),
        field(delivery, "next_attempt_at"),
        field(delivery, "url"),
    ]
}

/// What an attempt came to, in short.
fn outcome(attempt: &Value) -> String {
    let status = field(attempt, "status_code");
    if status.is_empty() { field(attempt, "error") } else { status }
}

fn text(delivery: &Value) -> String {
    let head = [
        ("id", "id"),
        ("kind", "kind"),
        ("status", "status"),
        ("session", "session_id"),
        ("run", "run_id"),
        ("offset", "offset"),
        ("webhook id", "webhook_id"),
        ("url", "url"),
        ("created", "created_at"),
        ("next attempt", "next_attempt_at"),
        ("replay of", "replay_of"),
    ];
    let mut text = fields(delivery, &head);
    for attempt in delivery["attempts"].as_array().into_iter().flatten() {
        let said = [field(attempt, "status_code"), field(attempt, "error")].join(" ");
        let line =
            format!("\n{}  {} ms  {}", field(attempt, "at"), field(attempt, "duration_ms"), said.trim());
        text.push_str(&plain(&line));
    }
    text
}
