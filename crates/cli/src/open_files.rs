//! How many files and connections the system lets this process have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Takes all that the system allows. Shells start programs with a low limit for the sake of old ones that would break
/// with more; a server needs one for each connection.
pub(crate) fn allow_as_many_as_possible() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map(|()| hard));
    match raised {
        Ok(limit) => tracing::debug!(limit, "open files"),
        Err(error) => tracing::warn!(%error, "the limit of open files stays as it is"),
    }
}
