//! What a conversation has besides its messages: who answers, what the application has read, and what is known about
//! the customer.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const MAX_LABELS: usize = 64;
const MAX_LABEL_CHARS: usize = 256;

/// Who answers the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The agent does.
    #[default]
    Auto,
    /// A person does: what the user says is kept, and starts no turn, then or later.
    Manual,
}

/// Payload of `session.conversation_changed`: what is there is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConversationChange {
    /// Who answers from now on. A person who takes over ends the turn under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How far the application has read, as it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_offset: Option<u64>,
    /// The application's own marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeSet<String>>,
}

impl ConversationChange {
    /// A change of who answers.
    pub fn mode(mode: Mode) -> Self {
        ConversationChange { mode: Some(mode), ..ConversationChange::default() }
    }
}

/// Labels to add and to take away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelChange {
    /// Those to add.
    pub add: BTreeSet<String>,
    /// Those to take away, which wins.
    pub remove: BTreeSet<String>,
}

impl LabelChange {
    /// Labels after the change.
    pub fn made_to(&self, labels: &BTreeSet<String>) -> BTreeSet<String> {
        labels.union(&self.add).filter(|label| !self.remove.contains(*label)).cloned().collect()
    }
}

/// Says what is wrong with labels, if anything.
pub fn labels_problem(labels: &BTreeSet<String>) -> Option<String> {
    let fits = |label: &String| (1..=MAX_LABEL_CHARS).contains(&label.chars().count());
    (labels.len() > MAX_LABELS || !labels.iter().all(fits))
        .then(|| format!("must be at most {MAX_LABELS}, of 1 to {MAX_LABEL_CHARS} characters each"))
}

/// Payload of `session.customer_variables`: what is known about the customer when a turn opens, if it is not what the
/// turn before was told.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CustomerVariables {
    /// All values, by name.
    pub variables: Map<String, Value>,
}

impl CustomerVariables {
    /// What the model reads.
    pub fn told(&self) -> String {
        if self.variables.is_empty() {
            return "[Nothing is known about the customer any more]".to_owned();
        }
        let line = |(name, value): (&String, &Value)| match value {
            Value::String(text) => format!("\n{name}: {text}"),
            value => format!("\n{name}: {value}"),
        };
        let lines: String = self.variables.iter().map(line).collect();
        format!("[What is known about the customer]{lines}")
    }
}

/// What folding the log makes of all this.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Conversation {
    /// Who answers.
    pub mode: Mode,
    /// How far the application has read, as it counts; none before it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_offset: Option<u64>,
    /// The application's own marks.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
    /// What the model was last told about the customer.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
}

impl Conversation {
    /// Whether nothing was ever said about it.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Conversation::default()
    }

    pub(crate) fn change(&mut self, change: &ConversationChange) {
        self.mode = change.mode.unwrap_or(self.mode);
        self.client_offset = change.client_offset.or(self.client_offset);
        if let Some(labels) = &change.labels {
            self.labels.clone_from(labels);
        }
    }
}
