//! `petasos keys`.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Format;
use crate::api::{Api, DATA, Listing, path};
use crate::args::KeysCommand;
use crate::output;
use crate::table::{field, plain};

/// Does what the command says. The tenant is that of `--tenant`.
pub(crate) async fn run(api: &Api, command: KeysCommand, tenant: Option<&str>, format: Format) -> Result<()> {
    match command {
        KeysCommand::Create { name, scopes } => {
            let mut body = json!({ "name": name.unwrap_or_default() });
            if let Some(tenant) = tenant {
                body["tenant"] = tenant.into();
            }
            if !scopes.is_empty() {
                body["scopes"] = json!(scopes);
            }
            show_new(&api.post(&path(&["keys"]), &body).await?, format)
        }
        KeysCommand::List => {
            let query: Vec<_> = tenant.map(|tenant| ("tenant", tenant)).into_iter().collect();
            let mut keys = api.get(&path(&["keys"]), &query).await?;
            let data = keys["data"].as_array_mut().context("the server's answer has no data")?;
            let listing = Listing { data: std::mem::take(data), next_cursor: Value::Null, names: DATA };
            let headings = ["ID", "NAME", "TENANT", "SCOPES", "CREATED", "REVOKED"];
            format.show_list(&listing, "keys", &headings, row)
        }
        KeysCommand::Revoke { id } => {
            let key = api.delete(&path(&["keys", &id])).await?;
            format.show(&key, |key| {
                format!("Revoked {} {}", field(key, "id"), plain(&field(key, "name"))).trim_end().to_owned()
            })
        }
    }
}

/// Shows a new key: alone on standard output, so that a script can take it.
fn show_new(key: &Value, format: Format) -> Result<()> {
    if format == Format::Text {
        output::note(&format!(
            "Made {} for tenant {}, with {}. This is the only time that it is shown:",
            field(key, "id"),
            field(key, "tenant"),
            scopes(key)
        ));
    }
    format.show(key, |key| field(key, "key"))
}

fn row(key: &Value) -> Vec<String> {
    vec![
        field(key, "id"),
        field(key, "name"),
        field(key, "tenant"),
        scopes(key),
        field(key, "createdAt"),
        field(key, "revokedAt"),
    ]
}

fn scopes(key: &Value) -> String {
    let scopes = key["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    scopes.collect::<Vec<_>>().join(",")
}
