//! What a turn waits for from outside.

use serde::{Deserialize, Serialize};

use super::{Call, CallKind, Progress};

/// Something that a turn waits for from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingAction<'a> {
    /// What the answer refers to.
    pub id: &'a str,
    /// What kind of answer it takes.
    pub kind: ActionKind,
    /// The call that raised it.
    pub call: &'a Call,
}

/// The kinds of answers that a turn can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// `user.tool_confirmation`
    ToolConfirmation,
    /// `user.custom_tool_result`
    CustomTool,
    /// `user.clarify_result`
    Clarify,
    /// `user.sudo_result`
    Sudo,
    /// `user.secret_result`
    Secret,
}

impl ActionKind {
    /// The event that answers it.
    pub fn answered_by(self) -> &'static str {
        match self {
            ActionKind::ToolConfirmation => "user.tool_confirmation",
            ActionKind::CustomTool => "user.custom_tool_result",
            ActionKind::Clarify => "user.clarify_result",
            ActionKind::Sudo => "user.sudo_result",
            ActionKind::Secret => "user.secret_result",
        }
    }
}

impl Call {
    /// What it waits for from outside.
    pub(super) fn actions(&self) -> impl Iterator<Item = PendingAction<'_>> {
        let kind = match self.kind {
            CallKind::Builtin | CallKind::Mcp => ActionKind::ToolConfirmation,
            CallKind::Custom => ActionKind::CustomTool,
            CallKind::Clarify => ActionKind::Clarify,
            CallKind::Secret => ActionKind::Secret,
        };
        let own =
            (self.progress == Progress::Waiting).then_some(PendingAction { id: &self.id, kind, call: self });
        let may_start = matches!(self.progress, Progress::Waiting | Progress::Ready);
        let sudo = self.sudo.as_ref().filter(|sudo| may_start && !sudo.answered).map(|sudo| PendingAction {
            id: &sudo.request_id,
            kind: ActionKind::Sudo,
            call: self,
        });
        own.into_iter().chain(sudo)
    }
}
