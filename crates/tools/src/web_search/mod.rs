//! `web_search`: asks a search engine. Which one is a setting; each is a file here.

mod brave;
mod searxng;

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use petasos_net::{Answer, Bounds};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::arguments::parse;
use crate::tool::{Audience, Invocation, Tool, ToolOutput};

pub use brave::Brave;
pub use searxng::Searxng;

const DEFAULT_RESULTS: usize = 8;
const MAX_RESULTS: usize = 20;
const MAX_QUERY: usize = 400;
const MAX_TEXT: usize = 500;
const BOUNDS: Bounds = Bounds { time: Duration::from_secs(20), body_bytes: 2 * 1024 * 1024, redirects: 0 };

/// A search engine.
pub trait SearchEngine: Send + Sync + 'static {
    /// Finds pages, the best first. `count` is a wish.
    fn search<'a>(&'a self, query: &'a str, count: usize) -> BoxFuture<'a, Result<Vec<Page>, String>>;
}

/// A page that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// Its address.
    pub url: String,
    /// What it says about the query.
    pub text: String,
}

/// Searches the web.
#[derive(Clone, Default)]
pub(crate) struct WebSearch {
    /// None if the configuration names none.
    pub(crate) engine: Option<Arc<dyn SearchEngine>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    query: String,
    limit: Option<usize>,
}

impl Tool for WebSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "web_search".to_owned(),
            description: "Search the web. Read pages that look right with web_extract.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": { "query": { "type": "string" }, "limit": { "type": "integer" } },
                "required": ["query"],
            })
            .into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn is_of_use(&self, _to: Audience) -> bool {
        self.engine.is_some()
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        input.get("query")?.as_str().map(str::to_owned)
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let tool = self.clone();
        async move { tool.search(&invocation.input).await.unwrap_or_else(ToolOutput::error) }.boxed()
    }
}

impl WebSearch {
    async fn search(&self, input: &Map<String, Value>) -> Result<ToolOutput, String> {
        let Input { query, limit } = parse(input)?;
        let Some(engine) = &self.engine else {
            return Err(
                "No search engine is configured. The operator sets web.search in the configuration, for \
                        example to a SearXNG server."
                    .to_owned(),
            );
        };
        let query = query.trim();
        if query.is_empty() || query.chars().count() > MAX_QUERY {
            return Err(format!("query must have 1 to {MAX_QUERY} characters"));
        }
        let count = limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS);
        let pages = engine.search(query, count).await?;
        if pages.is_empty() {
            return Ok(ToolOutput::ok("Nothing was found."));
        }
        let mut text = String::new();
        for (index, page) in pages.iter().take(count).enumerate() {
            let words: String = page.text.chars().take(MAX_TEXT).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}. {}\n   {}\n   {}", index + 1, page.title, page.url, words.trim());
        }
        Ok(ToolOutput::ok(text.trim_end()))
    }
}

/// The answer of an engine as JSON.
fn json(engine: &str, answer: Result<Answer, petasos_net::Error>) -> Result<Value, String> {
    let answer = answer.map_err(|error| format!("The search engine cannot be used: {error}."))?;
    match answer.status {
        200 => serde_json::from_slice(&answer.body)
            .map_err(|_| format!("The search engine {engine} did not answer with JSON.")),
        429 => Err("The search engine says that it was asked too often; try again later.".to_owned()),
        status => {
            Err(format!("The search engine {engine} answers {status}; the operator should check web.search."))
        }
    }
}

/// The pages of a list of JSON objects, whose texts are under `text`.
fn pages(list: &Value, text: &str) -> Vec<Page> {
    let field = |page: &Value, name: &str| page[name].as_str().unwrap_or_default().to_owned();
    let pages = list.as_array().into_iter().flatten();
    let pages = pages.map(|page| Page {
        title: field(page, "title"),
        url: field(page, "url"),
        text: field(page, text),
    });
    pages.filter(|page| !page.url.is_empty()).collect()
}
