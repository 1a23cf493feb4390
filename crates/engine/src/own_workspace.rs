//! The workspace of a session that shares it with no other, and the commands that run there. They go with the session.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use petasos_core::ids::{SessionId, TenantId};
use petasos_core::recovery::WorkKind;
use petasos_core::session::SessionHeader;
use petasos_tools::{FileOwner, RemovalProgress, SessionWorkspace, Workspaces};

use crate::engine::Shared;

/// How often it is tried to remove files while a command still makes some. One that is killed ends within moments.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_millis(50);
/// How long files are removed in one go.
const PIECE: Duration = Duration::from_secs(2);
/// When a removal that failed is tried again, at first and later on.
const FIRST_RETRY: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

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
    report(own, on_pool(shared, own, Workspaces::note_removal).await);
}

/// Removes the files, if the session is gone indeed. What fails is tried again later; the note is there until then.
pub(crate) async fn remove(shared: &Arc<Shared>, own: &SessionWorkspace) {
    if let Err(error) = try_to_remove(shared, own).await {
        report(own, Err(error));
        shared.tasks.spawn(retry(Arc::clone(shared), own.clone()));
    }
}

async fn try_to_remove(shared: &Shared, own: &SessionWorkspace) -> io::Result<()> {
    let found = shared.store.session(&own.tenant, &own.session_id).await;
    match found.map_err(io::Error::other)? {
        None => until_nobody_writes(|| remove_in_pieces(shared, own)).await,
        Some(_) => on_pool(shared, own, Workspaces::forget_removal).await,
    }
}

/// Removes the files in pieces of bounded time, so that the server can stop in between. The next start goes on.
async fn remove_in_pieces(shared: &Shared, own: &SessionWorkspace) -> io::Result<()> {
    while !shared.stopping.is_cancelled() {
        let piece = |workspaces: &Workspaces, own: &SessionWorkspace| {
            workspaces.remove_until(own, Instant::now() + PIECE)
        };
        if on_pool(shared, own, piece).await? == RemovalProgress::Removed {
            return Ok(());
        }
    }
    Ok(())
}

/// Tries again after growing pauses, until it is done or the server stops.
async fn retry(shared: Arc<Shared>, own: SessionWorkspace) {
    let mut pause = FIRST_RETRY;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.closing.cancelled() => return,
        }
        match try_to_remove(&shared, &own).await {
            Ok(()) => return,
            Err(error) => report(&own, Err(error)),
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Removes what a server left that died in between.
pub(crate) async fn remove_noted(shared: Arc<Shared>) {
    let set_aside = &shared.recovery.set_aside;
    for own in noted(&shared).await {
        if !set_aside.holds(WorkKind::Removal, &own.tenant, own.session_id.as_str()) {
            remove(&shared, &own).await;
        }
    }
}

/// What is still to be removed.
pub(crate) async fn noted(shared: &Shared) -> Vec<SessionWorkspace> {
    let Some(workspaces) = shared.tools.workspaces().cloned() else { return Vec::new() };
    let pool = workspaces.pool().clone();
    pool.run(&owner(""), move || workspaces.noted_removals()).await.unwrap_or_default()
}

/// Removes the files of one session, if that is still to be done. If it works, the removal is not set aside any more.
pub(crate) async fn remove_if_noted(shared: &Arc<Shared>, tenant: &TenantId, session_id: &SessionId) {
    let is_it = |own: &SessionWorkspace| own.tenant == *tenant && own.session_id == *session_id;
    let Some(own) = noted(shared).await.into_iter().find(is_it) else { return };
    remove(shared, &own).await;
    if !noted(shared).await.iter().any(is_it) {
        shared.recovery.set_aside.succeeded(WorkKind::Removal, tenant, session_id.as_str());
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

/// Runs `work` where a disk that does not answer holds up nobody else.
async fn on_pool<T: Default + Send + 'static>(
    shared: &Shared,
    own: &SessionWorkspace,
    work: fn(&Workspaces, &SessionWorkspace) -> io::Result<T>,
) -> io::Result<T> {
    let Some(workspaces) = shared.tools.workspaces().cloned() else { return Ok(T::default()) };
    let (pool, owner, own) = (workspaces.pool().clone(), owner(own.tenant.as_str()), own.clone());
    let worked = pool.run(&owner, move || work(&workspaces, &own)).await;
    worked.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn owner(tenant: &str) -> FileOwner {
    FileOwner { tenant: tenant.to_owned(), workspace: "removals".to_owned() }
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
