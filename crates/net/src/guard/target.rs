//! Where a delivery may go on a caller's word.
//!
//! A delivery carries a bearer token, so the rules are stricter than those for reading a web page.

use url::Url;

use super::{ALLOW, Guard, Refusal};
use crate::error::Error;

/// Decides where deliveries may go: to targets on the internet over https, and to those that the operator lists. Cheap
/// to clone.
#[derive(Debug, Clone)]
pub struct Targets {
    guard: Guard,
}

impl Targets {
    /// Targets that the guard lets through.
    pub fn new(guard: Guard) -> Self {
        Targets { guard }
    }

    /// The guard, for the client that dials.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Checks a URL. Names are looked up when they are dialled, and their addresses are checked then.
    pub fn check(&self, url: &str) -> Result<(), Error> {
        self.guard.check(url)?;
        if !is_absolute(url) {
            let problem = "it must begin with https:// and a host, without blanks around it".to_owned();
            return Err(Error::Invalid { host: String::new(), problem });
        }
        let (url, host) = crate::web_url::parse_url(url)?;
        self.check_url(&url).map_err(|refusal| refusal.into_error(&host))
    }

    fn check_url(&self, url: &Url) -> Result<(), Refusal> {
        let refuse = |problem: String| Err(Refusal { address: None, problem });
        let host = url.host_str().unwrap_or_default();
        if self.guard.lists(host) {
            return Ok(());
        }
        if url.scheme() != "https" {
            return refuse(format!(
                "it must be reached over https, unless {ALLOW} in the configuration lists it"
            ));
        }
        if is_this_machine(host) {
            return refuse(format!(
                "it is a name of this machine; {ALLOW} in the configuration would have to list it"
            ));
        }
        Ok(())
    }
}

/// Whether a URL is written out. Parsers repair what is not, each in its own way, so that a caller could mean another
/// target than the one that is checked.
fn is_absolute(url: &str) -> bool {
    let after_slashes = url.split_once(':').and_then(|(_, rest)| rest.strip_prefix("//"));
    let has_host = after_slashes.is_some_and(|rest| !rest.starts_with(['/', '\\']));
    has_host && url.trim() == url && !url.contains(char::is_control)
}

/// Whether a name stands for the machine that looks it up.
fn is_this_machine(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let first = host.split('.').next().unwrap_or_default();
    host.ends_with(".localhost") || matches!(first, "localhost" | "ip6-localhost" | "ip6-loopback")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Egress;

    fn targets(allow: &[&str]) -> Targets {
        let allow = allow.iter().map(|text| text.parse().unwrap()).collect();
        Targets::new(Guard::new(Egress { allow, only_hosts: Vec::new() }))
    }

    #[test]
    fn targets_on_the_internet_need_https() {
        let targets = targets(&[]);
        for url in ["https://example.com/hook", "https://not-there-yet.example/", "https://1.1.1.1/"] {
            assert_eq!(targets.check(url), Ok(()), "{url}");
        }
        for url in [
            "http://example.com/hook",
            "http://1.1.1.1/",
            "https://localhost/",
            "https://LOCALHOST.:8443/",
            "https://a.localhost/",
            "https://localhost.localdomain/",
            "https://ip6-loopback/",
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[::7f00:1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
            "https://169.254.169.254/latest/meta-data",
            "https://100.64.0.1/",
            "https://192.0.2.1/",
            "https://224.0.0.1/",
            "https://0.0.0.0/",
            "https://user@example.com/",
            "https://user:word@example.com/",
            "https://example.com@127.0.0.1/",
        ] {
            let refused = targets.check(url);
            assert!(matches!(refused, Err(Error::Refused { .. })), "{url}: {refused:?}");
        }
        for url in [
            "",
            "/hook",
            "//example.com/hook",
            "example.com/hook",
            "ftp://example.com/",
            "https://",
            "https:///example.com",
            "https:example.com",
            "https:/example.com?x=://y",
            "https:\\\\example.com",
            "https://\\example.com",
            " https://example.com/",
            "https://example.com/ ",
            "https://example.com/\n",
            "https://exam\tple.com/",
        ] {
            assert!(matches!(targets.check(url), Err(Error::Invalid { .. })), "{url:?}");
        }
    }

    #[test]
    fn listed_targets_may_be_anywhere() {
        let targets = targets(&["127.0.0.1", "10.0.0.0/8", "localhost", "hooks.internal", "*.corp.example"]);
        for url in [
            "http://127.0.0.1:9000/hook",
            "http://10.1.2.3/",
            "http://localhost:9000/",
            "http://hooks.internal/",
            "https://a.corp.example/",
        ] {
            assert_eq!(targets.check(url), Ok(()), "{url}");
        }
        for url in ["http://example.com/", "http://corp.example/", "http://127.0.0.2/", "http://u@127.0.0.1/"]
        {
            assert!(targets.check(url).is_err(), "{url}");
        }
    }
}
