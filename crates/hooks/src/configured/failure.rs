//! Why a hook gave no answer.

use std::fmt;

/// Why a hook gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookFailure {
    /// The hook could not be started or reached.
    Unavailable(String),
    /// The hook was asked, and did not answer as it should.
    Failed(String),
}

impl fmt::Display for HookFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HookFailure::Unavailable(why) | HookFailure::Failed(why) => f.write_str(why),
        }
    }
}
