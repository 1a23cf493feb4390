//! Looks for model servers on this machine that nobody has configured.

use std::time::Duration;

use futures_util::future::join_all;
use petasos_models::presets::{PRESETS, Preset};
use petasos_net::{Client, Method};
use serde_json::Value;

use super::Check;
use crate::config::Config;

/// How long a server on this machine may take to answer. Where none listens, the refusal comes at once.
const ANSWER_TIME: Duration = Duration::from_millis(700);
const MAX_ANSWER: usize = 1024 * 1024;

/// Names each server that answers at a usual port, with the line that makes it a provider.
pub(super) async fn check(config: &Config, client: &Client) -> Vec<Check> {
    let looked_at = PRESETS.iter().filter_map(|preset| Some((preset, preset.port()?)));
    let unknown = looked_at.filter(|(preset, port)| !is_configured(config, preset, *port));
    let found = join_all(unknown.map(|(preset, port)| look(preset, port, client))).await;
    found.into_iter().flatten().collect()
}

fn is_configured(config: &Config, preset: &Preset, port: u16) -> bool {
    let hosts = ["127.0.0.1", "localhost", "[::1]"];
    let is_here = |url: &str| {
        let place =
            url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next()?.rsplit_once(':'));
        place.is_some_and(|(host, at)| hosts.contains(&host) && at.parse() == Ok(port))
    };
    config.providers.contains_key(preset.name)
        || config.providers.values().any(|provider| is_here(&provider.base_url))
}

async fn look(preset: &Preset, port: u16, client: &Client) -> Option<Check> {
    let models = tokio::time::timeout(ANSWER_TIME, models(port, client)).await.ok()??;
    let name = preset.name;
    let example = models.first().map_or(String::new(), |model| format!(", such as {name}/{model}"));
    Some(Check::hint(
        format!("local models at port {port}"),
        format!("a server answers that is not configured and has {} models{example}", models.len()),
        format!("if it is {name}, add to config.yaml: providers: {{ {name}: {{}} }}"),
    ))
}

/// The names of the models that a server lists, if it lists any in the way of OpenAI.
async fn models(port: u16, client: &Client) -> Option<Vec<String>> {
    let url = format!("http://127.0.0.1:{port}/v1/models");
    let response = client.request(Method::Get, &url, &[], None).await.ok()?;
    if response.status() != 200 {
        return None;
    }
    let listed: Value = serde_json::from_slice(&response.bytes_bounded(MAX_ANSWER).await.ok()?).ok()?;
    let names = listed["data"].as_array()?.iter().filter_map(|model| model["id"].as_str());
    Some(names.map(str::to_owned).collect())
}
