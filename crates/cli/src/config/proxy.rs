//! The way out: proxies, and the certificates that are trusted.
//!
//! The file wins over the environment, setting by setting. An empty setting of the file stands for no proxy.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use petasos_net::{Certificates, NoProxy, Options, Proxies, Proxy};
use secrecy::{ExposeSecret, SecretString};

use super::file;
use crate::env::{self, Environment};

/// How a server is reached that the command line or the environment names. The file is that of another server.
pub(crate) fn net_of_environment(environment: &Environment) -> Result<Options> {
    let proxies = proxies(file::Proxy::default(), environment, &mut Vec::new())?;
    let certificates = certificates(None, environment)?;
    Ok(Options { proxies, certificates, ..Options::default() })
}

/// The proxies that the file and the environment name.
pub(super) fn proxies(
    file: file::Proxy,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<Proxies> {
    let http = named("proxy.http", file.http, env::HTTP_PROXY, environment)?;
    let https = named("proxy.https", file.https, env::HTTPS_PROXY, environment)?;
    // A proxy for everything that is not used for anything may be of any kind.
    let all = match (&http, &https) {
        (Some(_), Some(_)) => None,
        _ => named("proxy.all", file.all, env::ALL_PROXY, environment)?.flatten(),
    };
    Ok(Proxies {
        http: http.unwrap_or_else(|| all.clone()),
        https: https.unwrap_or(all),
        no_proxy: match file.no_proxy {
            Some(entries) => no_proxy(&entries)?,
            None => no_proxy_of(environment, warnings)?,
        },
        callers: file.callers,
    })
}

/// A proxy of the file, else of the environment: `None` if neither names one, `Some(None)` if there shall be none.
fn named(
    setting: &str,
    file: Option<SecretString>,
    variable: &str,
    environment: &Environment,
) -> Result<Option<Option<Proxy>>> {
    let (name, url) = match file {
        Some(url) => (setting.to_owned(), url),
        None => match environment.either_case(variable)? {
            Some((name, url)) => (name, SecretString::from(url)),
            None => return Ok(None),
        },
    };
    let url = url.expose_secret().trim();
    if url.is_empty() {
        return Ok(Some(None));
    }
    url.parse().map(|proxy| Some(Some(proxy))).map_err(|problem: String| anyhow!("{name}: {problem}"))
}

fn no_proxy(entries: &[String]) -> Result<NoProxy> {
    let mut all = NoProxy::default();
    for (i, entry) in entries.iter().enumerate() {
        all.push(entry).map_err(|problem| anyhow!("proxy.no_proxy[{i}]: {problem}"))?;
    }
    Ok(all)
}

/// Other programs pass over entries that they cannot read, so that such an entry is no reason not to start.
fn no_proxy_of(environment: &Environment, warnings: &mut Vec<String>) -> Result<NoProxy> {
    let mut all = NoProxy::default();
    let Some((name, text)) = environment.either_case(env::NO_PROXY)? else { return Ok(all) };
    let entries = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty());
    for entry in entries {
        if let Err(problem) = all.push(entry) {
            warnings.push(format!("{name}: {problem}; it is passed over"));
        }
    }
    Ok(all)
}

/// The certificates that are trusted besides those of the system.
pub(super) fn certificates(file: Option<&Path>, environment: &Environment) -> Result<Certificates> {
    let (name, path) = match (file, environment.path(env::SSL_CERT_FILE)) {
        (None, None) => return Ok(Certificates::default()),
        (Some(path), None) => return read("ca_file", path),
        // The library that reads the system's certificates takes this file in their place.
        (None, Some(path)) => (env::SSL_CERT_FILE, path),
        (Some(file), Some(path)) => {
            let both = read("ca_file", file)?.and(&read(env::SSL_CERT_FILE, &path)?);
            return Ok(both.and(&Certificates::of_system()));
        }
    };
    Ok(read(name, &path)?.and(&Certificates::of_system()))
}

