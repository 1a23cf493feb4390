//! What the system can do of what the settings ask for.

use std::path::{Path, PathBuf};

use crate::backend::PATH;
use crate::confine;
use crate::settings::{Backend, Fallback, Settings};

/// What the system can do of what the settings ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What confines commands.
    pub backend: &'static str,
    /// Why it cannot, if so.
    pub missing: Option<String>,
    /// Whether commands run all the same then.
    pub fallback: Fallback,
    /// What it does.
    pub has: Vec<String>,
    /// What it cannot do here, although it confines.
    pub lacks: Vec<String>,
}

impl Report {
    /// Looks at the system.
    pub(crate) fn of(settings: &Settings) -> Self {
        let mut report = Report {
            backend: name(&settings.backend),
            missing: None,
            fallback: settings.fallback,
            has: Vec::new(),
            lacks: Vec::new(),
        };
        match &settings.backend {
            Backend::Landlock => match confine::probe() {
                Ok(found) => (report.has, report.lacks) = (found.has, found.lacks),
                Err(why) => report.missing = Some(why),
            },
            Backend::Bubblewrap => report.needs("bwrap", settings),
            Backend::Docker { .. } => report.needs("docker", settings),
            Backend::Unconfined => report.lacks.push("commands can do whatever the server can".to_owned()),
        }
        report
    }

    fn needs(&mut self, program: &str, settings: &Settings) {
        match find_in(settings.env.get("PATH").map_or(PATH, String::as_str), program) {
            Some(path) => self.has.push(path.display().to_string()),
            None => self.missing = Some(format!("the program {program} is not installed")),
        }
    }
}

fn name(backend: &Backend) -> &'static str {
    match backend {
        Backend::Landlock => "landlock",
        Backend::Bubblewrap => "bubblewrap",
        Backend::Docker { .. } => "docker",
        Backend::Unconfined => "none",
    }
}

/// Finds a program where commands find theirs.
pub fn find(program: &str) -> Option<PathBuf> {
    find_in(PATH, program)
}

fn find_in(path: &str, program: &str) -> Option<PathBuf> {
    path.split(':').map(|directory| Path::new(directory).join(program)).find(|path| path.is_file())
}
