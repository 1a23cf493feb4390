//! Which hosts are reached without a proxy: what `NO_PROXY` says, as curl reads it.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use reqwest::Url;
use url::Host;

/// Hosts that are reached without a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoProxy {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    hosts: Hosts,
    /// If there is one, no other port is meant.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    All,
    Network(IpNet),
    /// A name and all names below it.
    Domain(String),
}

impl NoProxy {
    /// Adds an entry: `*`, an address, a network (10.0.0.0/8), or a host, with or without a dot before it, which stands
    /// for the hosts below it too; each with or without a port.
    pub fn push(&mut self, entry: &str) -> Result<(), String> {
        self.entries.push(entry.parse()?);
        Ok(())
    }

    /// Whether the host of a URL is reached without a proxy.
    pub(super) fn covers(&self, url: &Url) -> bool {
        let Some(host) = url.host() else { return false };
        let port = url.port_or_known_default();
        self.entries.iter().any(|entry| {
            entry.port.is_none_or(|only| port == Some(only))
                && match (&entry.hosts, &host) {
                    (Hosts::All, _) => true,
                    (Hosts::Network(network), Host::Ipv4(address)) => {
                        network.contains(&IpAddr::from(*address))
                    }
                    (Hosts::Network(network), Host::Ipv6(address)) => {
                        network.contains(&IpAddr::from(*address).to_canonical())
                    }
                    (Hosts::Domain(domain), Host::Domain(name)) => is_at_or_below(name, domain),
                    _ => false,
                }
        })
    }
}

impl FromStr for NoProxy {
    type Err = String;

    /// Reads entries that stand between commas or blanks.
    fn from_str(text: &str) -> Result<Self, String> {
        let words = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
        Ok(NoProxy { entries: words.map(str::parse).collect::<Result<_, _>>()? })
    }
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(network) = network(text) {
            return Ok(Entry { hosts: Hosts::Network(network), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => match port.parse() {
                Ok(port) => (host, Some(port)),
                Err(_) => return Err(unreadable(text)),
            },
            None => (text, None),
        };
        let hosts = match network(host) {
            Some(network) => Hosts::Network(network),
            None if host == "*" => Hosts::All,
            None => Hosts::Domain(domain(host).ok_or_else(|| unreadable(text))?),
        };
        Ok(Entry { hosts, port })
    }
}

fn unreadable(text: &str) -> String {
    format!(
        "{text:?} must be a host (models.internal), a suffix (.internal), an address, a network (10.0.0.0/8) or *, with or \
         without a port"
    )
}

/// A network, or an address as the network of itself.
fn network(text: &str) -> Option<IpNet> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>().map(|address| IpNet::from(address.to_canonical()));
    address.ok().or_else(|| text.parse().ok())
}

/// The name of a domain as URLs have it.
fn domain(text: &str) -> Option<String> {
    let name = text.strip_prefix('*').unwrap_or(text).trim_matches('.');
    match Host::parse(name) {
        Ok(Host::Domain(name)) if !name.contains('*') => Some(name),
        _ => None,
    }
}

fn is_at_or_below(name: &str, domain: &str) -> bool {
    let name = name.trim_end_matches('.');
    let Some(before) = name.strip_suffix(domain) else { return false };
    before.is_empty() || before.ends_with('.')
}

/// Whether a URL leads to the machine that dials it.
pub(super) fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_at_or_below(name, "localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(Host::Ipv6(address)) => {
            let address = IpAddr::from(address).to_canonical();
            address.is_loopback() || address.is_unspecified()
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(entries: &str, url: &str) -> bool {
        entries.parse::<NoProxy>().unwrap().covers(&Url::parse(url).unwrap())
    }

    #[test]
    fn entries_are_read_as_curl_reads_them() {
        for (entries, direct, proxied) in [
            ("corp.example", "http://corp.example/", "http://mycorp.example/"),
            ("corp.example", "https://a.b.corp.example/", "https://corp.example.org/"),
            (".corp.example", "http://a.corp.example/", "http://xcorp.example/"),
            (".corp.example", "http://corp.example/", "http://example/"),
            ("*.corp.example", "http://a.corp.example/", "http://acorp.example/"),
            ("CORP.example.", "http://Corp.Example./", "http://corp.test/"),
            ("10.1.2.3", "http://10.1.2.3:8080/", "http://10.1.2.4/"),
            ("10.0.0.0/8,192.168.0.0/16", "http://192.168.3.4/", "http://172.16.0.1/"),
            ("fd00::/8", "http://[fd00::1]/", "http://[fe80::1]/"),
            ("::2 2001:db8::1", "http://[::2]/", "http://[::3]/"),
            ("[2001:db8::1]:81", "http://[2001:db8::1]:81/", "http://[2001:db8::1]/"),
            ("::ffff:10.0.0.1", "http://10.0.0.1/", "http://10.0.0.2/"),
            ("models.internal:8080", "http://models.internal:8080/", "http://models.internal/"),
            ("models.internal:443", "https://models.internal/", "http://models.internal/"),
            ("10.0.0.0/8:81", "http://10.0.0.1:81/", "http://10.0.0.1/"),
            ("a , b.example", "http://a/", "http://example/"),
        ] {
            assert!(covers(entries, direct), "{entries}: {direct}");
            assert!(!covers(entries, proxied), "{entries}: {proxied}");
        }
        assert!(covers("*", "https://anything.example/") && covers("*", "http://10.0.0.1/"));
        assert!(!covers("", "http://a.example/") && !covers(" , ", "http://a.example/"));
    }

    #[test]
    fn entries_that_mean_nothing_are_refused() {
        for entry in ["10.0.0.0/33", "a b/c", "http://a.example", "a*b", "a:port", "10.0.0.*"] {
            assert!(NoProxy::default().push(entry).is_err(), "{entry}");
        }
    }
}
