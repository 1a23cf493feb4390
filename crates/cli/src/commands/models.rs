//! `petasos models`: the configured providers, and whether a model works.
//!
//! It goes by the configuration and the environment of this command, as `doctor` does, and needs no server.

use anyhow::{Context, Result};
use petasos_models::{Catalog, Models, ProviderConfig, families_of};
use petasos_net::Client;
use serde_json::{Value, json};

use super::Format;
use super::model_test::{self, Outcome};
use crate::args::{ModelsArgs, ModelsCommand};
use crate::config::Config;
use crate::env::Environment;
use crate::home::Home;
use crate::output;
use crate::table::{Table, field, plain};

/// Does what the command says and returns the exit code.
pub(crate) async fn run(args: &ModelsArgs, environment: &Environment) -> Result<u8> {
    let home = Home::find(args.home.data_dir.as_deref(), environment)?;
    let config = Config::read(args.home.config.as_deref(), &home, environment)?;
    for warning in &config.warnings {
        output::note(&format!("warning: {}", plain(warning)));
    }
    let format = Format::from_flag(args.format.json);
    match &args.command {
        ModelsCommand::List => list(&config, format).map(|()| 0),
        ModelsCommand::Test { model } => test(config, model.as_deref(), format).await,
    }
}

fn list(config: &Config, format: Format) -> Result<()> {
    let rows: Vec<Value> =
        config.providers.iter().map(|(name, provider)| row(name, provider, &config.catalog)).collect();
    if format == Format::Json {
        return output::json(&json!({ "data": rows, "defaultModel": config.default_model }));
    }
    if rows.is_empty() {
        output::note(
            "There are no providers but demo. Set the key of one, such as ANTHROPIC_API_KEY: docs/models.md",
        );
        return Ok(());
    }
    let mut table = Table::new(&["PROVIDER", "KIND", "BASE URL", "KEY"]);
    for row in &rows {
        let key = if row["keySet"] == true { "set" } else { "not set" };
        table.row([field(row, "provider"), field(row, "kind"), field(row, "baseUrl"), key.to_owned()]);
    }
    output::line(&table.render(output::width()))?;
    let mut models = Table::new(&["MODEL", "READS", "WRITES", "TAKES", "PRICE IN/OUT"]);
    let known = rows.iter().flat_map(|row| row["models"].as_array().into_iter().flatten());
    let known: Vec<&Value> = known.collect();
    for model in &known {
        models.row(cells(model));
    }
    if !known.is_empty() {
        output::line(&format!("\n{}", models.render(output::width())))?;
    }
    Ok(())
}

/// A provider and the models that are known of it. No key is part of it.
fn row(name: &str, provider: &ProviderConfig, catalog: &Catalog) -> Value {
    let vendor = catalog.vendors.get(name).map_or(name, String::as_str);
    let families = families_of(vendor).flat_map(|family| &family.names);
    let mut models: Vec<String> = families.map(|family| format!("{name}/{family}")).collect();
    let beginning = format!("{name}/");
    models.extend(catalog.models.keys().filter(|model| model.starts_with(&beginning)).cloned());
    models.sort_unstable();
    models.dedup();
    json!({
        "provider": name,
        "kind": provider.kind.as_str(),
        "baseUrl": shown_url(&provider.base_url),
        "keySet": provider.has_key(),
        "models": models.iter().map(|model| facts(model, catalog)).collect::<Vec<_>>(),
    })
}

/// What is known about a model, or about all whose names begin so.
fn facts(name: &str, catalog: &Catalog) -> Value {
    let facts = catalog.facts(name.trim_end_matches('*'));
    let prices = facts.prices.map(|prices| {
        json!({ "input": prices.input, "output": prices.output, "cachedInput": prices.cached_input,
                "cacheWrite": prices.cache_write })
    });
    json!({
        "name": name,
        "contextWindow": facts.context_window,
        "maxOutputTokens": facts.max_output_tokens,
        "images": facts.images,
        "files": facts.files,
        "reasoning": facts.reasoning,
        "prices": prices,
    })
}

fn cells(model: &Value) -> Vec<String> {
    let takes = [("images", "images"), ("files", "files")];
    let takes: Vec<&str> =
        takes.iter().filter(|(name, _)| model[name] == true).map(|(_, word)| *word).collect();
    let prices = &model["prices"];
    let price = match prices.is_null() {
        true => String::new(),
        false => format!("{}/{}", prices["input"], prices["output"]),
    };
    vec![
        field(model, "name"),
        field(model, "contextWindow"),
        field(model, "maxOutputTokens"),
        takes.join(","),
        price,
    ]
}

/// A base URL without what may be a secret: its user and password, and the values of its query.
fn shown_url(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    path.map_or_else(|| format!("{scheme}://{host}"), |path| format!("{scheme}://{host}/{path}"))
}

async fn test(config: Config, model: Option<&str>, format: Format) -> Result<u8> {
    let model = model.map(str::to_owned).or(config.default_model);
    let model = model.context(
        "there is no model to try; name one, such as petasos models test openai/gpt-5-mini, or set default_model in \
         config.yaml",
    )?;
    let models = Models::new(config.providers, model_test::settings(config.models), Client::new(&config.net));
    let models = models.with_catalog(config.catalog);
    let tried = model_test::run(&models, &model).await;
    let failed = tried.iter().any(|(_, outcome)| matches!(outcome, Outcome::Failed(_)));
    if format == Format::Json {
        let checks = tried.iter().map(|(what, outcome)| {
            json!({ "check": what, "status": outcome.status(), "detail": outcome.detail() })
        });
        output::json(&json!({ "model": model, "ok": !failed, "checks": checks.collect::<Vec<_>>() }))?;
        return Ok(u8::from(failed));
    }
    output::line(&plain(&model))?;
    for (what, outcome) in &tried {
        output::line(&plain(&format!("{:<7}  {what}: {}", outcome.status(), outcome.detail())))?;
    }
    Ok(u8::from(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_in_a_url_is_not_shown() {
        assert_eq!(shown_url("https://user:pw@host:8/v1?key=secret"), "https://host:8/v1");
        assert_eq!(shown_url("http://127.0.0.1:1"), "http://127.0.0.1:1");
    }
}
