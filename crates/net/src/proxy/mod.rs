//! Proxies: where they are, and which requests go through one.
//!
//! A proxy's user and password are kept as the header that it is sent. They are in no error, and `Debug` and `Display`
//! leave them out.

mod bypass;

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use reqwest::header::HeaderValue;

pub use self::bypass::NoProxy;

/// One proxy, which is reached over HTTP or HTTPS.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    is_https: bool,
    /// Host and port.
    address: String,
    /// The value of `Proxy-Authorization`.
    authorization: Option<HeaderValue>,
}

impl Proxy {
    /// Whether the connection to the proxy itself is encrypted.
    pub(crate) fn is_https(&self) -> bool {
        self.is_https
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The host alone, for its certificate.
    pub(crate) fn host(&self) -> &str {
        self.address.rsplit_once(':').map_or(&self.address, |(host, _)| host)
    }

    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_https { "https" } else { "http" }, self.address)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Proxy {
    type Err = String;

    /// Reads `http://user:password@host:port`. Without a scheme, `http://` is meant. The text is not repeated in
    /// errors, since it may hold a password.
    fn from_str(text: &str) -> Result<Self, String> {
        const EXAMPLE: &str = "write it as http://proxy.example:3128";
        let text = text.trim();
        let scheme = text.split_once("://").map_or("http", |(scheme, _)| scheme).to_ascii_lowercase();
        if scheme.starts_with("socks") {
            return Err(format!(
                "proxies must speak http or https; {scheme}:// is not supported. Name the HTTP proxy, and {EXAMPLE}"
            ));
        }
        let url = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("http://{text}")) };
        let url =
            url.map_err(|error| format!("the address of a proxy must be a URL ({error}); {EXAMPLE}"))?;
        let is_https = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(format!("the scheme of a proxy must be http or https; {EXAMPLE}")),
        };
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(format!("the address of a proxy must have a host; {EXAMPLE}"));
        };
        Ok(Proxy { is_https, address: format!("{host}:{port}"), authorization: basic(&url) })
    }
}

/// The header that tells a user and a password to the one who asks for them, if the URL has them.
pub(crate) fn basic(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Which requests go through a proxy, and through which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// The proxy of requests to `http://` addresses.
    pub http: Option<Proxy>,
    /// The proxy of requests to `https://` addresses.
    pub https: Option<Proxy>,
    /// Hosts that are reached without a proxy.
    pub no_proxy: NoProxy,
    /// Whether addresses that callers and models name are reached through the proxy too. They are looked up and judged
    /// here all the same; the proxy is told the address that was judged, not the name.
    pub callers: bool,
}

impl Proxies {
    /// The proxy of requests to a URL; none if it is reached directly, as this machine always is.
    pub(crate) fn of(&self, url: &Url) -> Option<&Proxy> {
        let proxy = if url.scheme() == "https" { self.https.as_ref() } else { self.http.as_ref() }?;
        let is_direct = bypass::is_this_machine(url) || self.no_proxy.covers(url);
        (!is_direct).then_some(proxy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_or_without_a_scheme() {
        for (text, shown) in [
            ("http://proxy.corp:3128", "http://proxy.corp:3128"),
            ("proxy.corp:3128", "http://proxy.corp:3128"),
            (" proxy.corp ", "http://proxy.corp:80"),
            ("https://Proxy.Corp/", "https://proxy.corp:443"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("ann:secret@proxy.corp:1", "http://proxy.corp:1"),
        ] {
            assert_eq!(text.parse::<Proxy>().unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn user_and_password_are_sent_decoded_and_never_shown() {
        let proxy: Proxy = "http://ann:p%40ss%3Aword@proxy.corp:3128".parse().unwrap();
        let expected = format!("Basic {}", BASE64.encode("ann:p@ss:word"));
        assert_eq!(proxy.authorization().unwrap(), expected.as_str());
        let proxies = Proxies { http: Some(proxy.clone()), ..Proxies::default() };
        for shown in [proxy.to_string(), format!("{proxy:?}"), format!("{proxies:?}")] {
            assert!(shown.contains("proxy.corp:3128"), "{shown}");
            assert!(!shown.contains("ann") && !shown.contains("ss") && !shown.contains("Basic"), "{shown}");
        }
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_being_repeated() {
        for text in [
            "socks5://ann:secret@proxy:1080",
            "SOCKS5H://ann:secret@proxy:1080",
            "ftp://ann:secret@proxy",
            "http://ann:secret@",
            "http://ann:secret@proxy:99999",
            "secret word",
        ] {
            let problem = text.parse::<Proxy>().unwrap_err();
            assert!(problem.contains("http://proxy.example:3128"), "{problem}");
            assert!(!problem.contains("secret") && !problem.contains("ann"), "{problem}");
        }
        let problem = "socks5h://proxy:1080".parse::<Proxy>().unwrap_err();
        assert!(problem.contains("socks5h:// is not supported"), "{problem}");
    }

    #[test]
    fn each_scheme_has_its_proxy_and_this_machine_has_none() {
        let proxies = Proxies {
            http: Some("one:1".parse().unwrap()),
            https: Some("two:2".parse().unwrap()),
            no_proxy: "corp.example".parse().unwrap(),
            callers: false,
        };
        let of = |url: &str| proxies.of(&Url::parse(url).unwrap()).map(ToString::to_string);
        assert_eq!(of("http://models.example/").as_deref(), Some("http://one:1"));
        assert_eq!(of("https://models.example/").as_deref(), Some("http://two:2"));
        for url in [
            "http://localhost:11434/",
            "http://LOCALHOST./",
            "http://api.localhost/",
            "http://127.0.0.1:8080/",
            "http://127.9.9.9/",
            "https://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://0.0.0.0:8080/",
            "https://models.corp.example/",
        ] {
            assert_eq!(of(url), None, "{url}");
        }
    }
}
