//! `emit_output`: the call that ends a run.

use petasos_core::model::ToolSpec;
use petasos_core::run::{EMIT_OUTPUT, RunError, RunErrorCode, RunJob};
use petasos_core::step::Emitted;
use serde_json::{Map, Value, json};

use super::schema::{self, CheckError};

/// Keywords that mean something else inside of another schema.
const ROOTED: [&str; 5] = ["\"$ref\"", "\"$id\"", "\"$defs\"", "\"$anchor\"", "\"$dynamicRef\""];

/// How the model is told about it.
pub(crate) fn spec(job: &RunJob) -> ToolSpec {
    let schema = job.output_schema.to_string();
    let mut description =
        "Hands in the result and ends the routine. Call it once, when you are done.".to_owned();
    let output = if ROOTED.iter().any(|keyword| schema.contains(keyword)) {
        description.push_str(&format!(" The output must fit this JSON Schema: {schema}"));
        json!({ "type": "object" })
    } else {
        job.output_schema.clone()
    };
    let output_json =
        json!({ "type": "string", "description": "The output as JSON text, instead of output." });
    let input_schema = json!({
        "type": "object",
        "properties": { "output": output, "output_json": output_json },
    });
    ToolSpec { name: EMIT_OUTPUT.to_owned(), description, input_schema: input_schema.into() }
}

/// What a call comes to.
pub(crate) async fn emitted(job: &RunJob, input: &Map<String, Value>) -> Emitted {
    let output = match parse(input) {
        Ok(output) => Value::Object(output),
        Err(problem) => return Emitted::Unreadable(problem),
    };
    match (schema::check(&job.output_schema, &output).await, output) {
        (Ok(()), Value::Object(output)) => Emitted::Fits(output),
        (Ok(()), _) => Emitted::Unreadable("The output must be an object.".to_owned()),
        // A release that did not check took it in.
        (Err(CheckError::Schema(problem)), _) => {
            Emitted::Breaks(RunError::new(RunErrorCode::EngineError, format!("output_schema: {problem}")))
        }
        (Err(CheckError::Value(mismatch)), _) => {
            let error = RunError::new(RunErrorCode::OutputValidationFailed, mismatch.message);
            Emitted::Breaks(error.with("path", mismatch.path).with("schema_path", mismatch.schema_path))
        }
    }
}

fn parse(input: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    match (input.get("output"), input.get("output_json")) {
        // Models fill in what they need not: the same said twice is said once.
        (Some(Value::Object(output)), text) if text.is_none_or(|text| repeats(text, output)) => {
            Ok(output.clone())
        }
        (None | Some(Value::Null), Some(Value::String(text))) => match serde_json::from_str(text) {
            Ok(Value::Object(output)) => Ok(output),
            Ok(_) => Err("output_json must be the text of a JSON object.".to_owned()),
            Err(error) => Err(format!("output_json is not JSON: {error}.")),
        },
        _ => Err("Call it with output, an object, or with output_json, the text of one.".to_owned()),
    }
}

/// Whether `output_json` says nothing, or what `output` says.
fn repeats(text: &Value, output: &Map<String, Value>) -> bool {
    match text {
        Value::Null => true,
        Value::String(text) if text.trim().is_empty() => true,
        Value::String(text) => {
            serde_json::from_str::<Map<String, Value>>(text).is_ok_and(|same| same == *output)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(output_schema: Value) -> RunJob {
        serde_json::from_value(json!({
            "output_schema": output_schema, "timeout_seconds": 60, "max_model_calls": 5,
        }))
        .unwrap()
    }

    async fn called(input: Value) -> Emitted {
        let schema = json!({ "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": { "a": { "type": "integer" } } });
        emitted(&job(schema), input.as_object().unwrap()).await
    }

    #[tokio::test]
    async fn output_comes_as_an_object_or_as_its_text() {
        let expected = Emitted::Fits(Map::from_iter([("a".to_owned(), json!(1))]));
        assert_eq!(called(json!({ "output": { "a": 1 } })).await, expected);
        assert_eq!(called(json!({ "output_json": "{\"a\": 1}" })).await, expected);
        for repeated in [json!(null), json!(""), json!(" "), json!("{\"a\": 1}")] {
            assert_eq!(called(json!({ "output": { "a": 1 }, "output_json": repeated })).await, expected);
        }
        for wrong in [
            json!({}),
            json!({ "output": "x" }),
            json!({ "output": { "a": 1 }, "output_json": "{}" }),
            json!({ "output": { "a": 1 }, "output_json": "{" }),
            json!({ "output": { "a": 1 }, "output_json": {} }),
            json!({ "output_json": "{" }),
            json!({ "output_json": "[1]" }),
            json!({ "a": 1 }),
        ] {
            assert!(matches!(called(wrong.clone()).await, Emitted::Unreadable(_)), "{wrong}");
        }
    }

    #[tokio::test]
    async fn output_that_breaks_its_schema_says_where() {
        let Emitted::Breaks(error) = called(json!({ "output": { "a": "x" } })).await else {
            panic!("it fits")
        };
        assert_eq!(error.code, RunErrorCode::OutputValidationFailed);
        assert_eq!(
            Value::Object(error.details),
            json!({ "path": ["a"], "schema_path": ["properties", "a", "type"] })
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_is_told_as_text() {
        let own = json!({ "type": "object" });
        assert_eq!(spec(&job(own.clone())).input_schema["properties"]["output"], own);
        let referring = spec(&job(json!({ "$ref": "#/$defs/x", "$defs": { "x": { "type": "object" } } })));
        assert!(referring.description.contains("$defs"));
        assert_eq!(referring.input_schema["properties"]["output"], json!({ "type": "object" }));
    }
}
