//! `web_search`: asks a search engine. Which one is a setting; each is a file here.

mod brave;
mod exa;
mod searxng;
mod tavily;

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
use url::Url;

use crate::arguments::parse;
use crate::tool::{Audience, Invocation, Tool, ToolOutput};

pub use brave::Brave;
pub use exa::Exa;
pub use searxng::Searxng;
pub use tavily::Tavily;

const DEFAULT_RESULTS: usize = 8;
const MAX_RESULTS: usize = 20;
const MAX_QUERY: usize = 400;
const MAX_TEXT: usize = 500;
const MAX_URL: usize = 2000;
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
                "No search engine is configured. The operator sets web.search in the configuration, or the \
                        key of an engine in the environment."
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
            let [title, words] = [&page.title, &page.text].map(|text| shortened(text));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}. {title}\n   {}\n   {words}", index + 1, page.url);
        }
        Ok(ToolOutput::ok(text.trim_end()))
    }
}

/// The beginning of what a page says, on one line: a line of its own could look like another page.
fn shortened(text: &str) -> String {
    let beginning: String = text.chars().take(MAX_TEXT).collect();
    beginning.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The address of `path` below a base URL.
fn endpoint(base_url: &str, path: &str) -> Result<Url, String> {
    let address = format!("{}/{path}", base_url.trim_end_matches('/'));
    Url::parse(&address).map_err(|error| format!("{base_url:?} is not an address: {error}"))
}

/// The answer of an engine as JSON. No error repeats what the engine says: its words may hold the key.
fn read(engine: &str, answer: Result<Answer, petasos_net::Error>) -> Result<Value, String> {
    let answer = answer
        .map_err(|error| format!("The search engine {engine} cannot be used: {error}; try again later."))?;
    match answer.status {
        200 if answer.cut => Err(format!(
            "The search engine {engine} answers with more than {} bytes, the most that is read.",
            BOUNDS.body_bytes
        )),
        200 => serde_json::from_slice(&answer.body)
            .map_err(|_| format!("The search engine {engine} did not answer with JSON.")),
        401 | 403 => Err(format!(
            "The search engine {engine} answers {}: it refuses the key; the operator should check the key of \
             web.search.",
            answer.status
        )),
        // Tavily says 432 and 433 where its plan or its spending limit is used up.
        402 | 432 | 433 => Err(format!(
            "The search engine {engine} answers {}: the plan of the key is used up; the operator should check it.",
            answer.status
        )),
        429 => Err(format!(
            "The search engine {engine} answers 429: it was asked too often; try again later{}.",
            waiting_time(&answer)
        )),
        status @ 500..=599 => {
            Err(format!("The search engine {engine} answers {status}: it has a problem; try again later."))
        }
        status => {
            Err(format!("The search engine {engine} answers {status}; the operator should check web.search."))
        }
    }
}

/// After how many seconds an engine wants to be asked again, as the end of a sentence, if it says so.
fn waiting_time(answer: &Answer) -> String {
    let seconds = answer.retry_after.as_deref().and_then(|value| value.trim().parse::<u32>().ok());
    seconds.map(|seconds| format!(", after {seconds} s")).unwrap_or_default()
}

/// The list that an answer has to have under this name.
fn listed<'a>(engine: &str, answer: &'a Value, name: &str) -> Result<&'a [Value], String> {
    let list = answer[name].as_array().map(Vec::as_slice);
    list.ok_or_else(|| format!("The search engine {engine} answers without a list of {name}."))
}

/// The pages of a list of JSON objects, whose texts are under `text`.
fn pages(list: &[Value], text: &str) -> Vec<Page> {
    let field = |page: &Value, name: &str| page[name].as_str().unwrap_or_default().to_owned();
    let pages = list.iter().map(|page| Page {
        title: field(page, "title"),
        url: field(page, "url"),
        text: field(page, text),
    });
    // An address that is longer is of no use to a model.
    pages.filter(|page| !page.url.is_empty() && page.url.len() <= MAX_URL).collect()
}
