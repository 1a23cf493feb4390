//! `petasos routines` and `petasos runs`.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Format;
use crate::api::{Api, ITEMS, Listing, path_below};
use crate::args::{RoutinesCommand, RunsCommand};
use crate::table::{field, fields, plain};

/// Does what the command says about routines.
pub(crate) async fn run(api: &Api, command: RoutinesCommand, format: Format) -> Result<()> {
    let path = |parts: &[&str]| path_below("/routines", parts);
    match command {
        RoutinesCommand::List => {
            let mut routines = api.get(&path(&[]), &[]).await?;
            let data = routines["items"].as_array_mut().context("the server's answer has no items")?;
            let listing = Listing { data: std::mem::take(data), next_cursor: Value::Null, names: ITEMS };
            format.show_list(&listing, "routines", &["ID", "TITLE", "SCHEDULE", "UPDATED"], routine_row)
        }
        RoutinesCommand::Show { id } => format.show(&api.get(&path(&[&id]), &[]).await?, routine_text),
        RoutinesCommand::Trigger { id, input, callback_url, session, idempotency_key } => {
            let input: Value = serde_json::from_str(&input).context("--input is not JSON")?;
            let mut body = json!({ "input": input, "callback_url": callback_url });
            for (name, value) in [("session_id", session), ("idempotency_key", idempotency_key)] {
                if let Some(value) = value {
                    body[name] = value.into();
                }
            }
            format.show(&api.post(&path(&[&id, "trigger"]), &body).await?, run_text)
        }
        RoutinesCommand::Runs { id, list } => {
            let listing = api.list_named(&path(&[&id, "runs"]), &[], list.limit.get(), ITEMS).await?;
            format.show_list(
                &listing,
                "runs",
                &["ID", "STATUS", "ERROR", "CALLBACK", "CREATED", "COMPLETED"],
                run_row,
            )
        }
        RoutinesCommand::Delete { id } => {
            api.delete(&path(&[&id])).await?;
            format
                .show(&json!({ "id": id, "deleted": true }), |gone| format!("Deleted {}", field(gone, "id")))
        }
    }
}

/// Does what the command says about runs.
pub(crate) async fn runs(api: &Api, command: RunsCommand, format: Format) -> Result<()> {
    let path = |parts: &[&str]| path_below("/runs", parts);
    let run = match command {
        RunsCommand::Show { id } => api.get(&path(&[&id]), &[]).await?,
        RunsCommand::Cancel { id } => api.post(&path(&[&id, "cancel"]), &json!({})).await?,
    };
    format.show(&run, run_text)
}

fn routine_row(routine: &Value) -> Vec<String> {
    let schedule = field(&routine["schedule"], "cron");
    vec![field(routine, "id"), field(routine, "title"), schedule, field(routine, "updated_at")]
}

fn routine_text(routine: &Value) -> String {
    let head = [
        ("id", "id"),
        ("title", "title"),
        ("description", "description"),
        ("agent", "agent"),
        ("timeout", "timeout_seconds"),
        ("model calls", "max_engine_iterations"),
        ("tool errors", "on_tool_error"),
        ("updated", "updated_at"),
    ];
    fields(routine, &head)
}

fn run_row(run: &Value) -> Vec<String> {
    vec![
        field(run, "run_id"),
        field(run, "status"),
        field(&run["error"], "code"),
        field(&run["callback"], "status"),
        field(run, "created_at"),
        field(run, "completed_at"),
    ]
}

fn run_text(run: &Value) -> String {
    let head = [
        ("id", "run_id"),
        ("routine", "routine_id"),
        ("status", "status"),
        ("session", "session_id"),
        ("key", "idempotency_key"),
        ("created", "created_at"),
        ("started", "started_at"),
        ("completed", "completed_at"),
    ];
    let mut text = fields(run, &head);
    for (label, value) in
        [("output", &run["output"]), ("error", &run["error"]), ("callback", &run["callback"])]
    {
        if !value.is_null() {
            text.push_str(&plain(&format!("\n{label:<12}  {value}")));
        }
    }
    text
}
