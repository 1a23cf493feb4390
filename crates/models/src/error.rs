//! Why a model did not answer.

use std::time::Duration;

use petasos_core::event::Failure;

/// Why a model did not answer, with a stable code for programs and a text for people.
///
/// The text names the provider and model, the cause and the cure. It never holds a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// One of the constants of this type.
    pub code: &'static str,
    /// What happened and what to do.
    pub message: String,
    /// Whether the answer had begun, with text, reasoning or a tool call.
    pub began: bool,
    pub(crate) retry: Retry,
}

/// Whether another attempt makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// It would end in the same way.
    Never,
    /// It may work, after this time if the provider named one.
    After(Option<Duration>),
}

impl Error {
    /// No connection, or it was lost.
    pub const UNREACHABLE: &str = "model_unreachable";
    /// Nothing came for too long.
    pub const TIMEOUT: &str = "model_timeout";
    /// Too many requests, or the account's quota is used up.
    pub const RATE_LIMITED: &str = "model_rate_limited";
    /// The key was not accepted.
    pub const UNAUTHORIZED: &str = "model_unauthorized";
    /// The provider does not know the model, or the base URL is wrong.
    pub const NOT_FOUND: &str = "model_not_found";
    /// The provider did not accept the request.
    pub const BAD_REQUEST: &str = "model_bad_request";
    /// The conversation is longer than the model can read.
    pub const CONTEXT_TOO_LONG: &str = Failure::CONTEXT_TOO_LONG;
    /// The provider has a problem of its own.
    pub const OVERLOADED: &str = "model_overloaded";
    /// What came back is not the provider's protocol.
    pub const BAD_RESPONSE: &str = "model_bad_response";
    /// The answer is larger than we accept.
    pub const OUTPUT_TOO_LARGE: &str = "model_output_too_large";
    /// There is no provider of this name, or the name is not `provider/model`.
    pub const UNKNOWN_PROVIDER: &str = "model_unknown_provider";
    /// The provider needs a key and none is set.
    pub const MISSING_KEY: &str = "model_missing_key";

    /// An error that another attempt would not cure.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Error { code, message: message.into(), began: false, retry: Retry::Never }
    }

    /// An error that another attempt may cure.
    pub(crate) fn passing(code: &'static str, message: impl Into<String>) -> Self {
        Error { code, message: message.into(), began: false, retry: Retry::After(None) }
    }
}
