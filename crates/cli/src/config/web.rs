//! The search engine of `web_search`: the one of the file, or else the first whose variable is set.

use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use petasos_net::{Client, Guard, Options};
use petasos_tools::web_search::{Brave, Exa, SearchEngine, Searxng, Tavily};
use secrecy::SecretString;

use super::file::{SearchKind, WebSearch};
use crate::env::{self, Environment};

/// How one kind of engine is configured and made.
struct Kind {
    kind: SearchKind,
    name: &'static str,
    /// The variable that chooses it where the file names none: its key, or its address if it needs no key.
    chosen_by: &'static str,
    /// The variable of its address.
    url: Option<&'static str>,
    /// Its address unless something is said.
    default_url: Option<&'static str>,
    needs_key: bool,
    make: Make,
}

/// Makes an engine at an address. The key is empty for those that need none.
type Make = fn(Client, &str, SecretString) -> Result<Arc<dyn SearchEngine>, String>;

/// Every engine. Where several variables are set and the file names no engine, the first of this list is used.
const KINDS: [Kind; 4] = [
    Kind {
        kind: SearchKind::Brave,
        name: "brave",
        chosen_by: env::BRAVE_API_KEY,
        url: None,
        default_url: Some(Brave::URL),
        needs_key: true,
        make: |client, url, key| Ok(Arc::new(Brave::new(client, url, key)?)),
    },
    Kind {
        kind: SearchKind::Searxng,
        name: "searxng",
        chosen_by: env::SEARXNG_URL,
        url: Some(env::SEARXNG_URL),
        default_url: None,
        needs_key: false,
        make: |client, url, _| Ok(Arc::new(Searxng::new(client, url)?)),
    },
    Kind {
        kind: SearchKind::Tavily,
        name: "tavily",
        chosen_by: env::TAVILY_API_KEY,
        url: Some(env::TAVILY_BASE_URL),
        default_url: Some(Tavily::URL),
        needs_key: true,
        make: |client, url, key| Ok(Arc::new(Tavily::new(client, url, key)?)),
    },
    Kind {
        kind: SearchKind::Exa,
        name: "exa",
        chosen_by: env::EXA_API_KEY,
        url: Some(env::EXA_BASE_URL),
        default_url: Some(Exa::URL),
        needs_key: true,
        make: |client, url, key| Ok(Arc::new(Exa::new(client, url, key)?)),
    },
];

/// The engine of `web_search`, if there is one, and why it is that one.
#[derive(Clone, Default)]
pub(crate) struct Search {
    pub(crate) engine: Option<Arc<dyn SearchEngine>>,
    /// One line for a person.
    pub(crate) reason: String,
}

/// The engine that the file or the environment chooses. Its address is the operator's, so it is reached wherever it is.
pub(super) fn search(
    file: Option<WebSearch>,
    environment: &Environment,
    net: &Options,
    guard: &Guard,
    warnings: &mut Vec<String>,
) -> Result<Search> {
    let (kind, file, reason) = match file {
        Some(file) => {
            let Some(kind) = KINDS.iter().find(|kind| kind.kind == file.kind) else {
                bail!("web.search: this kind of engine is not built in");
            };
            (kind, file, format!("{}, as web.search in config.yaml says", kind.name))
        }
        None => match chosen(environment)? {
            Some((kind, reason)) => (kind, WebSearch::default(), reason),
            None => return Ok(Search { engine: None, reason: none() }),
        },
    };
    let Some(key) = key(kind, &file, environment, warnings)? else {
        return Ok(Search { engine: None, reason: format!("{}, but its key is missing", kind.name) });
    };
    let url = url(kind, file.url, environment)?;
    let client = Client::trusting(net, guard, &url);
    let engine = (kind.make)(client, &url, key).map_err(|problem| anyhow!("web.search: {problem}"))?;
    Ok(Search { engine: Some(engine), reason })
}

/// The first engine whose variable is set.
fn chosen(environment: &Environment) -> Result<Option<(&'static Kind, String)>> {
    let mut set = Vec::new();
    for kind in &KINDS {
        if environment.secret(kind.chosen_by)?.is_some() {
            set.push(kind);
        }
    }
    let Some((first, rest)) = set.split_first() else { return Ok(None) };
    let mut reason = format!("{}, because {} is set", first.name, first.chosen_by);
    if !rest.is_empty() {
        let rest: Vec<&str> = rest.iter().map(|kind| kind.chosen_by).collect();
        reason.push_str(&format!("; {} not used: web.search.kind chooses another", rest.join(", ")));
    }
    Ok(Some((*first, reason)))
}

fn none() -> String {
    let variables: Vec<&str> = KINDS.iter().map(|kind| kind.chosen_by).collect();
    format!("there is no search engine, so web_search is not offered; set one of {}", variables.join(", "))
}

