//! `petasos agents`.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Format;
use crate::agent_files::{check_keys, remove_added};
use crate::api::{Api, path};
use crate::args::AgentsCommand;
use crate::table::{field, fields};
use crate::yaml;

/// Does what the command says.
pub(crate) async fn run(api: &Api, command: AgentsCommand, format: Format) -> Result<()> {
    match command {
        AgentsCommand::List(list) => {
            let listing = api.list(&path(&["agents"]), &[], list.limit.get()).await?;
            format.show_list(&listing, "agents", &HEADINGS, row)
        }
        AgentsCommand::Get { id, version } => {
            let version = version.map(|version| version.to_string());
            let query: Vec<_> = version.iter().map(|version| ("version", version.as_str())).collect();
            format.show(&api.get(&path(&["agents", &id]), &query).await?, text)
        }
        AgentsCommand::Create { file } => {
            let mut definition = read_definition(&file)?;
            definition.as_object_mut().into_iter().for_each(remove_added);
            format.show(&api.post(&path(&["agents"]), &definition).await?, text)
        }
        AgentsCommand::Update { id, file } => {
            let change = read_definition(&file)?;
            format.show(&api.patch(&path(&["agents", &id]), &change).await?, text)
        }
        AgentsCommand::Versions { id, list } => {
            let listing = api.list(&path(&["agents", &id, "versions"]), &[], list.limit.get()).await?;
            format.show_list(&listing, "versions", &HEADINGS, row)
        }
        AgentsCommand::Archive { id } => {
            format.show(&api.post(&path(&["agents", &id, "archive"]), &json!({})).await?, text)
        }
    }
}

const HEADINGS: [&str; 6] = ["ID", "VERSION", "NAME", "MODEL", "UPDATED", "ARCHIVED"];

fn row(agent: &Value) -> Vec<String> {
    ["id", "version", "name", "model", "updatedAt", "archivedAt"].map(|name| field(agent, name)).to_vec()
}

fn text(agent: &Value) -> String {
    let head = [
        ("id", "id"),
        ("version", "version"),
        ("name", "name"),
        ("model", "model"),
        ("created", "createdAt"),
        ("updated", "updatedAt"),
        ("archived", "archivedAt"),
        ("instructions", "instructions"),
    ];
    let mut text = fields(agent, &head);
    for (label, name) in [("tools", "tools"), ("MCP servers", "mcpServers"), ("skills", "skills")] {
        let count = agent[name].as_array().map_or(0, Vec::len);
        if count > 0 {
            text.push_str(&format!("\n{label:<12}  {count} (see --json)"));
        }
    }
    text
}

/// Reads a definition, or a part of one, from a file or standard input. JSON is read as the YAML that it is.
fn read_definition(file: &Path) -> Result<Value> {
    let (name, text) = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
        ("standard input".to_owned(), text)
    } else {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
        (name, text)
    };
    let value: Value = if text.trim_start().starts_with('{') {
        serde_json::from_str(&text).with_context(|| format!("{name} is not valid JSON"))?
    } else {
        yaml::parse(&text, &name)?
    };
    let Some(keys) = value.as_object() else {
        bail!("{name} is not the definition of an agent: it must have fields such as name and model");
    };
    check_keys(keys, &text, Path::new(&name))?;
    Ok(value)
}
