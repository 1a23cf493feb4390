//! Options: what an agent lets each session choose, and how the choices reach its instructions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Something that a session can choose about its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentOption {
    /// What kind of value it takes.
    #[serde(flatten)]
    pub kind: OptionKind,
    /// Unique in the agent. The value of a secret option reaches tools as the environment variable of this name.
    pub name: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What holds unless a session chooses. Everybody who may see the agent sees it.
    #[serde(default)]
    pub default: String,
}

/// The kinds of options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OptionKind {
    /// Any text.
    Text,
    /// A text that only tools get to see.
    Secret,
    /// One of these.
    Select {
        /// The choices.
        options: Vec<String>,
    },
}

const MAX_OPTIONS: usize = 64;
const MAX_NAME: usize = 64;
const MAX_CHOICES: usize = 256;
/// The most characters that the value of an option may have.
pub const MAX_OPTION_CHARS: usize = 20_000;

impl AgentOption {
    /// Whether nobody but tools may see its value.
    pub fn is_secret(&self) -> bool {
        self.kind == OptionKind::Secret
    }

    /// Says what is wrong with a value, if anything.
    pub fn value_problem(&self, value: &str) -> Option<String> {
        match &self.kind {
            OptionKind::Select { options } if !options.iter().any(|option| option == value) => {
                Some(format!("{value:?} is not one of {}", options.join(", ")))
            }
            _ if value.chars().count() > MAX_OPTION_CHARS => {
                Some(format!("has more than {MAX_OPTION_CHARS} characters"))
            }
            _ => None,
        }
    }
}

/// Says which option cannot be used and why: a path below `options`, and the problem.
pub(crate) fn options_problem(options: &[AgentOption]) -> Option<(String, String)> {
    if options.len() > MAX_OPTIONS {
        let problem = format!("has {} entries; at most {MAX_OPTIONS} are allowed", options.len());
        return Some(("options".to_owned(), problem));
    }
    options.iter().enumerate().find_map(|(index, option)| {
        let at = |field: &str, problem: String| Some((format!("options[{index}].{field}"), problem));
        if !is_variable_name(&option.name) {
            let problem = format!(
                "{:?} must be 1 to {MAX_NAME} letters, digits or '_', and not start with a digit",
                option.name
            );
            return at("name", problem);
        }
        if options[..index].iter().any(|earlier| earlier.name == option.name) {
            return at("name", format!("{:?} is used twice", option.name));
        }
        if let OptionKind::Select { options } = &option.kind
            && (options.is_empty() || options.len() > MAX_CHOICES)
        {
            return at("options", format!("must hold 1 to {MAX_CHOICES} choices"));
        }
        option.value_problem(&option.default).and_then(|problem| at("default", problem))
    })
}

/// Whether a text can name an environment variable.
fn is_variable_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Instructions with `{{options.name}}` replaced by the value that holds. A secret option becomes the name of its
/// environment variable, `$name`; what names no option stays as it is.
pub fn fill_in(instructions: &str, options: &[AgentOption], chosen: &BTreeMap<String, String>) -> String {
    const OPEN: &str = "{{options.";
    let mut filled = String::with_capacity(instructions.len());
    let mut rest = instructions;
    while let Some(start) = rest.find(OPEN) {
        let (before, from_open) = rest.split_at(start);
        filled.push_str(before);
        let name = from_open[OPEN.len()..].split_once("}}").map(|(name, _)| name.trim());
        let option = name.and_then(|name| options.iter().find(|option| option.name == name));
        match (option, from_open.find("}}")) {
            (Some(option), Some(end)) => {
                match option.is_secret() {
                    true => filled.extend(["$", &option.name]),
                    false => filled.push_str(chosen.get(&option.name).unwrap_or(&option.default)),
                }
                rest = &from_open[end + 2..];
            }
            _ => {
                filled.push_str(OPEN);
                rest = &from_open[OPEN.len()..];
            }
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn options(value: Value) -> Vec<AgentOption> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn values_and_defaults_fill_the_instructions() {
        let options = options(json!([
            { "type": "text", "name": "tone", "default": "kind" },
            { "type": "select", "name": "lang", "options": ["en", "de"], "default": "en" },
            { "type": "secret", "name": "API_KEY", "default": "" },
        ]));
        let chosen = BTreeMap::from([("lang".to_owned(), "{{options.tone}}".to_owned())]);
        let fill = |text| fill_in(text, &options, &chosen);
        assert_eq!(fill("Be {{options.tone}}."), "Be kind.");
        assert_eq!(
            fill("{{ options.tone }} {{options.other}} {{options.tone"),
            "{{ options.tone }} {{options.other}} {{options.tone"
        );
        assert_eq!(fill("{{options. lang }}"), "{{options.tone}}", "a value is text, not a template");
        assert_eq!(fill("curl -H $H {{options.API_KEY}}"), "curl -H $H $API_KEY");
        assert_eq!(fill("{{options.{{options.tone}}"), "{{options.kind");
    }

    #[test]
    fn options_that_cannot_be_used_are_named() {
        let field = |value| options_problem(&options(value)).map(|(field, _)| field);
        assert_eq!(
            field(json!([{ "type": "text", "name": "a" }, { "type": "secret", "name": "B_1" }])),
            None
        );
        assert_eq!(field(json!([{ "type": "text", "name": "a-b" }])).as_deref(), Some("options[0].name"));
        assert_eq!(field(json!([{ "type": "text", "name": "1" }])).as_deref(), Some("options[0].name"));
        let twice = json!([{ "type": "text", "name": "a" }, { "type": "text", "name": "a" }]);
        assert_eq!(field(twice).as_deref(), Some("options[1].name"));
        let empty = json!([{ "type": "select", "name": "a", "options": [], "default": "x" }]);
        assert_eq!(field(empty).as_deref(), Some("options[0].options"));
        let other = json!([{ "type": "select", "name": "a", "options": ["y"], "default": "x" }]);
        assert_eq!(field(other).as_deref(), Some("options[0].default"));
    }
}
