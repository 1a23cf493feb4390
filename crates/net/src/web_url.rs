//! Reads the URLs of requests.

use reqwest::Url;

use crate::error::Error;

/// Says what is wrong with an address that the operator has named, if it is no web address at all.
pub fn check_web_url(text: &str) -> Result<(), Error> {
    parse_url(text).map(drop)
}

/// A URL, and its host with the port if it has one.
pub(crate) fn parse_url(text: &str) -> Result<(Url, String), Error> {
    let invalid = |problem: String| Error::Invalid { host: String::new(), problem };
    let url = Url::parse(text).map_err(|error| invalid(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid(format!("the scheme is {:?}, it must be http or https", url.scheme())));
    }
    let host = match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => return Err(invalid("there is no host in the URL".to_owned())),
    };
    Ok((url, host))
}
