//! Commands that talk to a server. Each file is one noun.

pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod backup;
pub(crate) mod deliveries;
pub(crate) mod grants;
pub(crate) mod keys;
mod model_test;
pub(crate) mod models;
pub(crate) mod of_plugin;
pub(crate) mod plugins;
pub(crate) mod routines;
pub(crate) mod sessions;
mod transfer;

use anyhow::Result;
use serde_json::Value;

use crate::api::Listing;
use crate::output;
use crate::table::Table;

/// How a command shows what it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// As the server sent it.
    Json,
}

impl Format {
    /// The format that `--json` asks for.
    pub(crate) fn from_flag(json: bool) -> Self {
        if json { Format::Json } else { Format::Text }
    }

    /// Shows one thing: as JSON, or as `text` makes it.
    fn show(self, value: &Value, text: impl FnOnce(&Value) -> String) -> Result<()> {
        match self {
            Format::Json => output::json(value),
            Format::Text => output::line(&text(value)),
        }
    }

    /// Shows a list: as JSON, or as a table with a row for each entry.
    fn show_list(
        self,
        listing: &Listing,
        what: &str,
        headings: &[&str],
        row: impl Fn(&Value) -> Vec<String>,
    ) -> Result<()> {
        if self == Format::Json {
            return output::json(&listing.to_json());
        }
        if listing.data.is_empty() {
            output::note(&format!("There are no {what}."));
            return Ok(());
        }
        let mut table = Table::new(headings);
        for entry in &listing.data {
            table.row(row(entry));
        }
        output::line(&table.render(output::width()))?;
        if listing.has_more() {
            output::note(&format!("There are more {what}; show them with a larger --limit."));
        }
        Ok(())
    }
}
