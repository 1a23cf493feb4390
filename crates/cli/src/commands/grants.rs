//! `petasos grants`.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Format;
use crate::api::{Api, DATA, Listing, path};
use crate::args::{GrantsCommand, WhoseArgs};
use crate::table::{field, plain};

/// Does what the command says.
pub(crate) async fn run(api: &Api, command: GrantsCommand, format: Format) -> Result<()> {
    match command {
        GrantsCommand::List { whose } => {
            let mut grants = api.get(&path(&["agents", &whose.agent, "grants"]), &query(&whose)).await?;
            let data = grants["data"].as_array_mut().context("the server's answer has no data")?;
            let listing = Listing { data: std::mem::take(data), next_cursor: Value::Null, names: DATA };
            format.show_list(&listing, "grants", &["ID", "USER", "TOOL", "PATTERN", "REASONS"], row)
        }
        GrantsCommand::Revoke { whose, grant } => {
            let revoked =
                api.delete_with(&path(&["agents", &whose.agent, "grants", &grant]), &query(&whose)).await?;
            format.show(&revoked, |revoked| format!("Revoked {}", plain(&field(revoked, "id"))))
        }
    }
}

fn query(whose: &WhoseArgs) -> Vec<(&str, &str)> {
    whose.user.iter().map(|user| ("userId", user.as_str())).collect()
}

fn row(grant: &Value) -> Vec<String> {
    let reasons = grant["reasons"].as_array().into_iter().flatten().filter_map(Value::as_str);
    vec![
        field(grant, "id"),
        field(grant, "userId"),
        field(grant, "tool"),
        field(grant, "pattern"),
        reasons.collect::<Vec<_>>().join(","),
    ]
}
