//! Reads `config.yaml`, and says where it is wrong.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

use super::file::File;
use crate::yaml;

/// Whether a file must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// It was asked for by name.
    Required,
    /// It is looked for in its usual place.
    Optional,
}

/// Reads the file. One that need not be there and is not, is empty.
pub(super) fn read(path: &Path, presence: Presence) -> Result<File> {
    match fs::read_to_string(path) {
        Ok(text) => parse(&text, path),
        Err(error) if error.kind() == ErrorKind::NotFound && presence == Presence::Optional => {
            Ok(File::default())
        }
        Err(error) => Err(error).with_context(|| format!("cannot read the configuration {}", path.display())),
    }
}

fn parse(text: &str, path: &Path) -> Result<File> {
    // A file of nothing but comments is `null`, which is a file that says nothing.
    let file: Option<File> = yaml::parse(text, &path.display().to_string())?;
    Ok(file.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        match parse(text, Path::new("/etc/config.yaml")) {
            Ok(_) => panic!("this should be refused: {text}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn empty_files_and_comments_say_nothing() {
        for text in ["", "# nothing\n", "{}", "providers:\nlimits:\n"] {
            assert!(parse(text, Path::new("x")).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place() {
        let text = problem("listen: 127.0.0.1:1\nlimits:\n  turn_second: 4\n");
        assert!(text.starts_with("/etc/config.yaml:3:"), "{text}");
        assert!(text.contains("unknown key \"turn_second\"; did you mean turn_seconds?"), "{text}");
    }

    #[test]
    fn wrong_values_are_named_with_their_place() {
        let text = problem("limits:\n  tool_seconds: -1\n");
        assert!(text.starts_with("/etc/config.yaml:2:"), "{text}");
        assert!(text.contains("greater than 0"), "{text}");
        let text = problem("providers:\n  x: { kind: openia }\n");
        assert!(text.contains("did you mean openai?"), "{text}");
        assert!(problem("limits: { turn_model_calls: 0 }").contains("config.yaml:1:"));
    }

    #[test]
    fn a_key_is_not_repeated() {
        let text = problem("providers:\n  openai: { api_key: [sk-secret-1234] }\n");
        assert!(!text.contains("sk-secret"), "{text}");
        let text = problem("providers:\n  openai: { api_key: sk-secret-1234, base: 3 }\n");
        assert!(!text.contains("sk-secret"), "{text}");
    }
}
