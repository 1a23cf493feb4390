//! The egress guard: what a request on a caller's word may reach.
//!
//! Web pages, webhooks, callbacks and MCP servers are named by callers and by models, and must not become a way into
//! the operator's network. The guard looks at the URL before a request is sent and at every address before it is
//! dialled. It does so inside the client's own name resolution, so the address that was checked is the one that is
//! dialled: a name that answers differently the second time gains nothing.

mod address;
mod allowed;
mod resolver;
mod target;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use url::{Host, Url};

pub use self::allowed::{Allowed, HostPattern};
pub(crate) use self::resolver::{GuardedResolver, Lookup, system};
pub use self::target::Targets;
use crate::error::Error;

/// The setting that lets a refused address through.
const ALLOW: &str = "egress.allow";
/// The setting that confines requests to some hosts.
const ONLY_HOSTS: &str = "egress.only_hosts";
const MAX_URL: usize = 8192;

/// What the operator has set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Egress {
    /// Networks, addresses and hosts that may be reached although their addresses are not public.
    pub allow: Vec<Allowed>,
    /// If there are any, no other host is reached.
    pub only_hosts: Vec<HostPattern>,
}

/// Decides what may be reached. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    egress: Arc<Egress>,
}

impl Guard {
    /// A guard with the operator's settings.
    pub fn new(egress: Egress) -> Self {
        Guard { egress: Arc::new(egress) }
    }

    /// The same guard, which also lets requests to the host of `url` through. For addresses that the operator's own
    /// configuration names.
    #[must_use]
    pub fn trusting(&self, url: &str) -> Self {
        let mut egress = Egress::clone(&self.egress);
        egress.allow.extend(Allowed::host_of(url));
        Guard::new(egress)
    }

    /// Checks a URL when it is handed in, so that its sender hears at once what is wrong. Names are looked up when
    /// they are dialled, and checked again then.
    pub fn check(&self, url: &str) -> Result<(), Error> {
        if url.len() > MAX_URL {
            let problem = format!("the URL has {} bytes; at most {MAX_URL} are allowed", url.len());
            return Err(Error::Invalid { host: String::new(), problem });
        }
        let (url, host) = crate::web_url::parse_url(url)?;
        self.check_url(&url).map_err(|refusal| refusal.into_error(&host))
    }

    fn check_url(&self, url: &Url) -> Result<(), Refusal> {
        if !url.username().is_empty() || url.password().is_some() {
            let problem = "a user name or password stands before its host; send it as a header";
            return Err(Refusal { address: None, problem: problem.to_owned() });
        }
        let Some(host) = url.host() else { return Ok(()) };
        self.check_host(&host)?;
        match host {
            Host::Domain(_) => Ok(()),
            Host::Ipv4(address) => self.check_literal(&host, address.into()),
            Host::Ipv6(address) => self.check_literal(&host, address.into()),
        }
    }

    /// Whether the operator has listed a host.
    fn lists(&self, host: &str) -> bool {
        self.egress.allow.iter().any(|allowed| allowed.covers_host(host))
    }

    fn check_host(&self, host: &Host<&str>) -> Result<(), Refusal> {
        let only_hosts = &self.egress.only_hosts;
        let name = host.to_string();
        if only_hosts.is_empty()
            || only_hosts.iter().any(|pattern| pattern.matches(&name))
            || self.lists(&name)
        {
            return Ok(());
        }
        let problem = format!(
            "it is not on the operator's list; {ONLY_HOSTS} in the configuration would have to name it"
        );
        Err(Refusal { address: None, problem })
    }

    fn check_literal(&self, host: &Host<&str>, address: IpAddr) -> Result<(), Refusal> {
        self.check_address(&host.to_string(), address)
    }

    /// Checks an address that a host has.
    fn check_address(&self, host: &str, address: IpAddr) -> Result<(), Refusal> {
        let Some(kind) = address::kind_if_not_public(address) else { return Ok(()) };
        let canonical = address.to_canonical();
        if self.egress.allow.iter().any(|allowed| allowed.covers_host(host) || allowed.covers(canonical)) {
            return Ok(());
        }
        let problem = format!(
            "{address} is {kind}; {ALLOW} in the configuration would have to list the address, its network or the host"
        );
        Err(Refusal { address: Some(address), problem })
    }
}

/// Why the guard lets something not through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    address: Option<IpAddr>,
    problem: String,
}

impl Refusal {
    /// For a host whose address was looked up: who named the host is not told what it resolves to.
    pub(crate) fn of_looked_up_host(self) -> Self {
        let problem = format!(
            "its address is not one of the internet; {ALLOW} in the configuration would have to list the host, its address \
             or its network"
        );
        Refusal { problem, ..self }
    }

    pub(crate) fn into_error(self, host: &str) -> Error {
        Error::Refused { host: host.to_owned(), address: self.address, problem: self.problem }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Refusal {}
