//! The search API of Tavily, with a key.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_net::{Client, Method};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use url::Url;

use super::{BOUNDS, Page, SearchEngine, endpoint, listed, pages, read};

/// The search API of Tavily.
pub struct Tavily {
    client: Client,
    endpoint: Url,
    api_key: SecretString,
}

impl Tavily {
    /// The base URL unless the configuration says otherwise.
    pub const URL: &str = "https://api.tavily.com";

    /// The API below `base_url`.
    pub fn new(client: Client, base_url: &str, api_key: SecretString) -> Result<Self, String> {
        Ok(Tavily { client, endpoint: endpoint(base_url, "search")?, api_key })
    }
}

impl SearchEngine for Tavily {
    fn search<'a>(&'a self, query: &'a str, count: usize) -> BoxFuture<'a, Result<Vec<Page>, String>> {
        async move {
            let bearer = format!("Bearer {}", self.api_key.expose_secret());
            let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
            let body = json!({ "query": query, "max_results": count }).to_string();
            let url = self.endpoint.as_str();
            let answer = self.client.send(Method::Post, url, &headers, Some(body.into()), BOUNDS).await;
            let answer = read("tavily", answer)?;
            Ok(pages(listed("tavily", &answer, "results")?, "content"))
        }
        .boxed()
    }
}
