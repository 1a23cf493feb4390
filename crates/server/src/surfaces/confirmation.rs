//! What a person who is asked to allow a call is told: why they are asked, and how much each answer allows.

use petasos_core::event::Danger;
use petasos_core::state::Call;
use schemars::JsonSchema;
use serde::Serialize;

/// The fields of a pending `tool_confirmation` that say what an answer allows.
#[derive(Serialize, JsonSchema)]
pub(super) struct Confirmation {
    /// Why a person is asked; empty if only a policy asks.
    reasons: Vec<Reason>,
    /// Patterns of commands that can be allowed in place of the whole tool, the narrowest first.
    patterns: Vec<String>,
    scopes: Scopes,
}

/// A danger of a call.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConfirmationReason")]
struct Reason {
    /// Names the danger for programs, and never changes.
    key: String,
    text: String,
}

/// What each scope of an answer allows, in a sentence.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConfirmationScopes")]
struct Scopes {
    once: String,
    session: String,
    always: String,
}

impl Confirmation {
    /// What there is to say about a call. `has_user` tells whether `always` can reach beyond the session.
    pub(super) fn of(call: &Call, has_user: bool) -> Self {
        let reasons = call.danger.iter().flat_map(Danger::reasons);
        let reasons = reasons.map(|(key, text)| Reason { key: key.to_owned(), text: text.to_owned() });
        Confirmation {
            reasons: reasons.collect(),
            patterns: call.patterns.clone(),
            scopes: Scopes::of(call, has_user),
        }
    }
}

impl Scopes {
    fn of(call: &Call, has_user: bool) -> Self {
        if call.budget.is_some() {
            let once = "Lets the turn go on until the same budget is used up once more.".to_owned();
            return Scopes { session: once.clone(), always: once.clone(), once };
        }
        let tool = &call.tool;
        let allowed = match &call.danger {
            Some(danger) => {
                let keys: Vec<&str> = danger.pattern_keys().collect();
                format!(
                    "calls with these dangers and no others ({}), whichever tool makes them,",
                    keys.join(", ")
                )
            }
            None => format!("every call of `{tool}` that is not dangerous"),
        };
        let instead = if call.patterns.is_empty() {
            ""
        } else {
            " With `pattern`, allows only commands that match it."
        };
        let for_session = format!("Allows {allowed} until this session ends.{instead}");
        let always = if has_user {
            format!(
                "Allows {allowed} in every session of this agent with this user, until the grant is revoked.{instead}"
            )
        } else {
            format!("Same as `session`, because the session has no user. {for_session}")
        };
        Scopes { once: format!("Allows this one call of `{tool}`."), session: for_session, always }
    }
}
