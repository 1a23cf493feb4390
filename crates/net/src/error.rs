//! What can go wrong on the way out.

use std::net::IpAddr;
use std::time::Duration;

use crate::guard::Refusal;

/// Why a request failed. No variant repeats the URL beyond its host, since URLs can carry secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The URL, or a header, cannot be sent at all.
    #[error("the request to {host:?} is not valid: {problem}")]
    Invalid {
        /// The host as far as it could be read.
        host: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No connection could be made: name not found, refused, TLS failed.
    #[error("could not connect to {host}: {problem}")]
    Connect {
        /// The host that was dialled.
        host: String,
        /// What the system said.
        problem: String,
    },
    /// The connection was not made in time.
    #[error("timed out while connecting to {host}")]
    Timeout {
        /// The host that was dialled.
        host: String,
    },
    /// The connection broke while it was in use.
    #[error("the connection to {host} was lost: {problem}")]
    Lost {
        /// The host at the other end.
        host: String,
        /// What the system said.
        problem: String,
    },
    /// The proxy on the way could not be reached, or does not let the request through.
    #[error("could not reach {host}: {problem}")]
    Proxy {
        /// The host that was asked for, and through which proxy.
        host: String,
        /// The proxy, without user and password.
        proxy: String,
        /// What it answered, if it did.
        status: Option<u16>,
        /// What it or the system said.
        problem: String,
    },
    /// The egress guard does not let it through.
    #[error("{host} may not be reached: {problem}")]
    Refused {
        /// The host in the URL.
        host: String,
        /// The address that was refused, if it was that.
        address: Option<IpAddr>,
        /// Why, and which setting would allow it.
        problem: String,
    },
    /// The answer was not complete in time.
    #[error("{host} did not answer within {} s", time.as_secs_f32())]
    Slow {
        /// The host that was asked.
        host: String,
        /// The time that it had.
        time: Duration,
    },
    /// The answer is longer than the caller allows.
    #[error("the answer of {host} is longer than {max} bytes")]
    TooLarge {
        /// The host that answered.
        host: String,
        /// The bound that it broke.
        max: usize,
    },
    /// The answer is compressed in a way that cannot be undone.
    #[error("the answer of {host} cannot be read: {problem}")]
    Encoded {
        /// The host that answered.
        host: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The client itself could not be set up.
    #[error("the HTTP client could not be set up: {problem}")]
    Setup {
        /// What the TLS or HTTP library said.
        problem: String,
    },
}

impl Error {
    /// Sorts an error of the HTTP library.
    pub(crate) fn from_reqwest(error: reqwest::Error, host: &str) -> Self {
        let error = error.without_url();
        if let Some(refusal) = refusal(&error) {
            return refusal.into_error(host);
        }
        let host = host.to_owned();
        if error.is_connect() && error.is_timeout() {
            Error::Timeout { host }
        } else if error.is_connect() {
            Error::Connect { host, problem: tls_problem(&error) }
        } else if error.is_builder() {
            Error::Invalid { host, problem: innermost(&error) }
        } else {
            Error::Lost { host, problem: innermost(&error) }
        }
    }
}

/// The last error of the chain: the others only say that there is a further one.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Why a connection could not be made, with a cure where a certificate is not trusted.
pub(crate) fn tls_problem(error: &(dyn std::error::Error + 'static)) -> String {
    let problem = innermost(error);
    if problem.contains("UnknownIssuer") {
        return format!(
            "{problem}; if a company's own authority has signed the certificate, name the file of that authority in \
             SSL_CERT_FILE or ca_file"
        );
    }
    problem
}

/// What the guard said, if it was the guard.
fn refusal(error: &reqwest::Error) -> Option<Refusal> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(refusal) = error.downcast_ref::<Refusal>() {
            return Some(refusal.clone());
        }
        next = error.source();
    }
    None
}
