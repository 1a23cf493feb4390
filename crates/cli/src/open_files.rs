//! How many files and connections the system lets this process have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// How many connections a server may have open: three quarters of its files. The rest is for the database, commands,
/// models and deliveries, so that a crowd of clients cannot stop what is going on.
pub(crate) fn max_connections() -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft);
    usize::try_from(limit / 4 * 3).unwrap_or(usize::MAX).clamp(1, petasos_server::MAX_CONNECTIONS)
}

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