/// The key of an engine: that of the file, or else that of its own variable. Empty for an engine that needs none; none
/// if it is missing.
fn key(
    kind: &Kind,
    file: &WebSearch,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<Option<SecretString>> {
    if !kind.needs_key {
        return Ok(Some(SecretString::default()));
    }
    if let Some(key) = &file.api_key {
        return Ok(Some(key.clone()));
    }
    let variable = file.api_key_env.as_deref().unwrap_or(kind.chosen_by);
    let key = environment.secret(variable)?;
    match (&key, &file.api_key_env) {
        (None, Some(_)) => warnings.push(format!(
            "web.search: the environment variable {variable} of the key of {} is not set",
            kind.name
        )),
        (None, None) => {
            bail!("web.search: {} needs api_key or api_key_env, or {variable} in the environment", kind.name)
        }
        (Some(_), _) => {}
    }
    Ok(key)
}

fn url(kind: &Kind, from_file: Option<String>, environment: &Environment) -> Result<String> {
    let from_environment = kind.url.map_or(Ok(None), |variable| environment.text(variable));
    let url = from_file.or(from_environment?).or(kind.default_url.map(str::to_owned));
    let Some(url) = url.map(|url| url.trim().to_owned()) else {
        bail!("web.search: url is missing; write the address of a SearXNG server, or set {}", kind.chosen_by);
    };
    if !url.starts_with("http://") && !url.starts_with("https://") {
        bail!("web.search: the address of {} must start with http:// or https://", kind.name);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<const N: usize>(file: &str, variables: [(&str, &str); N]) -> Result<(Search, Vec<String>)> {
        let file: super::super::file::File = serde_saphyr::from_str(file).unwrap();
        let mut warnings = Vec::new();
        let environment = Environment::from(variables);
        let found =
            search(file.web.search, &environment, &Options::default(), &Guard::default(), &mut warnings)?;
        Ok((found, warnings))
    }

    fn reason<const N: usize>(file: &str, variables: [(&str, &str); N]) -> String {
        let (search, warnings) = found(file, variables).unwrap();
        assert!(warnings.is_empty() && search.engine.is_some(), "{warnings:?} {}", search.reason);
        search.reason
    }

    #[test]
    fn the_variable_that_is_set_chooses_the_engine() {
        for (variable, value, name) in [
            ("BRAVE_API_KEY", "k", "brave"),
            ("SEARXNG_URL", "http://127.0.0.1:8888", "searxng"),
            ("TAVILY_API_KEY", "k", "tavily"),
            ("EXA_API_KEY", "k", "exa"),
        ] {
            let reason = reason("{}", [(variable, value)]);
            assert_eq!(reason, format!("{name}, because {variable} is set"));
        }
        let (none, _) = found("{}", [("EXA_API_KEY", " ")]).unwrap();
        assert!(none.engine.is_none() && none.reason.contains("TAVILY_API_KEY"), "{}", none.reason);
    }

    #[test]
    fn of_several_variables_the_first_in_the_documented_order_wins() {
        let all = [
            ("EXA_API_KEY", "k"),
            ("TAVILY_API_KEY", "k"),
            ("SEARXNG_URL", "http://s"),
            ("BRAVE_API_KEY", "k"),
        ];
        let brave = reason("{}", all);
        let rest = "SEARXNG_URL, TAVILY_API_KEY, EXA_API_KEY not used";
        assert!(brave.starts_with("brave, ") && brave.contains(rest), "{brave}");
        let [exa, tavily, searxng, _] = all;
        assert!(reason("{}", [exa, tavily, searxng]).starts_with("searxng, "));
        assert!(reason("{}", [exa, tavily]).starts_with("tavily, "));
    }

    #[test]
    fn the_file_wins_over_the_environment() {
        let variables = [("BRAVE_API_KEY", "k"), ("EXA_API_KEY", "k")];
        let said = "exa, as web.search in config.yaml says";
        assert_eq!(reason("web: { search: { kind: exa } }", variables), said);
        assert_eq!(reason("web: { search: { kind: exa, api_key: k } }", []), said);
    }

    #[test]
    fn mistakes_are_named() {
        let problem = |file| found(file, []).err().unwrap().to_string();
        assert!(problem("web: { search: { kind: tavily } }").contains("TAVILY_API_KEY"));
        assert!(problem("web: { search: { kind: searxng } }").contains("SEARXNG_URL"));
        assert!(problem("web: { search: { url: 'host:1' } }").contains("http://"));
        let (search, warnings) = found("web: { search: { kind: exa, api_key_env: MINE } }", []).unwrap();
        assert!(search.engine.is_none() && warnings[0].contains("MINE"), "{warnings:?}");
    }
}
