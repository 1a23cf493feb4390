//! What an operator may write into the lists of the guard.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use url::{Host, Url};

/// Something that may be reached although its address is not public.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// A network, or a single address.
    Network(IpNet),
    /// A host, wherever its name leads.
    Host(HostPattern),
}

impl Allowed {
    /// The host of a URL; none if it has none.
    pub(super) fn host_of(url: &str) -> Option<Self> {
        match Url::parse(url).ok()?.host()? {
            Host::Domain(name) => Some(Allowed::Host(HostPattern { name: plain(name), subdomains: false })),
            Host::Ipv4(address) => Some(Allowed::Network(IpAddr::from(address).into())),
            Host::Ipv6(address) => Some(Allowed::Network(IpAddr::from(address).to_canonical().into())),
        }
    }

    pub(super) fn covers(&self, address: IpAddr) -> bool {
        match self {
            Allowed::Network(network) => network.contains(&address),
            Allowed::Host(_) => false,
        }
    }

    pub(super) fn covers_host(&self, host: &str) -> bool {
        match self {
            Allowed::Network(network) => literal(host).is_some_and(|address| network.contains(&address)),
            Allowed::Host(pattern) => pattern.matches(host),
        }
    }
}

fn literal(host: &str) -> Option<IpAddr> {
    let address: IpAddr = host.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    Some(address.to_canonical())
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(network) = text.parse::<IpNet>() {
            return Ok(Allowed::Network(network));
        }
        if let Some(address) = literal(text) {
            return Ok(Allowed::Network(address.into()));
        }
        text.parse().map(Allowed::Host).map_err(|_: String| {
            format!("{text:?} must be a network (10.0.0.0/8), an address, a host (search.internal) or *.host")
        })
    }
}

/// A host, or with `*.` before it all hosts below it, itself not included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    name: String,
    subdomains: bool,
}

impl HostPattern {
    /// Whether a host fits. A dot at its end and upper case make no difference.
    pub fn matches(&self, host: &str) -> bool {
        let host = plain(host);
        if self.subdomains {
            host.strip_suffix(&self.name).is_some_and(|before| before.len() > 1 && before.ends_with('.'))
        } else {
            host == self.name
        }
    }
}

impl HostPattern {
    /// Whether the host of a URL fits.
    pub fn matches_url(&self, url: &str) -> bool {
        let url = Url::parse(url).ok();
        url.as_ref().and_then(Url::host_str).is_some_and(|host| self.matches(host))
    }
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (subdomains, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        // Hosts of URLs are compared, so a pattern is written out as one.
        match Host::parse(name) {
            Ok(host) if !name.contains('*') => Ok(HostPattern { name: plain(&host.to_string()), subdomains }),
            _ => {
                Err(format!("{text:?} must be a host (example.com), or *.example.com for the hosts below it"))
            }
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.subdomains { "*." } else { "" }, self.name)
    }
}

fn plain(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}
