//! The search API of Brave, with a key.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_net::{Client, Method};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::{BOUNDS, Page, SearchEngine, pages, read};

/// The search API of Brave.
pub struct Brave {
    client: Client,
    endpoint: Url,
    api_key: SecretString,
}

impl Brave {
    /// Where it is unless the configuration says otherwise.
    pub const URL: &str = "https://api.search.brave.com/res/v1/web/search";

    /// The API at `url`.
    pub fn new(client: Client, url: &str, api_key: SecretString) -> Result<Self, String> {
        let endpoint = Url::parse(url).map_err(|error| format!("{url:?} is not an address: {error}"))?;
        Ok(Brave { client, endpoint, api_key })
    }
}

impl SearchEngine for Brave {
    fn search<'a>(&'a self, query: &'a str, count: usize) -> BoxFuture<'a, Result<Vec<Page>, String>> {
        let mut url = self.endpoint.clone();
        url.query_pairs_mut().append_pair("q", query).append_pair("count", &count.to_string());
        async move {
            let headers =
                [("x-subscription-token", self.api_key.expose_secret()), ("accept", "application/json")];
            let answer = self.client.send(Method::Get, url.as_str(), &headers, None, BOUNDS).await;
            let answer = read("brave", answer)?;
            // An answer without pages has no `web` at all.
            let found = answer["web"]["results"].as_array().map(Vec::as_slice).unwrap_or_default();
            Ok(pages(found, "description"))
        }
        .boxed()
    }
}
