//! The search engine of `web_search`.

use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use petasos_net::{Client, Guard, Options};
use petasos_tools::web_search::{Brave, SearchEngine, Searxng};

use super::file::{SearchKind, WebSearch};
use crate::env::Environment;

/// The engine, if the file names one. Its address is the operator's, so it is reached wherever it is.
pub(super) fn engine(
    file: Option<WebSearch>,
    environment: &Environment,
    net: &Options,
    guard: &Guard,
    warnings: &mut Vec<String>,
) -> Result<Option<Arc<dyn SearchEngine>>> {
    let Some(file) = file else { return Ok(None) };
    let wrong = |problem: String| anyhow!("web.search: {problem}");
    let url = match (file.kind, file.url) {
        (_, Some(url)) => url,
        (SearchKind::Brave, None) => Brave::URL.to_owned(),
        (SearchKind::Searxng, None) => {
            bail!("web.search: url is missing; write the address of a SearXNG server")
        }
    };
    let client = Client::trusting(net, guard, &url);
    Ok(Some(match file.kind {
        SearchKind::Searxng => Arc::new(Searxng::new(client, &url).map_err(wrong)?),
        SearchKind::Brave => {
            let key = match (file.api_key, &file.api_key_env) {
                (Some(key), _) => Some(key),
                (None, Some(variable)) => environment.secret(variable)?,
                (None, None) => bail!("web.search: brave needs api_key or api_key_env"),
            };
            let Some(key) = key else {
                warnings.push("web.search: the environment variable of its key is not set".to_owned());
                return Ok(None);
            };
            Arc::new(Brave::new(client, &url, key).map_err(wrong)?)
        }
    }))
}