fn read(name: &str, path: &Path) -> Result<Certificates> {
    let pem = std::fs::read(path).with_context(|| format!("{name}: cannot read {}", path.display()))?;
    Certificates::from_pem(&pem)
        .map_err(|problem| anyhow!("{name}: {} cannot be used: {problem}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved<const N: usize>(file: &str, variables: [(&str, &str); N]) -> Result<(Proxies, Vec<String>)> {
        let mut warnings = Vec::new();
        let file = serde_saphyr::from_str(file).unwrap();
        let proxies = proxies(file, &Environment::from(variables), &mut warnings)?;
        Ok((proxies, warnings))
    }

    fn shown<const N: usize>(file: &str, variables: [(&str, &str); N]) -> [String; 2] {
        let (proxies, _) = resolved(file, variables).unwrap();
        [proxies.http, proxies.https].map(|proxy| proxy.map_or_else(|| "none".to_owned(), |p| p.to_string()))
    }

    #[test]
    fn the_environment_is_read_in_either_case() {
        assert_eq!(shown("{}", []), ["none", "none"]);
        let both = [("HTTP_PROXY", "http://a:1"), ("https_proxy", "b:2")];
        assert_eq!(shown("{}", both), ["http://a:1", "http://b:2"]);
        let lower = [("http_proxy", "a:1"), ("HTTP_PROXY", "b:2"), ("all_proxy", "c:3")];
        assert_eq!(shown("{}", lower), ["http://a:1", "http://c:3"]);
        assert_eq!(shown("{}", [("ALL_PROXY", "c:3")]), ["http://c:3", "http://c:3"]);
    }

    #[test]
    fn the_file_wins_setting_by_setting() {
        let variables = [("HTTP_PROXY", "a:1"), ("HTTPS_PROXY", "b:2"), ("NO_PROXY", "x.example")];
        assert_eq!(shown("{ https: 'c:3' }", variables), ["http://a:1", "http://c:3"]);
        assert_eq!(shown("{ https: '' }", variables), ["http://a:1", "none"]);
        assert_eq!(shown("{ all: 'c:3' }", variables), ["http://a:1", "http://b:2"]);
        let (proxies, _) = resolved("{ no_proxy: [], callers: true }", variables).unwrap();
        assert_eq!(proxies.no_proxy, NoProxy::default());
        assert!(proxies.callers);
        let (proxies, _) = resolved("{}", variables).unwrap();
        assert_eq!(proxies.no_proxy, "x.example".parse().unwrap());
        assert!(!proxies.callers);
    }

    #[test]
    fn what_is_wrong_is_named_and_no_password_is_repeated() {
        let refused = |file: &str, variables: [(&str, &str); 1]| {
            let text = resolved(file, variables).unwrap_err().to_string();
            assert!(!text.contains("secret"), "{text}");
            text
        };
        let socks = refused("{}", [("all_proxy", "socks5://ann:secret@p:1")]);
        assert!(socks.starts_with("all_proxy: ") && socks.contains("socks5://"), "{socks}");
        let file = refused("{ https: 'ftp://ann:secret@p' }", [("HTTPS_PROXY", "fine:1")]);
        assert!(file.starts_with("proxy.https: "), "{file}");
        let entry = refused("{ no_proxy: [a, 10.0.0.0/33] }", [("x", "y")]);
        assert!(entry.starts_with("proxy.no_proxy[1]: "), "{entry}");
        let (_, warnings) = resolved("{}", [("NO_PROXY", "a,10.0.0.*")]).unwrap();
        assert!(warnings[0].starts_with("NO_PROXY: \"10.0.0.*\""), "{warnings:?}");
        // It is not used for anything.
        let unused = [("ALL_PROXY", "socks5://p:1"), ("HTTP_PROXY", "a:1"), ("HTTPS_PROXY", "b:2")];
        assert_eq!(shown("{}", unused), ["http://a:1", "http://b:2"]);
    }
}
