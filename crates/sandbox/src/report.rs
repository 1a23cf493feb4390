//! What the system can do of what the settings ask for.

use std::path::{Path, PathBuf};

use crate::backend::PATH;
use crate::confine;
use crate::namespaces::Namespaces;
use crate::promises::{self, Promise};
use crate::settings::{Backend, Fallback, Settings};

/// What the system can do of what the settings ask for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// What confines commands.
    pub backend: &'static str,
    /// Why it cannot, if so.
    pub missing: Option<String>,
    /// Whether commands run all the same then.
    pub fallback: Fallback,
    /// What it does.
    pub has: Vec<String>,
    /// What holds for commands, and what does not.
    pub promises: Vec<Promise>,
}

impl Report {
    /// Looks at the system.
    pub(crate) fn of(settings: &Settings, namespaces: Option<Namespaces>, has_groups: bool) -> Self {
        let mut report = Report {
            backend: name(&settings.backend),
            missing: None,
            fallback: settings.fallback,
            has: Vec::new(),
            promises: Vec::new(),
        };
        match &settings.backend {
            Backend::Landlock => match confine::probe(settings.kernel.landlock_abi) {
                Ok(found) => {
                    report.has = found.has;
                    report.has.extend(namespaces.map(|_| "a view of the files of its own".to_owned()));
                    let processes = namespaces.filter(|namespaces| namespaces.processes);
                    report.has.extend(processes.map(|_| "processes of its own".to_owned()));
                    report.has.extend(has_groups.then(|| "a control group of its own".to_owned()));
                    report.promises = promises::of_kernel(settings, namespaces, found.landlock_abi);
                }
                Err(why) => report.missing = Some(why),
            },
            Backend::Bubblewrap => report.needs("bwrap", settings),
            Backend::Docker { .. } => report.needs("docker", settings),
            Backend::Unconfined => {}
        }
        if report.missing.is_some() {
            report.promises = match settings.fallback {
                Fallback::Refuse => promises::of_refusal(settings),
                Fallback::Unconfined => {
                    promises::of_program(&Settings { backend: Backend::Unconfined, ..settings.clone() })
                }
            };
        } else if settings.backend != Backend::Landlock {
            report.promises = promises::of_program(settings);
        }
        if has_groups && report.missing.is_none() {
            promises::keep_by_groups(&mut report.promises);
        }
        report
    }

    /// How much holds: `full`, `partial` or `none`.
    pub fn level(&self) -> &'static str {
        let unconfined =
            self.backend == "none" || (self.missing.is_some() && self.fallback == Fallback::Unconfined);
        match self.promises.iter().all(|promise| promise.kept) {
            _ if unconfined => "none",
            true => "full",
            false => "partial",
        }
    }

    /// What does not hold.
    pub fn broken(&self) -> impl Iterator<Item = &'static str> {
        self.promises.iter().filter(|promise| !promise.kept).map(|promise| promise.promise)
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
