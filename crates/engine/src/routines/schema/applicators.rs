//! Keywords that apply further schemas: to the same value, to its members and to its items.

use std::collections::HashSet;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::evaluate::{Evaluation, Outcome, Part, shown};
use super::evaluated::Evaluated;
use super::patterns::Pattern;

impl<'s, 'v> Evaluation<'s, 'v> {
    /// Applies the schemas of `allOf`, `anyOf`, `oneOf`, `dependentSchemas`, `not` and `if` to the same value.
    pub(super) fn combine(
        &mut self,
        schema: &'s Value,
        fields: &'s Map<String, Value>,
        value: &'v Value,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome<()> {
        for all in list(fields, "allOf") {
            let seen = self.apply(all, value)?;
            self.merge(evaluated, seen)?;
        }
        if fields.contains_key("anyOf") {
            self.any_of(schema, list(fields, "anyOf"), value, evaluated)?;
        }
        if fields.contains_key("oneOf") {
            self.one_of(schema, list(fields, "oneOf"), value, evaluated)?;
        }
        for (name, dependent) in named(fields, "dependentSchemas").into_iter().flatten() {
            if value.get(name).is_some() {
                let seen = self.apply(dependent, value)?;
                self.merge(evaluated, seen)?;
            }
        }
        if let Some(not) = fields.get("not")
            && self.try_apply(not, value)?.is_some()
        {
            return Err(self.unfit(schema, "not", || {
                format!("{} is valid under the schema listed in the 'not' keyword", shown(value))
            }));
        }
        if let Some(condition) = fields.get("if") {
            let branch = match self.try_apply(condition, value)? {
                Some(seen) => {
                    self.merge(evaluated, seen)?;
                    fields.get("then")
                }
                None => fields.get("else"),
            };
            if let Some(branch) = branch {
                let seen = self.apply(branch, value)?;
                self.merge(evaluated, seen)?;
            }
        }
        Ok(())
    }

    fn any_of(
        &mut self,
        schema: &'s Value,
        schemas: &'s [Value],
        value: &'v Value,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome<()> {
        let mut fits = false;
        for any in schemas {
            if let Some(seen) = self.try_apply(any, value)? {
                fits = true;
                self.merge(evaluated, seen)?;
                if !self.tracks_evaluated {
                    break;
                }
            }
        }
        if fits {
            return Ok(());
        }
        Err(self.unfit(schema, "anyOf", || {
            format!("{} is not valid under any of the schemas listed in the 'anyOf' keyword", shown(value))
        }))
    }

    fn one_of(
        &mut self,
        schema: &'s Value,
        schemas: &'s [Value],
        value: &'v Value,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome<()> {
        let mut fitting = None;
        for one in schemas {
            let Some(seen) = self.try_apply(one, value)? else { continue };
            if fitting.replace(seen).is_some() {
                return Err(self.unfit(schema, "oneOf", || {
                    let value = shown(value);
                    format!(
                        "{value} is valid under more than one of the schemas listed in the 'oneOf' keyword"
                    )
                }));
            }
        }
        match fitting {
            Some(seen) => self.merge(evaluated, seen),
            None => Err(self.unfit(schema, "oneOf", || {
                format!(
                    "{} is not valid under any of the schemas listed in the 'oneOf' keyword",
                    shown(value)
                )
            })),
        }
    }

