//! The workspace of a session that shares it with no other, and the commands that run there. They go with the session.

use std::sync::Arc;

use petasos_core::ids::SessionId;
use petasos_core::session::SessionHeader;
use petasos_tools::{SessionWorkspace, Workspaces};

use crate::engine::Shared;

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
    let noted = own.clone();
    blocking(shared, own, move |workspaces| workspaces.note_removal(&noted)).await;
}

/// Removes the files, if the session is gone indeed.
pub(crate) async fn remove(shared: &Shared, own: &SessionWorkspace) {
    let found = shared.store.session(&own.tenant, &own.session_id).await;
    let removed = own.clone();
    match found {
        Ok(None) => blocking(shared, own, move |workspaces| workspaces.remove(&removed)).await,
        Ok(Some(_)) => blocking(shared, own, move |workspaces| workspaces.forget_removal(&removed)).await,
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

async fn blocking(
    shared: &Shared,
    own: &SessionWorkspace,
    work: impl FnOnce(Workspaces) -> std::io::Result<()> + Send + 'static,
) {
    let Some(workspaces) = shared.tools.workspaces().cloned() else { return };
    if let Ok(Err(error)) = tokio::task::spawn_blocking(move || work(workspaces)).await {
        tracing::warn!(session_id = %own.session_id, %error, "the workspace of a deleted session cannot be removed");
    }
}
