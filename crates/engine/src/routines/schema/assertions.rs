//! Keywords that look at a value itself: its type, its size, what it equals.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Number, Value};

use super::evaluate::{Evaluation, Outcome, shown};
use super::numbers::{compare, integer, is_multiple};

impl<'s, 'v> Evaluation<'s, 'v> {
    /// Checks one keyword. Those that apply schemas and those that only describe are none of it.
    pub(super) fn assert(
        &mut self,
        schema: &'s Value,
        keyword: &str,
        argument: &'s Value,
        value: &'v Value,
    ) -> Outcome<()> {
        let problem = match keyword {
            "type" => wrong_type(argument, value),
            "const" => {
                let equal = self.equal(argument, value)?;
                (!equal).then(|| format!("{} was expected", shown(argument)))
            }
            "enum" => self.not_among(argument, value)?,
            "uniqueItems" if argument == &Value::Bool(true) => self.repeats(value)?,
            "pattern" => self.wrong_text(schema, argument, value)?,
            "required" | "dependentRequired" => self.missing(keyword, argument, value)?,
            "minLength" | "maxLength" => {
                let Value::String(text) = value else { return Ok(()) };
                self.spend(text.len() / 16)?;
                wrong_size(keyword, argument, value, text.chars().count())
            }
            "minItems" | "maxItems" => {
                value.as_array().and_then(|items| wrong_size(keyword, argument, value, items.len()))
            }
            "minProperties" | "maxProperties" => {
                value.as_object().and_then(|members| wrong_size(keyword, argument, value, members.len()))
            }
            _ => match (argument, value) {
                (Value::Number(bound), Value::Number(number)) => wrong_number(keyword, bound, number),
                _ => None,
            },
        };
        problem.map_or(Ok(()), |problem| Err(self.unfit(schema, keyword, || problem)))
    }

    fn not_among(&mut self, argument: &'s Value, value: &'v Value) -> Outcome<Option<String>> {
        for one in argument.as_array().into_iter().flatten() {
            if self.equal(one, value)? {
                return Ok(None);
            }
        }
        Ok(Some(format!("{} is not one of {}", shown(value), shown(argument))))
    }

    fn missing(&mut self, keyword: &str, argument: &'s Value, value: &'v Value) -> Outcome<Option<String>> {
        let Value::Object(members) = value else { return Ok(None) };
        let mut missing = |names: &Value| -> Outcome<Option<String>> {
            let names = names.as_array().map_or(&[][..], Vec::as_slice);
            self.spend(names.len())?;
            let missing =
                names.iter().find(|name| name.as_str().is_some_and(|name| !members.contains_key(name)));
            Ok(missing.map(|name| format!("{} is a required property", shown(name))))
        };
        if keyword == "required" {
            return missing(argument);
        }
        for (name, names) in argument.as_object().into_iter().flatten() {
            if members.contains_key(name)
                && let Some(problem) = missing(names)?
            {
                return Ok(Some(problem));
            }
        }
        Ok(None)
    }

    fn wrong_text(
        &mut self,
        schema: &'s Value,
        argument: &'s Value,
        value: &'v Value,
    ) -> Outcome<Option<String>> {
        let (Value::String(pattern), Value::String(text)) = (argument, value) else { return Ok(None) };
        let compiled = self.pattern(schema, pattern)?;
        let fits = self.matches(&compiled, text)?;
        Ok((!fits).then(|| format!("{} does not match {pattern:?}", shown(value))))
    }

    fn repeats(&mut self, value: &'v Value) -> Outcome<Option<String>> {
        let Value::Array(items) = value else { return Ok(None) };
        let mut seen = HashSet::with_capacity(items.len());
        for item in items {
            let mut text = String::new();
            canonical(item, &mut text);
            self.spend(1 + text.len() / 8)?;
            if !seen.insert(text) {
                return Ok(Some(format!("{} has non-unique elements", shown(value))));
            }
        }
        Ok(None)
    }

    /// Whether two values are the same; 1 and 1.0 are, whatever the order of members is.
    fn equal(&mut self, left: &Value, right: &Value) -> Outcome<bool> {
        self.spend(1)?;
        match (left, right) {
            (Value::Number(left), Value::Number(right)) => Ok(compare(left, right) == Some(Ordering::Equal)),
            (Value::String(left), Value::String(right)) => {
                self.spend(left.len().min(right.len()) / 64)?;
                Ok(left == right)
            }
            (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
                for (left, right) in left.iter().zip(right) {
                    if !self.equal(left, right)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Object(left), Value::Object(right)) if left.len() == right.len() => {
                for (name, left) in left {
                    match right.get(name) {
                        Some(right) if self.equal(left, right)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            _ => Ok(left == right),
        }
    }
}

fn wrong_type(argument: &Value, value: &Value) -> Option<String> {
    let is = |kind: &Value| match (kind.as_str(), value) {
        (Some("integer"), Value::Number(number)) => {
            integer(number).is_some() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
        }
        (Some("number"), Value::Number(_))
        | (Some("string"), Value::String(_))
        | (Some("boolean"), Value::Bool(_))
        | (Some("null"), Value::Null)
        | (Some("array"), Value::Array(_))
        | (Some("object"), Value::Object(_)) => true,
        _ => false,
    };
    match argument {
        Value::Array(kinds) if kinds.iter().any(is) => None,
        Value::Array(kinds) => {
            let kinds: Vec<String> = kinds.iter().map(Value::to_string).collect();
            Some(format!("{} is not of types {}", shown(value), kinds.join(", ")))
        }
        kind if is(kind) => None,
        kind => Some(format!("{} is not of type {kind}", shown(value))),
    }
}

fn wrong_size(keyword: &str, argument: &Value, value: &Value, size: usize) -> Option<String> {
    let bound = argument.as_f64()?;
    let size = f64::from(u32::try_from(size).unwrap_or(u32::MAX));
    let (is_wrong, relation) = match keyword {
        "minLength" => (size < bound, "is shorter than"),
        "maxLength" => (size > bound, "is longer than"),
        "minItems" | "minProperties" => (size < bound, "has less than"),
        _ => (size > bound, "has more than"),
    };
    let unit = match keyword {
        "minLength" | "maxLength" => "characters",
        "minItems" | "maxItems" => "items",
        _ => "properties",
    };
    is_wrong.then(|| format!("{} {relation} {argument} {unit}", shown(value)))
}

fn wrong_number(keyword: &str, bound: &Number, number: &Number) -> Option<String> {
    let order = compare(number, bound)?;
    let (is_wrong, relation) = match keyword {
        "minimum" => (order == Ordering::Less, "is less than the minimum of"),
        "maximum" => (order == Ordering::Greater, "is greater than the maximum of"),
        "exclusiveMinimum" => (order != Ordering::Greater, "is less than or equal to the minimum of"),
        "exclusiveMaximum" => (order != Ordering::Less, "is greater than or equal to the maximum of"),
        "multipleOf" => (!is_multiple(number, bound), "is not a multiple of"),
        _ => return None,
    };
    is_wrong.then(|| format!("{number} {relation} {bound}"))
}

/// A text that is the same for two values exactly if they are equal.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => match integer(number) {
            Some(integer) => text.push_str(&integer.to_string()),
            None => text.push_str(&number.as_f64().unwrap_or_default().to_string()),
        },
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, member) in members {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                canonical(member, text);
                text.push(',');
            }
            text.push('}');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}
