//! The search API of Exa, with a key.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_net::{Client, Method};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;

use super::{BOUNDS, Page, SearchEngine, endpoint, listed, pages, read};

/// The search API of Exa.
pub struct Exa {
    client: Client,
    endpoint: Url,
    api_key: SecretString,
}

impl Exa {
    /// The base URL unless the configuration says otherwise.
    pub const URL: &str = "https://api.exa.ai";

    /// The API below `base_url`.
    pub fn new(client: Client, base_url: &str, api_key: SecretString) -> Result<Self, String> {
        Ok(Exa { client, endpoint: endpoint(base_url, "search")?, api_key })
    }
}

impl SearchEngine for Exa {
    fn search<'a>(&'a self, query: &'a str, count: usize) -> BoxFuture<'a, Result<Vec<Page>, String>> {
        async move {
            let headers = [("x-api-key", self.api_key.expose_secret()), ("content-type", "application/json")];
            // Without `contents` the answer has addresses only.
            let body = json!({ "query": query, "numResults": count, "contents": { "highlights": true } });
            let body = body.to_string();
            let url = self.endpoint.as_str();
            let answer = self.client.send(Method::Post, url, &headers, Some(body.into()), BOUNDS).await;
            let answer = read("exa", answer)?;
            let found = listed("exa", &answer, "results")?;
            let found: Vec<Value> = found.iter().map(with_excerpt).collect();
            Ok(pages(&found, "excerpt"))
        }
        .boxed()
    }
}

/// The same result with its highlights as one string, or its text where there are none.
fn with_excerpt(result: &Value) -> Value {
    let highlights = result["highlights"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let highlights: Vec<&str> = highlights.collect();
    let excerpt = match highlights.as_slice() {
        [] => result["text"].as_str().unwrap_or_default().to_owned(),
        highlights => highlights.join(" … "),
    };
    json!({ "title": result["title"], "url": result["url"], "excerpt": excerpt })
}
