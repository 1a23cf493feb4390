//! What can go wrong on the way out.

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
    /// The answer is longer than the caller allows.
    #[error("the answer of {host} is longer than {max} bytes")]
    TooLarge {
        /// The host that answered.
        host: String,
        /// The bound that it broke.
        max: usize,
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
        let host = host.to_owned();
        if error.is_connect() && error.is_timeout() {
            Error::Timeout { host }
        } else if error.is_connect() {
            Error::Connect { host, problem: innermost(&error) }
        } else if error.is_builder() {
            Error::Invalid { host, problem: innermost(&error) }
        } else {
            Error::Lost { host, problem: innermost(&error) }
        }
    }
}

/// The last error of the chain: the others only say that there is a further one.
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
