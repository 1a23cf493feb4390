//! Routines as files: every `routines/*.yaml` (or `.yml`, `.json`) of the home is a routine of the tenant `default`,
//! and the file's name is its id.
//!
//! A new or changed file makes the routine what it says. A broken file is a warning with its name and line, and leaves
//! what was there; a removed one leaves its routine as it is, as with agents: removing a routine is a command.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use petasos_core::ids::{RoutineId, TenantId};
use petasos_core::routine::RoutineDefinition;
use petasos_engine::{Engine, Error, RoutinePut};

use crate::definition_files::{DefinitionFiles, POLL, list, parse, place};

/// The files and what was last seen of them.
pub(crate) struct RoutineFiles {
    files: DefinitionFiles,
    /// What was last said about files that cannot be used yet.
    told: HashMap<PathBuf, String>,
}

impl RoutineFiles {
    /// Names the directory, which need not be there.
    pub(crate) fn new(directory: PathBuf) -> Self {
        RoutineFiles { files: DefinitionFiles::new(directory, "a routine"), told: HashMap::new() }
    }

    /// Reads the files that are new or changed since the last time, and makes the routines what they say.
    pub(crate) async fn sync(&mut self, engine: &Engine) {
        for definition in tokio::task::block_in_place(|| self.files.changed()) {
            let path = definition.path.clone();
            let text = match definition.read(|text, path| Ok((text.to_owned(), read(text, path)?))) {
                Ok((id, (text, routine))) => put(engine, &id, routine, &text, &path).await.err(),
                Err(error) => Some(Unusable::ForGood(format!("{error:#}"))),
            };
            match text {
                None => drop(self.told.remove(&path)),
                Some(unusable) => self.tell(path, unusable),
            }
        }
    }

    /// Says once what is wrong with a file.
    fn tell(&mut self, path: PathBuf, unusable: Unusable) {
        let problem = match unusable {
            Unusable::ForGood(problem) => problem,
            Unusable::ForNow(problem) => {
                self.files.look_again(&path);
                problem
            }
        };
        if self.told.get(&path) != Some(&problem) {
            tracing::warn!("a routine's file is not used: {problem}");
            self.told.insert(path, problem);
        }
    }

    /// Goes on looking for changes.
    pub(crate) async fn watch(mut self, engine: Engine) {
        loop {
            tokio::time::sleep(POLL).await;
            self.sync(&engine).await;
        }
    }
}

/// Why a file cannot be used.
enum Unusable {
    /// Until it changes.
    ForGood(String),
    /// Until something else changes, such as the agent that it names.
    ForNow(String),
}

/// Reads all files once: each with its routine's id, or what is wrong with it.
pub(crate) fn check(directory: &Path) -> Result<Vec<Result<RoutineId>>> {
    list(directory)?;
    let mut files = DefinitionFiles::new(directory.to_owned(), "a routine");
    Ok(files.changed().into_iter().map(|definition| definition.read(read).map(|(id, _)| id)).collect())
}

/// Reads a definition, and says in which line it is wrong.
fn read(text: &str, path: &Path) -> Result<RoutineDefinition> {
    let definition = parse(text, path)?;
    petasos_engine::check_routine(&definition).map_err(|error| located(&error, text, path))?;
    Ok(definition)
}

fn located(error: &Error, text: &str, path: &Path) -> anyhow::Error {
    match error {
        Error::Invalid { field, .. } | Error::EgressDenied { field, .. } => {
            anyhow!("{}: {error}", place(text, path, field))
        }
        error => anyhow!("{}: {error}", path.display()),
    }
}

async fn put(
    engine: &Engine,
    id: &RoutineId,
    definition: RoutineDefinition,
    text: &str,
    path: &Path,
) -> Result<(), Unusable> {
    match engine.put_routine(&TenantId::default_tenant(), id, definition).await {
        Ok(RoutinePut::Created(_)) => {
            tracing::info!(routine = %id, file = %path.display(), "read a routine from its file");
            Ok(())
        }
        Ok(RoutinePut::Replaced(_)) => Ok(()),
        Err(error) => Err(Unusable::ForNow(located(&error, text, path).to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(file: &str, text: &str) -> String {
        read(text, Path::new(file)).unwrap_err().to_string()
    }

    #[test]
    fn yaml_and_json_are_read() {
        let yaml = "title: KYC\nagent: helper\ntimeout_seconds: 30\nschedule:\n  cron: '0 9 * * 1-5'\n";
        let routine = read(yaml, Path::new("kyc.yaml")).unwrap();
        assert_eq!((routine.title.as_deref(), routine.timeout_millis()), (Some("KYC"), Some(30_000)));
        let inline =
            r#"{"agent":{"model":"demo/echo","instructions":"Decide."},"input_schema":{"type":"object"}}"#;
        assert!(read(inline, Path::new("kyc.json")).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let wrong = problem("kyc.yaml", "agent: helper\ninput_schema:\n  type: objekt\n");
        assert!(wrong.starts_with("kyc.yaml:2: input_schema: "), "{wrong}");
        let wrong = problem("kyc.yaml", "agent: helper\noutput_shema: {}\n");
        assert!(wrong.starts_with("kyc.yaml:2:") && wrong.contains("did you mean output_schema?"), "{wrong}");
        let wrong = problem("kyc.yaml", "title: KYC\n");
        assert!(wrong.contains("agent"), "{wrong}");
        let wrong = problem("kyc.yaml", "agent: helper\nschedule:\n  cron: never\n");
        assert!(wrong.starts_with("kyc.yaml:2: schedule: "), "{wrong}");
        assert!(problem("kyc.json", "{\n\"agent\": }").starts_with("kyc.json:2:"));
    }
}
