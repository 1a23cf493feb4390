//! What must be true of a routine's definition, whatever else there is.

use petasos_core::routine::{MAX_TIMEOUT_MILLIS, RoutineAgent, RoutineDefinition};
use petasos_net::HostPattern;
use serde_json::Value;

use super::cron::Timetable;
use super::schema::schema_problem;
use crate::error::{Error, Result};

/// The most model calls that a run may make.
const MAX_ITERATIONS: u32 = 1000;

/// Checks a definition, and names the field that is wrong.
pub fn check(definition: &RoutineDefinition) -> Result<()> {
    schema("input_schema", &definition.input_schema)?;
    schema("output_schema", &definition.output_schema)?;
    schema("output_schema", &definition.closed_output_schema())?;
    if definition.timeout_millis().is_none() {
        let days = MAX_TIMEOUT_MILLIS / (24 * 3600 * 1000);
        return Err(invalid("timeout_seconds", format!("must be more than 0 and at most {days} days")));
    }
    if !(1..=MAX_ITERATIONS).contains(&definition.max_engine_iterations) {
        return Err(invalid("max_engine_iterations", format!("must be from 1 to {MAX_ITERATIONS}")));
    }
    for (index, host) in definition.callback_url_allowlist.iter().enumerate() {
        if let Err(problem) = host.parse::<HostPattern>() {
            return Err(invalid(format!("callback_url_allowlist[{index}]"), problem));
        }
    }
    if let RoutineAgent::Inline(agent) = &definition.agent
        && agent.model.is_empty()
    {
        return Err(invalid("agent.model", "must name a model as provider/model"));
    }
    if let Some(schedule) = &definition.schedule {
        Timetable::new(schedule).map_err(|problem| invalid("schedule", problem))?;
    }
    Ok(())
}

/// A schema describes an object, whose fields can be checked.
fn schema(field: &str, schema: &Value) -> Result<()> {
    if !schema.is_object() {
        return Err(invalid(field, "must be a JSON Schema, which is an object"));
    }
    schema_problem(schema).map_or(Ok(()), |problem| Err(invalid(field, problem)))
}

pub(super) fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Error {
    Error::Invalid { field: field.into(), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problem(fields: Value) -> String {
        let mut definition = json!({ "agent": "helper" });
        for (name, value) in fields.as_object().unwrap() {
            definition[name] = value.clone();
        }
        match check(&serde_json::from_value(definition).unwrap()) {
            Ok(()) => "fine".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_field_that_is_wrong_is_named() {
        assert_eq!(problem(json!({})), "fine");
        for (fields, field) in [
            (json!({ "input_schema": { "type": "objekt" } }), "input_schema: "),
            (json!({ "output_schema": [] }), "output_schema: "),
            (json!({ "output_schema": { "$ref": "https://example.com/schema.json" } }), "output_schema: "),
            (json!({ "output_schema": { "$ref": "#/$defs/gone" } }), "output_schema: "),
            (json!({ "timeout_seconds": 0 }), "timeout_seconds: "),
            (json!({ "max_engine_iterations": 0 }), "max_engine_iterations: "),
            (json!({ "callback_url_allowlist": ["a.example", "https://b"] }), "callback_url_allowlist[1]: "),
            (json!({ "agent": { "model": "" } }), "agent.model: "),
            (json!({ "schedule": { "cron": "61 * * * *" } }), "schedule: "),
            (json!({ "schedule": { "cron": "* * * * *", "timezone": "Mars/Olympus" } }), "schedule: "),
        ] {
            assert!(problem(fields.clone()).starts_with(field), "{fields}: {}", problem(fields.clone()));
        }
    }
}
