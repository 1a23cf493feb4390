//! What others say in a conversation: people beside the agent, and the application.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Payload of `person.message`: what a person who is not the user says to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonMessage {
    /// What is said.
    pub text: String,
    /// What the person is called; none if it is said in the agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// What the application knows the person by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author_id: Option<String>,
    /// The application's own tags, which the model does not see.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl PersonMessage {
    /// What the model reads.
    pub fn told(&self) -> String {
        match &self.author {
            Some(author) => format!("[{author}, a person of the team, answered the user]\n{}", self.text),
            None => format!("[A person of the team answered the user in your name]\n{}", self.text),
        }
    }
}

/// Payload of `person.note`: what a person says to the agent, unseen by the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonNote {
    /// What is said.
    pub text: String,
    /// What the person is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Whether the agent is to act on it at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opens_turn: bool,
    /// The application's own tags, which the model does not see.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl PersonNote {
    /// What the model reads.
    pub fn told(&self) -> String {
        let from = self.author.as_deref().map(|author| format!(" from {author}")).unwrap_or_default();
        format!("[Internal note{from}; the user does not see it]\n{}", self.text)
    }
}

/// Payload of `application.event`: what an application adds for its own readers. The model does not see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApplicationEvent {
    /// Who the application says it is from.
    pub source: String,
    /// What it adds.
    pub content: ApplicationContent,
    /// The application's own tags.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// What an application adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ApplicationContent {
    /// Anything.
    Custom {
        /// The application's own data.
        data: Value,
    },
    /// How far somebody is who is not the agent.
    Status {
        /// The status.
        status: String,
        /// The application's own data.
        data: Map<String, Value>,
    },
}
