//! `request_secret`: asks the user for a value that the model must not see. It runs nothing: the turn pauses until the
//! value comes, and commands of the session then find it in their environment.

use petasos_core::model::ToolSpec;
use serde_json::{Map, Value, json};

/// The tool's name.
pub const NAME: &str = "request_secret";

const MAX_NAME: usize = 64;
const MAX_PROMPT_CHARS: usize = 2_000;

/// Variables that decide what a command runs, rather than being of use to it.
const RESERVED: [&str; 9] =
    ["PATH", "HOME", "SHELL", "USER", "IFS", "ENV", "BASH_ENV", "PYTHONPATH", "NODE_OPTIONS"];

/// A request for a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretWanted {
    /// The environment variable that will hold it.
    pub name: String,
    /// What the user is told.
    pub prompt: String,
}

/// How the model is told about it.
pub fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Ask the user for a secret. You never see it: later terminal commands have it as $name."
            .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "environment variable" },
                "prompt": { "type": "string", "description": "what it is for" },
            },
            "required": ["name", "prompt"],
        })
        .into(),
    }
}

/// Reads the arguments of a call.
pub fn parse(input: &Map<String, Value>) -> Result<SecretWanted, String> {
    let text = |field: &str| input.get(field).and_then(Value::as_str).map(str::trim).unwrap_or_default();
    let (name, prompt) = (text("name"), text("prompt"));
    if !is_variable(name) {
        return Err(format!(
            "name must be an environment variable of at most {MAX_NAME} letters, digits and '_'"
        ));
    }
    if RESERVED.contains(&name) || name.starts_with("LD_") || name.starts_with("PETASOS_") {
        return Err(format!("{name} is not for secrets; choose another name"));
    }
    if prompt.is_empty() || prompt.chars().count() > MAX_PROMPT_CHARS {
        return Err(format!(
            "prompt must say what the secret is for, in at most {MAX_PROMPT_CHARS} characters"
        ));
    }
    Ok(SecretWanted { name: name.to_owned(), prompt: prompt.to_owned() })
}

fn is_variable(name: &str) -> bool {
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    starts && name.len() <= MAX_NAME && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_or_named() {
        let read =
            |name: &str, prompt: &str| parse(json!({ "name": name, "prompt": prompt }).as_object().unwrap());
        let wanted = SecretWanted { name: "GH_TOKEN".into(), prompt: "To push.".into() };
        assert_eq!(read(" GH_TOKEN ", "To push."), Ok(wanted));
        for name in ["", "1A", "A-B", "A=B", "PATH", "LD_PRELOAD", "PETASOS_API_KEY", &"A".repeat(65)] {
            assert!(read(name, "Why").is_err(), "{name}");
        }
        assert!(read("TOKEN", " ").is_err());
        assert!(parse(&Map::new()).is_err());
    }
}
