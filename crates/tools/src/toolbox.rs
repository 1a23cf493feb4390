//! The tools that a server has.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::todo::Todo;
use crate::tool::Tool;

/// Tools by name.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: BTreeMap<String, Arc<dyn Tool>>,
}

impl Toolbox {
    /// The built-in tools.
    pub fn builtin() -> Self {
        let mut toolbox = Toolbox::default();
        toolbox.add(Todo);
        toolbox
    }

    /// Adds a tool, in place of one of the same name.
    pub fn add(&mut self, tool: impl Tool) {
        self.tools.insert(tool.spec().name, Arc::new(tool));
    }

    /// The tool of that name; `shell` is `terminal`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(canonical_name(name))
    }

    /// All tools, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.values()
    }
}

/// The name under which a tool is known, for a name that a model or a definition may use.
pub fn canonical_name(name: &str) -> &str {
    match name {
        "shell" => "terminal",
        name => name,
    }
}

/// Every name that a definition may use for a tool.
pub fn all_names(name: &str) -> Vec<&str> {
    match canonical_name(name) {
        "terminal" => vec!["terminal", "shell"],
        name => vec![name],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_has_an_object_schema_and_a_description() {
        for tool in Toolbox::builtin().iter() {
            let spec = tool.spec();
            assert_eq!(spec.input_schema["type"], "object", "{}", spec.name);
            assert!(!spec.description.is_empty(), "{}", spec.name);
        }
    }
}
