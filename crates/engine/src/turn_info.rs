//! What hooks are told about the session and the turn that they run for.

use std::path::PathBuf;

use petasos_core::ids::SessionId;
use petasos_core::session::SessionHeader;
use petasos_hooks::TurnInfo;

use crate::engine::Shared;

/// The turn `turn_id` of a session, which is empty outside a turn. `root` is the session whose workspace it works in.
pub(crate) fn turn_info(
    shared: &Shared,
    header: &SessionHeader,
    model: &str,
    root: &SessionId,
    turn_id: String,
) -> TurnInfo {
    TurnInfo {
        tenant: header.tenant.clone(),
        session_id: header.id.clone(),
        agent_id: header.agent_id.clone(),
        user_id: header.user_id.clone(),
        turn_id,
        platform: header.platform.clone(),
        model: model.to_owned(),
        workspace: workspace(shared, header, root),
    }
}

/// Where a session's tools work. Nobody asks but hooks.
fn workspace(shared: &Shared, header: &SessionHeader, root: &SessionId) -> PathBuf {
    match shared.tools.workspaces().filter(|_| !shared.hooks.is_empty()) {
        Some(workspaces) => workspaces.path(&header.tenant, &header.agent_id, header.lasting_user(), root),
        None => PathBuf::new(),
    }
}
