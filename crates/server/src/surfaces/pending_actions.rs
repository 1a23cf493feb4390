//! What a paused turn waits for, as every surface shows it. Only the times are named after each surface's own custom.

use jiff::Timestamp;
use petasos_core::state::{ActionKind, PendingAction};
use petasos_engine::SessionDetail;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::confirmation::Confirmation;

/// The fields of a pending action that have the same names on all surfaces.
#[derive(Serialize, JsonSchema)]
pub(super) struct ActionFields {
    id: String,
    r#type: ActionType,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    choices: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Value>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    confirmation: Option<Confirmation>,
}

/// The kinds of answers that a turn can wait for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ActionType {
    ToolConfirmation,
    CustomTool,
    Clarify,
    Sudo,
    Secret,
}

impl From<ActionKind> for ActionType {
    fn from(kind: ActionKind) -> Self {
        match kind {
            ActionKind::ToolConfirmation => ActionType::ToolConfirmation,
            ActionKind::CustomTool => ActionType::CustomTool,
            ActionKind::Clarify => ActionType::Clarify,
            ActionKind::Sudo => ActionType::Sudo,
            ActionKind::Secret => ActionType::Secret,
        }
    }
}

/// A pending action with its times: when it was raised, and when it is no longer waited for.
pub(super) struct TimedAction {
    pub(super) fields: ActionFields,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Option<Timestamp>,
}

/// All actions that the turn of a session waits for, in the order in which they were raised.
pub(super) fn pending_actions(detail: &SessionDetail) -> impl Iterator<Item = TimedAction> {
    let SessionDetail { header, state, .. } = detail;
    let expires_at = state.turn.as_ref().and_then(|turn| turn.expires_at);
    let has_user = header.lasting_user().is_some();
    state.pending().map(move |action| TimedAction {
        fields: ActionFields::of(&action, has_user),
        created_at: action.call.created_at,
        expires_at,
    })
}

impl ActionFields {
    fn of(action: &PendingAction<'_>, has_user: bool) -> Self {
        let call = action.call;
        let field = |name: &str| Some(call.input.get(name).cloned().unwrap_or_default());
        let shown = ActionFields {
            id: action.id.to_owned(),
            r#type: action.kind.into(),
            tool: None,
            input: None,
            question: None,
            choices: None,
            name: None,
            confirmation: None,
        };
        match action.kind {
            ActionKind::ToolConfirmation => ActionFields {
                tool: Some(call.tool.clone()),
                input: Some(call.input.clone()),
                confirmation: Some(Confirmation::of(call, has_user)),
                ..shown
            },
            ActionKind::CustomTool | ActionKind::Sudo => {
                ActionFields { tool: Some(call.tool.clone()), input: Some(call.input.clone()), ..shown }
            }
            ActionKind::Clarify => {
                ActionFields { question: field("question"), choices: field("choices"), ..shown }
            }
            ActionKind::Secret => ActionFields { name: field("name"), question: field("prompt"), ..shown },
        }
    }
}
