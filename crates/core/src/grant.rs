//! Permissions that outlive one call, as the log and the store keep them.
//!
//! A grant is kept as text. The name of a tool and `danger:KEY` were there first; commands that match a pattern are
//! `command:` followed by JSON.

use serde::{Deserialize, Serialize};

const DANGER: &str = "danger:";
const COMMAND: &str = "command:";

/// Something that a person allowed for longer than one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Every call of a tool, except dangerous ones.
    Tool(String),
    /// Commands with this danger.
    Danger(String),
    /// Commands of a tool that match a pattern.
    Command(CommandGrant),
}

/// Commands of a tool that match a pattern and have no dangers besides those that the person saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandGrant {
    /// The tool that runs the commands.
    pub tool: String,
    /// The pattern, such as `git push *`.
    pub pattern: String,
    /// The keys of the dangers that the person was told about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dangers: Vec<String>,
}

impl CommandGrant {
    /// The text that the log and the store keep.
    pub fn to_text(&self) -> String {
        let json = serde_json::json!({ "tool": self.tool, "pattern": self.pattern, "dangers": self.dangers });
        format!("{COMMAND}{json}")
    }

    /// Whether the person saw every danger in this list when they allowed the pattern.
    pub fn covers<'a>(&self, mut dangers: impl Iterator<Item = &'a str>) -> bool {
        dangers.all(|key| self.dangers.iter().any(|allowed| allowed == key))
    }
}

impl Grant {
    /// Reads what the log or the store kept.
    pub fn parse(text: &str) -> Grant {
        if let Some(key) = text.strip_prefix(DANGER) {
            return Grant::Danger(key.to_owned());
        }
        let command = text.strip_prefix(COMMAND).and_then(|json| serde_json::from_str(json).ok());
        command.map_or_else(|| Grant::Tool(text.to_owned()), Grant::Command)
    }

    /// The pattern grant that this text is, if it is one.
    pub fn command(text: &str) -> Option<CommandGrant> {
        match Grant::parse(text) {
            Grant::Command(grant) => Some(grant),
            Grant::Tool(_) | Grant::Danger(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_read_back_as_they_were_kept() {
        let command = CommandGrant {
            tool: "terminal".to_owned(),
            pattern: "git push *".to_owned(),
            dangers: vec!["git_force_push".to_owned()],
        };
        assert_eq!(Grant::command(&command.to_text()), Some(command.clone()));
        assert_eq!(Grant::parse("terminal"), Grant::Tool("terminal".to_owned()));
        assert_eq!(Grant::parse("danger:shred"), Grant::Danger("shred".to_owned()));
        assert_eq!(Grant::parse("command:nonsense"), Grant::Tool("command:nonsense".to_owned()));
        assert!(command.covers(["git_force_push"].into_iter()));
        assert!(!command.covers(["git_force_push", "shred"].into_iter()));
    }
}
