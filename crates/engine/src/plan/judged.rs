//! What a tool says about a call before anybody is asked.

use std::sync::Arc;

use petasos_core::ids::TenantId;
use petasos_tools::{Risk, Tool};
use serde_json::{Map, Value};

/// Reading a command that is longer takes so long that no thread may do it on which others wait.
const LONG: usize = 4096;
/// What the model is told if its call cannot be judged.
const NOT_JUDGED: &str = "This call is not made: whether it is safe could not be found out.";

/// What a tool says about a call.
pub(super) struct Judged {
    /// Why it is not for this tenant.
    pub(super) refusal: Option<String>,
    /// The command that needs a password.
    pub(super) sudo: Option<String>,
    pub(super) risk: Risk,
    /// What a person may allow besides the tool.
    pub(super) patterns: Vec<String>,
}

impl Judged {
    fn of(tool: &dyn Tool, input: &Map<String, Value>, tenant: &TenantId) -> Judged {
        let refusal = tool.refusal(input, tenant);
        let sudo = tool.sudo_command(input).filter(|_| refusal.is_none());
        Judged { refusal, sudo, risk: tool.risk(input), patterns: tool.patterns(input) }
    }
}

/// Judges a call.
pub(super) async fn judge(tool: &Arc<dyn Tool>, input: &Map<String, Value>, tenant: &TenantId) -> Judged {
    let length: usize = input.values().filter_map(Value::as_str).map(str::len).sum();
    if length <= LONG {
        return Judged::of(tool.as_ref(), input, tenant);
    }
    let (tool, input, tenant) = (Arc::clone(tool), input.clone(), tenant.clone());
    let judged = tokio::task::spawn_blocking(move || Judged::of(tool.as_ref(), &input, &tenant)).await;
    judged.unwrap_or_else(|_| Judged {
        refusal: Some(NOT_JUDGED.to_owned()),
        sudo: None,
        risk: Risk::Ordinary,
        patterns: Vec::new(),
    })
}
