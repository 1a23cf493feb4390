//! Routines as files: every `routines/*.yaml` (or `.yml`, `.json`) of the home is a routine of the tenant `default`,
//! and the file's name is its id.
//!
//! A new or changed file makes the routine what it says. A broken file is a warning with its name and line, and leaves
//! what was there; a removed one leaves its routine as it is, as with agents: removing a routine is a command.

use std::path::Path;

use anyhow::{Result, anyhow};
use petasos_core::ids::{RoutineId, TenantId};
use petasos_core::routine::RoutineDefinition;
use petasos_engine::{Engine, Error, RoutinePut};

use crate::definition_files::{Defined, DefinitionFiles, parse, place};

/// The files and what was last seen of them.
pub(crate) type RoutineFiles = DefinitionFiles<RoutineDefinition>;

impl Defined for RoutineDefinition {
    type Id = RoutineId;
    const WHAT: &'static str = "a routine";

    fn parse(text: &str, path: &Path) -> Result<Self> {
        let definition = parse(text, path)?;
        petasos_engine::check_routine(&definition).map_err(|error| located(&error, text, path))?;
        Ok(definition)
    }

    async fn put(self, engine: &Engine, id: &RoutineId, text: &str, path: &Path) -> Result<()> {
        let put = engine.put_routine(&TenantId::default_tenant(), id, self).await;
        if let RoutinePut::Created(_) = put.map_err(|error| located(&error, text, path))? {
            tracing::info!(routine = %id, file = %path.display(), "read a routine from its file");
        }
        Ok(())
    }
}

fn located(error: &Error, text: &str, path: &Path) -> anyhow::Error {
    match error {
        Error::Invalid { field, .. } | Error::EgressDenied { field, .. } => {
            anyhow!("{}: {error}", place(text, path, field))
        }
        error => anyhow!("{}: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(file: &str, text: &str) -> String {
        RoutineDefinition::parse(text, Path::new(file)).unwrap_err().to_string()
    }

    #[test]
    fn yaml_and_json_are_read() {
        let yaml = "title: KYC\nagent: helper\ntimeout_seconds: 30\nschedule:\n  cron: '0 9 * * 1-5'\n";
        let routine = RoutineDefinition::parse(yaml, Path::new("kyc.yaml")).unwrap();
        assert_eq!((routine.title.as_deref(), routine.timeout_millis()), (Some("KYC"), Some(30_000)));
        let inline =
            r#"{"agent":{"model":"demo/echo","instructions":"Decide."},"input_schema":{"type":"object"}}"#;
        assert!(RoutineDefinition::parse(inline, Path::new("kyc.json")).is_ok());
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