    /// Applies schemas to the members of an object and their names.
    pub(super) fn apply_to_members(
        &mut self,
        schema: &'s Value,
        fields: &'s Map<String, Value>,
        members: &'v Map<String, Value>,
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome<()> {
        let properties = named(fields, "properties");
        let mut known: HashSet<&'v str> = HashSet::new();
        self.spend(properties.map_or(0, Map::len))?;
        for (name, property) in properties.into_iter().flatten() {
            if let Some((name, member)) = members.get_key_value(name) {
                known.insert(name);
                self.apply_to_part(property, Part::Name(name), member)?;
            }
        }
        for (pattern, property) in named(fields, "patternProperties").into_iter().flatten() {
            let pattern: Rc<Pattern> = self.pattern(schema, pattern)?;
            for (name, member) in members {
                if self.matches(&pattern, name)? {
                    known.insert(name);
                    self.apply_to_part(property, Part::Name(name), member)?;
                }
            }
        }
        if let Some(additional) = fields.get("additionalProperties") {
            let others = members.iter().filter(|(name, _)| !known.contains(name.as_str())).collect();
            self.apply_to_others(schema, "additionalProperties", additional, others)?;
            evaluated.all_names = true;
        }
        if let Some(names) = fields.get("propertyNames") {
            for name in members.keys() {
                self.apply_to_name(names, name)?;
            }
        }
        if self.tracks_evaluated {
            self.spend(known.len())?;
            evaluated.names.extend(known);
        }
        if let Some(rest) = fields.get("unevaluatedProperties") {
            let others = members.iter().filter(|(name, _)| !evaluated.has_name(name)).collect();
            self.apply_to_others(schema, "unevaluatedProperties", rest, others)?;
            evaluated.all_names = true;
        }
        Ok(())
    }

    /// Applies a schema to the members that no other keyword of its kind names.
    fn apply_to_others(
        &mut self,
        schema: &'s Value,
        keyword: &'static str,
        rest: &'s Value,
        others: Vec<(&'v String, &'v Value)>,
    ) -> Outcome<()> {
        self.spend(others.len())?;
        if let (Value::Bool(false), Some((name, _))) = (rest, others.first()) {
            let kind = if keyword == "additionalProperties" { "Additional" } else { "Unevaluated" };
            return Err(self.unfit(schema, keyword, || {
                let name = shown(&Value::from(name.as_str()));
                format!("{kind} properties are not allowed ({name} was unexpected)")
            }));
        }
        others.into_iter().try_for_each(|(name, member)| self.apply_to_part(rest, Part::Name(name), member))
    }

    /// Applies schemas to the items of an array.
    pub(super) fn apply_to_items(
        &mut self,
        schema: &'s Value,
        fields: &'s Map<String, Value>,
        items: &'v [Value],
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome<()> {
        let first = list(fields, "prefixItems");
        for (index, (prefix, item)) in first.iter().zip(items).enumerate() {
            self.apply_to_part(prefix, Part::Item(index), item)?;
        }
        evaluated.first_items = evaluated.first_items.max(first.len().min(items.len()));
        if let Some(rest) = fields.get("items") {
            for (index, item) in items.iter().enumerate().skip(first.len()) {
                self.apply_to_part(rest, Part::Item(index), item)?;
            }
            evaluated.all_items = true;
        }
        if let Some(contains) = fields.get("contains") {
            self.contains(schema, fields, contains, items, evaluated)?;
        }
        if let Some(rest) = fields.get("unevaluatedItems") {
            self.spend(items.len())?;
            for (index, item) in items.iter().enumerate() {
                if !evaluated.has_item(index) {
                    if rest == &Value::Bool(false) {
                        return Err(self.unfit(schema, "unevaluatedItems", || {
                            format!("Unevaluated items are not allowed ({} was unexpected)", shown(item))
                        }));
                    }
                    self.apply_to_part(rest, Part::Item(index), item)?;
                }
            }
            evaluated.all_items = true;
        }
        Ok(())
    }

    fn contains(
        &mut self,
        schema: &'s Value,
        fields: &'s Map<String, Value>,
        contains: &'s Value,
        items: &'v [Value],
        evaluated: &mut Evaluated<'v>,
    ) -> Outcome<()> {
        let mut count = 0;
        for (index, item) in items.iter().enumerate() {
            if self.try_apply(contains, item)?.is_some() {
                count += 1;
                if self.tracks_evaluated {
                    evaluated.items.insert(index);
                }
            }
        }
        let count = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let bound = |keyword: &str| fields.get(keyword).and_then(Value::as_f64);
        if count < bound("minContains").unwrap_or(1.0) {
            return Err(
                self.unfit(schema, "contains", || "Too few items are valid under 'contains'".to_owned())
            );
        }
        if bound("maxContains").is_some_and(|most| count > most) {
            return Err(
                self.unfit(schema, "contains", || "Too many items are valid under 'contains'".to_owned())
            );
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, evaluated: &mut Evaluated<'v>, seen: Evaluated<'v>) -> Outcome<()> {
        if self.tracks_evaluated {
            self.spend(seen.weight())?;
            evaluated.merge(seen);
        }
        Ok(())
    }
}

fn list<'s>(fields: &'s Map<String, Value>, keyword: &str) -> &'s [Value] {
    fields.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn named<'s>(fields: &'s Map<String, Value>, keyword: &str) -> Option<&'s Map<String, Value>> {
    fields.get(keyword).and_then(Value::as_object)
}
