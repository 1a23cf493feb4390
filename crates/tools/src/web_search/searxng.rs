//! SearXNG, and everything that answers like it. It needs no key.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_net::{Client, Method};
use url::Url;

use super::{BOUNDS, Page, SearchEngine, endpoint, listed, pages, read};

/// A SearXNG server.
pub struct Searxng {
    client: Client,
    endpoint: Url,
}

impl Searxng {
    /// The server at `url`, whose settings must list the format `json`.
    pub fn new(client: Client, url: &str) -> Result<Self, String> {
        Ok(Searxng { client, endpoint: endpoint(url, "search")? })
    }
}

impl SearchEngine for Searxng {
    fn search<'a>(&'a self, query: &'a str, _count: usize) -> BoxFuture<'a, Result<Vec<Page>, String>> {
        let mut url = self.endpoint.clone();
        url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
        async move {
            let answer = self.client.send(Method::Get, url.as_str(), &[], None, BOUNDS).await;
            if answer.as_ref().is_ok_and(|answer| answer.status == 403) {
                return Err("The search engine refuses JSON; the operator lists json under search.formats of SearXNG's \
                            settings."
                    .to_owned());
            }
            let answer = read("searxng", answer)?;
            Ok(pages(listed("searxng", &answer, "results")?, "content"))
        }
        .boxed()
    }
}
