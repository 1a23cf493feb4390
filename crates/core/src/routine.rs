//! A routine: an autonomous job with input and output schemas.

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value, json};

use crate::agent::{McpServer, ToolEntry, built_in_tools};
use crate::ids::{AgentId, RoutineId, TenantId};
use crate::model_settings::ModelSettings;

/// A routine as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutineRecord {
    /// Names it.
    pub id: RoutineId,
    /// Whose it is.
    pub tenant: TenantId,
    /// What it is.
    pub definition: RoutineDefinition,
    /// When it was first kept.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Every due time of its schedule up to this one has been dealt with.
    pub scheduled_through: Timestamp,
}

/// What a routine does, and within which bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoutineDefinition {
    /// What people call it.
    #[serde(default)]
    pub title: Option<String>,
    /// What is to be done. It joins the agent's instructions.
    #[serde(default)]
    pub description: Option<String>,
    /// Who does it: the id of an agent, or an agent of the routine's own.
    pub agent: RoutineAgent,
    /// JSON Schema (2020-12) of the input.
    #[serde(default = "any_object")]
    pub input_schema: Value,
    /// JSON Schema (2020-12) of the output. Its top level is closed unless it says otherwise.
    #[serde(default = "any_open_object")]
    pub output_schema: Value,
    /// How long a run may take, from its acceptance.
    #[serde(default = "default_timeout")]
    #[cfg_attr(feature = "schema", schemars(with = "f64", range(min = 0)))]
    pub timeout_seconds: Number,
    /// How many model calls a run may make.
    #[serde(default = "default_iterations")]
    pub max_engine_iterations: u32,
    /// What happens when a tool call fails.
    #[serde(default)]
    pub on_tool_error: OnToolError,
    /// Hosts; if there are any, callbacks go nowhere else.
    #[serde(default)]
    pub callback_url_allowlist: Vec<String>,
    /// When it runs by itself.
    #[serde(default)]
    pub schedule: Option<Schedule>,
}

/// Who does the work of a routine.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum RoutineAgent {
    /// An agent that is there.
    Named(AgentId),
    /// An agent of the routine's own.
    Inline(InlineAgent),
}

impl<'de> Deserialize<'de> for RoutineAgent {
    /// Says what is wrong with the kind of agent that was meant, which a derived implementation does not.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(id) => id.parse().map(RoutineAgent::Named).map_err(D::Error::custom),
            inline => serde_json::from_value(inline).map(RoutineAgent::Inline).map_err(D::Error::custom),
        }
    }
}

/// An agent that a routine brings along.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InlineAgent {
    /// The model, as `provider/model`.
    pub model: String,
    /// How the model is asked.
    #[serde(default, alias = "model_settings", skip_serializing_if = "ModelSettings::is_empty")]
    pub model_settings: ModelSettings,
    /// What it is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// Its tools, as in the definition of an agent.
    #[serde(default = "built_in_tools", skip_serializing_if = "are_built_in_tools")]
    pub tools: Vec<ToolEntry>,
    /// Its MCP servers, as in the definition of an agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<McpServer>,
}

fn are_built_in_tools(tools: &[ToolEntry]) -> bool {
    *tools == built_in_tools()
}

/// What happens to a run when a tool call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnToolError {
    /// The model is told, and goes on.
    #[default]
    Continue,
    /// The run fails.
    Fail,
}

/// When a routine runs by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// A cron expression of five fields, or of six with seconds first.
    pub cron: String,
    /// The time zone that it is read in, by its IANA name.
    #[serde(default = "utc")]
    pub timezone: String,
    /// The input of its runs.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// Where its runs report; none for nowhere.
    #[serde(default)]
    pub callback_url: Option<String>,
    /// What becomes of due times that passed while the server was down.
    #[serde(default)]
    pub missed: Missed,
}

/// What becomes of due times that passed while the server was down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// Nothing.
    #[default]
    Skip,
    /// One run, for the newest of them.
    Latest,
}

impl RoutineDefinition {
    /// The schema that output is held to: at its top level nothing is allowed that it does not name, unless it says
    /// something about that itself. What it requires is named.
    pub fn closed_output_schema(&self) -> Value {
        let mut schema = self.output_schema.clone();
        let Some(fields) = schema.as_object_mut() else { return schema };
        if fields.contains_key("additionalProperties") || fields.contains_key("unevaluatedProperties") {
            return schema;
        }
        // What other parts of the schema name is allowed too, which only this keyword sees.
        let composed = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"];
        let keyword = if composed.iter().any(|name| fields.contains_key(*name)) {
            "unevaluatedProperties"
        } else {
            "additionalProperties"
        };
        fields.insert(keyword.to_owned(), false.into());
        for name in fields.get("required").and_then(Value::as_array).cloned().into_iter().flatten() {
            let properties = fields.entry("properties").or_insert_with(|| json!({}));
            if let (Value::Object(properties), Value::String(name)) = (properties, name) {
                properties.entry(name).or_insert_with(|| json!({}));
            }
        }
        schema
    }

    /// How long a run may take, in milliseconds.
    pub fn timeout_millis(&self) -> Option<u64> {
        let millis = (self.timeout_seconds.as_f64()? * 1000.0).ceil();
        // The bound keeps the conversion exact.
        (millis >= 1.0 && millis <= MAX_TIMEOUT_MILLIS as f64).then_some(millis as u64)
    }
}

/// The longest that a run may take: 30 days.
pub const MAX_TIMEOUT_MILLIS: u64 = 30 * 24 * 3600 * 1000;

fn any_object() -> Value {
    json!({ "type": "object" })
}

fn any_open_object() -> Value {
    json!({ "type": "object", "additionalProperties": true })
}

fn default_timeout() -> Number {
    60.into()
}

fn default_iterations() -> u32 {
    5
}

fn utc() -> String {
    "UTC".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(output_schema: Value) -> RoutineDefinition {
        serde_json::from_value(json!({ "agent": "a", "output_schema": output_schema })).unwrap()
    }

    #[test]
    fn output_is_closed_unless_the_schema_says_otherwise() {
        let closed = |schema: Value| definition(schema).closed_output_schema();
        assert_eq!(closed(json!({ "type": "object" }))["additionalProperties"], false);
        assert_eq!(closed(json!({ "additionalProperties": true }))["additionalProperties"], true);
        let composed = closed(json!({ "$ref": "#/$defs/x", "$defs": { "x": {} } }));
        assert_eq!(
            (&composed["unevaluatedProperties"], composed.get("additionalProperties")),
            (&json!(false), None)
        );
        assert_eq!(closed(json!(true)), json!(true));
    }

    #[test]
    fn what_output_must_have_it_may_have() {
        let schema = json!({ "required": ["a", "b"], "properties": { "a": { "type": "string" } } });
        let closed = definition(schema).closed_output_schema();
        assert_eq!(closed["properties"], json!({ "a": { "type": "string" }, "b": {} }));
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let routine: RoutineDefinition = serde_json::from_value(json!({ "agent": "a" })).unwrap();
        assert_eq!(routine.timeout_millis(), Some(60_000));
        assert_eq!(routine.max_engine_iterations, 5);
        assert_eq!(routine.closed_output_schema()["additionalProperties"], true);
        for wrong in [json!(0), json!(-1), json!(1e12)] {
            let routine = json!({ "agent": "a", "timeout_seconds": wrong });
            let routine: RoutineDefinition = serde_json::from_value(routine).unwrap();
            assert_eq!(routine.timeout_millis(), None);
        }
    }
}
