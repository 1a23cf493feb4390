//! How a model is asked: what an agent sets, and what a session puts over it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most fallback models and stop sequences.
const MAX_FALLBACKS: usize = 8;
const MAX_STOP_SEQUENCES: usize = 16;
const MAX_STOP_CHARS: usize = 1_000;
/// The most bytes of `extraBody` as JSON.
const MAX_EXTRA_BODY: usize = 64 * 1024;
/// The most tokens that a setting may name; more than any model writes.
const MAX_TOKENS: u64 = 10_000_000;

/// How a model is asked. A setting that is left out is the vendor's own default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelSettings {
    /// The most tokens of an answer; what the model can give unless set.
    #[serde(default, alias = "max_output_tokens", skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// From 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// From 0 to 1.
    #[serde(default, alias = "top_p", skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts at which the model stops.
    #[serde(default, alias = "stop_sequences", skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// How much the model thinks.
    #[serde(default, alias = "reasoning_effort", skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The most tokens that it thinks with, where the vendor counts them apart.
    #[serde(default, alias = "thinking_budget_tokens", skip_serializing_if = "Option::is_none")]
    pub thinking_budget_tokens: Option<u64>,
    /// Makes answers repeatable, as far as the vendor can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Whether the model may call several tools in one answer.
    #[serde(default, alias = "parallel_tool_calls", skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Put into the request last: its keys replace ours.
    #[serde(default, alias = "extra_body", skip_serializing_if = "Option::is_none")]
    pub extra_body: Option<Map<String, Value>>,
    /// Tried in order when a model fails before it has said anything, each as `provider/model`.
    #[serde(default, alias = "fallback_models", skip_serializing_if = "Option::is_none")]
    pub fallback_models: Option<Vec<String>>,
}

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// Not at all.
    None,
    /// As little as it can.
    Minimal,
    /// A little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
    /// As much as it can.
    Xhigh,
}

impl ReasoningEffort {
    /// The word for it that most vendors share.
    pub fn as_str(self) -> &'static str {
        match self {
            ReasoningEffort::None => "none",
            ReasoningEffort::Minimal => "minimal",
            ReasoningEffort::Low => "low",
            ReasoningEffort::Medium => "medium",
            ReasoningEffort::High => "high",
            ReasoningEffort::Xhigh => "xhigh",
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSetting {
    /// The setting, as it is written in JSON; empty if it is not known which.
    pub name: String,
    /// What is wrong and what is allowed.
    pub problem: String,
}

/// A change to the settings that a session puts over those of its agent.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSettingsChange {
    /// Takes them all back.
    TakeBack,
    /// Replaces these by key; `null` takes a key back.
    Merge(Map<String, Value>),
}

impl ModelSettings {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == ModelSettings::default()
    }

    /// These settings, and where they say nothing those of `below`.
    #[must_use]
    pub fn over(&self, below: &ModelSettings) -> ModelSettings {
        let (own, below) = (self.clone(), below.clone());
        ModelSettings {
            max_output_tokens: own.max_output_tokens.or(below.max_output_tokens),
            temperature: own.temperature.or(below.temperature),
            top_p: own.top_p.or(below.top_p),
            stop_sequences: own.stop_sequences.or(below.stop_sequences),
            reasoning_effort: own.reasoning_effort.or(below.reasoning_effort),
            thinking_budget_tokens: own.thinking_budget_tokens.or(below.thinking_budget_tokens),
            seed: own.seed.or(below.seed),
            parallel_tool_calls: own.parallel_tool_calls.or(below.parallel_tool_calls),
            extra_body: own.extra_body.or(below.extra_body),
            fallback_models: own.fallback_models.or(below.fallback_models),
        }
    }

    /// The settings after a change.
    pub fn changed(&self, change: ModelSettingsChange) -> Result<ModelSettings, InvalidSetting> {
        let ModelSettingsChange::Merge(patch) = change else { return Ok(ModelSettings::default()) };
        let unnamed =
            |error: serde_json::Error| InvalidSetting { name: String::new(), problem: error.to_string() };
        let mut merged = match serde_json::to_value(self).map_err(unnamed)? {
            Value::Object(merged) => merged,
            _ => Map::new(),
        };
        for (name, value) in patch {
            // One by one, so that the error can name it.
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            let read: ModelSettings = serde_json::from_value(Value::Object(alone))
                .map_err(|error| InvalidSetting { name: name.clone(), problem: error.to_string() })?;
            if value.is_null() {
                merged.remove(&name);
            } else if let Ok(Value::Object(written)) = serde_json::to_value(read) {
                merged.extend(written);
            }
        }
        let changed: ModelSettings = serde_json::from_value(Value::Object(merged)).map_err(unnamed)?;
        changed.validate()?;
        Ok(changed)
    }

