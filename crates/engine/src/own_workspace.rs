//! The workspace of a session that shares it with no other, and the commands that run there. They go with the session.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use petasos_core::ids::SessionId;
use petasos_core::session::SessionHeader;
use petasos_tools::{SessionWorkspace, Workspaces};

use crate::engine::Shared;

/// How often it is tried to remove files while a command still makes some. One that is killed ends within moments.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// The workspace of this session alone; none if it belongs to a user, or to the session `root` that it works for.
pub(crate) fn of(header: &SessionHeader, root: &SessionId) -> Option<SessionWorkspace> {
    (header.lasting_user().is_none() && *root == header.id).then(|| SessionWorkspace {
        tenant: header.tenant.clone(),
        agent_id: header.agent_id.clone(),
        session_id: header.id.clone(),
    })
}

/// Ends the commands in the background that nobody can reach any more.
pub(crate) fn end_commands(shared: &Shared, own: &SessionWorkspace) {
    if let Some(workspaces) = shared.tools.workspaces() {
        shared.tools.end_commands(&workspaces.path_of(own));
    }
}

/// Notes that the files are to be removed, before the session is. Without the note they are left if the server dies
/// in between, which is no reason to keep the session.
pub(crate) async fn note_removal(shared: &Shared, own: &SessionWorkspace) {
    report(own, blocking(shared, own, Workspaces::note_removal).await);
}

/// Removes the files, if the session is gone indeed.
pub(crate) async fn remove(shared: &Shared, own: &SessionWorkspace) {
    let found = shared.store.session(&own.tenant, &own.session_id).await;
    match found {
        Ok(None) => report(own, until_nobody_writes(|| blocking(shared, own, Workspaces::remove)).await),
        Ok(Some(_)) => report(own, blocking(shared, own, Workspaces::forget_removal).await),
        // What cannot be known now is looked at again at the next start.
        Err(error) => tracing::warn!(session_id = %own.session_id, %error, "a workspace was not removed"),
    }
}

/// Removes what a server left that died in between.
pub(crate) async fn remove_noted(shared: Arc<Shared>) {
    let Some(workspaces) = shared.tools.workspaces().cloned() else { return };
    let noted = tokio::task::spawn_blocking(move || workspaces.noted_removals()).await;
    for own in noted.unwrap_or_default() {
        remove(&shared, &own).await;
    }
}

/// Tries again while a command that is being ended puts something there: it is told to end and not waited for.
async fn until_nobody_writes<T: Future<Output = io::Result<()>>>(remove: impl Fn() -> T) -> io::Result<()> {
    for _ in 0..TRIES {
        match remove().await {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => tokio::time::sleep(PAUSE).await,
            removed => return removed,
        }
    }
    remove().await
}

async fn blocking(
    shared: &Shared,
    own: &SessionWorkspace,
    work: fn(&Workspaces, &SessionWorkspace) -> io::Result<()>,
) -> io::Result<()> {
    let Some(workspaces) = shared.tools.workspaces().cloned() else { return Ok(()) };
    let own = own.clone();
    tokio::task::spawn_blocking(move || work(&workspaces, &own))
        .await
        .unwrap_or_else(|ended| Err(io::Error::other(ended)))
}

fn report(own: &SessionWorkspace, done: io::Result<()>) {
    if let Err(error) = done {
        tracing::warn!(session_id = %own.session_id, %error, "the workspace of a deleted session cannot be removed");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_command_still_writes_to_is_removed_when_it_has_ended() {
        for (problem, failures, tries) in [
            (ErrorKind::DirectoryNotEmpty, 2, Ok(3)),
            (ErrorKind::DirectoryNotEmpty, usize::MAX, Err(TRIES + 1)),
            (ErrorKind::PermissionDenied, usize::MAX, Err(1)),
        ] {
            let tried = AtomicUsize::new(0);
            let remove = || async {
                let fails = tried.fetch_add(1, Ordering::Relaxed) < failures;
                if fails { Err(problem.into()) } else { Ok(()) }
            };
            let removed = until_nobody_writes(remove).await;
            let tried = tried.load(Ordering::Relaxed);
            assert_eq!(removed.map(|()| tried).map_err(|_: io::Error| tried), tries);
        }
    }
}
