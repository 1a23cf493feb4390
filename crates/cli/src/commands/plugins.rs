//! `petasos plugins`: which plugins there are, and which are used.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use petasos_hooks::python::{Origin, Plugin, Status};
use serde_json::{Value, json};

use super::Format;
use crate::api::{DATA, Listing};
use crate::args::{PluginsArgs, PluginsCommand};
use crate::config::{Config, Want, edit_list};
use crate::env::Environment;
use crate::home::Home;
use crate::output;
use crate::table::field;
use crate::yaml;

/// Does what the command says.
pub(crate) fn run(args: PluginsArgs, environment: &Environment) -> Result<()> {
    let home = Home::find(args.home.data_dir.as_deref(), environment)?;
    let config = Config::read(args.home.config.as_deref(), &home, environment)?;
    let plugins = config.plugins.plugins(&home);
    let format = Format::from_flag(args.format.json);
    let file = args.home.config.clone().unwrap_or_else(|| home.config());
    match args.command {
        PluginsCommand::List => list(&plugins, &home, format),
        PluginsCommand::Enable { name, installed } => {
            let key = match plugins.iter().find(|plugin| plugin.is_called(&name)) {
                Some(plugin) => plugin.key.clone(),
                None if installed => name,
                None => bail!(missing(&name, &plugins, &home)),
            };
            change(&file, &key, [("disabled", Want::Out), ("enabled", Want::In)])?;
            tell(&key, "enabled", format)
        }
        PluginsCommand::Disable { name } => {
            let plugin = plugins.iter().find(|plugin| plugin.is_called(&name));
            let key =
                plugin.map(|plugin| plugin.key.clone()).with_context(|| missing(&name, &plugins, &home))?;
            change(&file, &key, [("enabled", Want::Out), ("disabled", Want::In)])?;
            tell(&key, "disabled", format)
        }
    }
}

fn list(plugins: &[Plugin], home: &Home, format: Format) -> Result<()> {
    if plugins.is_empty() && format == Format::Text {
        output::note(&format!("There are no plugins in {}.", home.plugins().display()));
        return Ok(());
    }
    let data = plugins.iter().map(shown).collect();
    let listing = Listing { data, next_cursor: Value::Null, names: DATA };
    let headings = ["PLUGIN", "VERSION", "STATUS", "FROM", "DESCRIPTION"];
    format.show_list(&listing, "plugins", &headings, |plugin| {
        let status = match field(plugin, "problem").as_str() {
            "" => field(plugin, "status"),
            problem => format!("{}: {problem}", field(plugin, "status")),
        };
        // Only the interpreter knows, and it is not started for a list.
        let origin = match field(plugin, "origin").as_str() {
            "installed" => "a package, if installed".to_owned(),
            origin => origin.to_owned(),
        };
        vec![field(plugin, "key"), field(plugin, "version"), status, origin, field(plugin, "description")]
    })
}

fn shown(plugin: &Plugin) -> Value {
    let (status, problem) = match &plugin.status {
        Status::Enabled => ("enabled", None),
        Status::Disabled => ("disabled", None),
        Status::NotEnabled => ("not enabled", None),
        Status::Broken(problem) => ("broken", Some(problem)),
    };
    let origin = match plugin.origin {
        Origin::Home => "home",
        Origin::Project => "project",
        Origin::Installed => "installed",
    };
    json!({
        "key": plugin.key,
        "name": plugin.name,
        "version": plugin.version,
        "description": plugin.description,
        "status": status,
        "problem": problem,
        "origin": origin,
    })
}

fn missing(name: &str, plugins: &[Plugin], home: &Home) -> String {
    let known: Vec<&str> = plugins.iter().map(|plugin| plugin.key.as_str()).collect();
    let unknown = yaml::unknown("plugin", name, &known);
    format!("{unknown}; look into {}, or use --installed for a Python package", home.plugins().display())
}

/// Changes lists of the section `plugins`, in one write.
fn change(file: &Path, key: &str, lists: [(&str, Want); 2]) -> Result<()> {
    // A link stays one.
    let path: PathBuf = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let before = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let mut text = before.clone();
    for (list, want) in lists {
        text = edit_list(&text, "plugins", list, key, want)?;
    }
    if text == before {
        return Ok(());
    }
    let permissions = fs::metadata(&path).ok().map(|metadata| metadata.permissions());
    crate::private_file::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    if let Some(permissions) = permissions {
        fs::set_permissions(&path, permissions)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn tell(key: &str, status: &str, format: Format) -> Result<()> {
    format.show(&json!({ "key": key, "status": status }), |_| {
        format!("{key} is {status}; a server that runs takes note when it is started again")
    })
}