    /// Checks everything that the types do not.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        let fail = |name: &str, problem: String| Err(InvalidSetting { name: name.to_owned(), problem });
        for (name, tokens) in [
            ("maxOutputTokens", self.max_output_tokens),
            ("thinkingBudgetTokens", self.thinking_budget_tokens),
        ] {
            if tokens.is_some_and(|tokens| tokens == 0 || tokens > MAX_TOKENS) {
                return fail(name, format!("must be from 1 to {MAX_TOKENS}"));
            }
        }
        for (name, value, most) in [("temperature", self.temperature, 2.0), ("topP", self.top_p, 1.0)] {
            if value.is_some_and(|value| !(0.0..=most).contains(&value)) {
                return fail(name, format!("must be from 0 to {most}"));
            }
        }
        let stops = self.stop_sequences.as_deref().unwrap_or_default();
        if stops.len() > MAX_STOP_SEQUENCES
            || stops.iter().any(|stop| stop.is_empty() || stop.chars().count() > MAX_STOP_CHARS)
        {
            let problem =
                format!("must be at most {MAX_STOP_SEQUENCES} texts of 1 to {MAX_STOP_CHARS} characters");
            return fail("stopSequences", problem);
        }
        if let Some(extra) = &self.extra_body
            && serde_json::to_string(extra).map_or(usize::MAX, |text| text.len()) > MAX_EXTRA_BODY
        {
            return fail("extraBody", format!("must have at most {MAX_EXTRA_BODY} bytes as JSON"));
        }
        let fallbacks = self.fallback_models.as_deref().unwrap_or_default();
        if fallbacks.len() > MAX_FALLBACKS {
            return fail("fallbackModels", format!("must be at most {MAX_FALLBACKS} models"));
        }
        match fallbacks.iter().find_map(|model| model_problem(model)) {
            Some(problem) => fail("fallbackModels", problem),
            None => Ok(()),
        }
    }
}

/// What is wrong with the name of a model.
pub fn model_problem(model: &str) -> Option<String> {
    const MAX_CHARS: usize = 256;
    if model.chars().count() > MAX_CHARS {
        return Some(format!("must have at most {MAX_CHARS} characters"));
    }
    let is_named =
        model.split_once('/').is_some_and(|(provider, name)| !provider.is_empty() && !name.is_empty());
    (!is_named).then(|| format!("{model:?} is not provider/model, for example demo/echo"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(value: Value) -> ModelSettings {
        serde_json::from_value(value).unwrap()
    }

    fn merge(patch: Value) -> ModelSettingsChange {
        ModelSettingsChange::Merge(patch.as_object().unwrap().clone())
    }

    #[test]
    fn a_session_lies_over_its_agent_key_by_key() {
        let agent = settings(json!({ "temperature": 0.5, "seed": 7, "stopSequences": ["a"] }));
        let session = settings(json!({ "temperature": 0.0, "stop_sequences": [] }));
        let both = json!({ "temperature": 0.0, "seed": 7, "stopSequences": [] });
        assert_eq!(serde_json::to_value(session.over(&agent)).unwrap(), both);
        assert_eq!(ModelSettings::default().over(&agent), agent);
    }

    #[test]
    fn a_change_merges_and_takes_back() {
        let mut own = ModelSettings::default();
        for (patch, expected) in [
            (json!({ "temperature": 1, "topP": 0.5 }), json!({ "temperature": 1.0, "topP": 0.5 })),
            (json!({ "temperature": null }), json!({ "topP": 0.5 })),
            (json!({ "reasoningEffort": "xhigh" }), json!({ "topP": 0.5, "reasoningEffort": "xhigh" })),
            (
                json!({ "extraBody": { "a": null } }),
                json!({
                    "topP": 0.5, "reasoningEffort": "xhigh", "extraBody": { "a": null },
                }),
            ),
        ] {
            own = own.changed(merge(patch)).unwrap();
            assert_eq!(serde_json::to_value(&own).unwrap(), expected);
        }
        assert!(own.changed(ModelSettingsChange::TakeBack).unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (patch, name) in [
            (json!({ "temprature": 1 }), "temprature"),
            (json!({ "temprature": null }), "temprature"),
            (json!({ "temperature": 2.1 }), "temperature"),
            (json!({ "temperature": "hot" }), "temperature"),
            (json!({ "topP": -0.1 }), "topP"),
            (json!({ "maxOutputTokens": 0 }), "maxOutputTokens"),
            (json!({ "maxOutputTokens": -1 }), "maxOutputTokens"),
            (json!({ "thinkingBudgetTokens": 0 }), "thinkingBudgetTokens"),
            (json!({ "reasoningEffort": "extreme" }), "reasoningEffort"),
            (json!({ "stopSequences": [""] }), "stopSequences"),
            (json!({ "seed": 1.5 }), "seed"),
            (json!({ "parallelToolCalls": 1 }), "parallelToolCalls"),
            (json!({ "extraBody": [] }), "extraBody"),
            (json!({ "extraBody": { "a": "x".repeat(MAX_EXTRA_BODY) } }), "extraBody"),
            (json!({ "fallbackModels": ["gpt"] }), "fallbackModels"),
        ] {
            let invalid = ModelSettings::default().changed(merge(patch)).unwrap_err();
            assert_eq!(invalid.name, name, "{}", invalid.problem);
        }
    }
}
