//! `petasos sessions`.

use anyhow::Result;
use serde_json::{Value, json};

use super::Format;
use super::transfer::{self, ImportAs};
use crate::api::{Api, path};
use crate::args::{SessionFilterArgs, SessionsCommand};
use crate::output;
use crate::table::{field, fields, plain};

/// Does what the command says.
pub(crate) async fn run(api: &Api, command: SessionsCommand, format: Format) -> Result<()> {
    match command {
        SessionsCommand::List { filter, list } => {
            let listing = api.list(&path(&["sessions"]), &query(&filter), list.limit.get()).await?;
            // What matters most comes first: a terminal that is too narrow cuts off the rest.
            let headings = ["ID", "STATUS", "UPDATED", "TITLE", "AGENT", "USER"];
            format.show_list(&listing, "sessions", &headings, row)
        }
        SessionsCommand::Get { id } => format.show(&api.get(&path(&["sessions", &id]), &[]).await?, text),
        SessionsCommand::Events { id, list } => {
            let listing = api.list(&path(&["sessions", &id, "events"]), &[], list.limit.get()).await?;
            let headings = ["SEQUENCE", "CREATED", "TYPE", "WHAT"];
            format.show_list(&listing, "events", &headings, event_row)
        }
        SessionsCommand::Export { id, file } => transfer::export(api, &id, file.as_deref(), format).await,
        SessionsCommand::Import { file, new_id } => {
            let import_as = if new_id { ImportAs::Another } else { ImportAs::Itself };
            transfer::import(api, &file, import_as, format).await
        }
        SessionsCommand::Archive { id } => {
            let session = api.post(&path(&["sessions", &id, "archive"]), &json!({})).await?;
            format.show(&session, |session| format!("Archived {}", field(session, "id")))
        }
        SessionsCommand::Delete { id } => {
            let answer = api.delete(&path(&["sessions", &id])).await?;
            match format {
                Format::Json if !answer.is_null() => output::json(&answer),
                Format::Json => output::json(&json!({ "id": id, "deleted": true })),
                Format::Text => output::line(&format!("Deleted {}", plain(&id))),
            }
        }
    }
}

fn query(filter: &SessionFilterArgs) -> Vec<(&str, &str)> {
    let given = [
        ("agentId", filter.agent.as_deref()),
        ("userId", filter.user.as_deref()),
        ("status", filter.status.map(|status| status.as_str())),
        ("includeArchived", filter.archived.then_some("true")),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn row(session: &Value) -> Vec<String> {
    let agent = format!("{} v{}", field(session, "agentId"), field(session, "agentVersion"));
    vec![
        field(session, "id"),
        status(session),
        field(session, "updatedAt"),
        field(session, "title"),
        agent,
        field(session, "userId"),
    ]
}

/// Whether a session is at work, at rest, put away, or waits for somebody.
fn status(session: &Value) -> String {
    let waits = session["stopReason"]["type"] == "requires_action";
    match field(session, "status").as_str() {
        _ if !session["archivedAt"].is_null() => "archived".to_owned(),
        "idle" if waits => "waiting".to_owned(),
        status => status.to_owned(),
    }
}

fn text(session: &Value) -> String {
    let head = [
        ("id", "id"),
        ("title", "title"),
        ("agent", "agentId"),
        ("version", "agentVersion"),
        ("user", "userId"),
        ("status", "status"),
        ("created", "createdAt"),
        ("updated", "updatedAt"),
        ("archived", "archivedAt"),
        ("stopped", "stopReason"),
        ("usage", "usage"),
    ];
    let mut text = fields(session, &head);
    for action in session["pendingActions"].as_array().into_iter().flatten() {
        let line = format!("\nwaits for  {} {}", field(action, "type"), field(action, "id"));
        text.push_str(&plain(&line));
    }
    for message in session["messages"].as_array().into_iter().flatten() {
        let line = format!("\n\n{}: {}", field(message, "role"), field(message, "content"));
        text.push_str(&plain(&line));
    }
    text
}

fn event_row(event: &Value) -> Vec<String> {
    vec![field(event, "sequence"), field(event, "createdAt"), field(event, "type"), gist(&event["payload"])]
}

/// What an event says, in short: its text, else the other fields of its payload.
fn gist(payload: &Value) -> String {
    let texts: Vec<&str> = payload["content"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|block| block["text"].as_str())
        .collect();
    if !texts.is_empty() {
        return texts.concat();
    }
    let others = payload.as_object().into_iter().flatten().filter(|(name, _)| name.as_str() != "type");
    others.map(|(name, _)| format!("{name}={}", field(payload, name))).collect::<Vec<_>>().join(" ")
}
