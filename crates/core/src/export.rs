//! A session in a file: a header, and after it the events of the log, one JSON text per line.
//!
//! Files are kept and read by later releases, so their shape changes only by addition.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::AgentVersion;
use crate::session::SessionHeader;

/// What the first line of a file says that it is.
pub const FORMAT: &str = "petasos.session";
/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// What a file is, read before anything else of its first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`], for what is written now.
    pub version: u32,
}

impl Format {
    /// The format that is written.
    pub fn current() -> Self {
        Format { format: FORMAT.to_owned(), version: VERSION }
    }

    /// Whether this release can read it.
    pub fn is_known(&self) -> bool {
        *self == Format::current()
    }
}

/// The first line of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportHeader {
    /// What the file is.
    #[serde(flatten)]
    pub format: Format,
    /// The session.
    pub session: SessionHeader,
    /// The title before the first event.
    pub title: Option<String>,
    /// The metadata before the first event.
    pub metadata: Map<String, Value>,
    /// How many events follow, so that a file that was cut is not taken for a whole one.
    pub last_sequence: u64,
    /// The version of the agent that the session stays with.
    pub agent: AgentVersion,
}
