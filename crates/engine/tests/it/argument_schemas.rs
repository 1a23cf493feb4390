//! The schema that models are told accepts whatever the original accepts.

use petasos_core::model::ArgumentSchema;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn leaf() -> impl Strategy<Value = Value> {
    select(vec![
        json!(true),
        json!(false),
        json!({}),
        json!({ "type": "string", "description": "D" }),
        json!({ "type": "integer" }),
        json!({ "minimum": 2 }),
        json!({ "type": "string", "const": "x" }),
        json!({ "type": "string", "enum": ["y", "z"] }),
        json!({ "type": "array", "items": { "$ref": "#/$defs/leaf" } }),
        json!({ "anyOf": [{ "type": "null" }, { "const": "x" }] }),
        json!({ "$ref": "#/$defs/leaf" }),
        json!({ "$ref": "#/$defs/object" }),
        json!({ "$ref": "#anchor" }),
        json!({ "$ref": "#/properties/a" }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/object" } }, "required": ["a"] }),
    ])
}

/// An object schema without combinations.
fn object() -> impl Strategy<Value = Map<String, Value>> {
    let kind =
        select(vec![json!("object"), json!(["object", "null"]), json!("string"), Value::Null, Value::Null]);
    let properties = btree_map(select(NAMES.to_vec()), leaf(), 0..4);
    let required = subsequence(NAMES.to_vec(), 0..3);
    (kind, properties, required, option::of(leaf()), option::weighted(0.2, leaf())).prop_map(
        |(kind, properties, required, others, pattern)| {
            let mut schema = Map::new();
            if !kind.is_null() {
                schema.insert("type".into(), kind);
            }
            if !properties.is_empty() {
                schema.insert("properties".into(), json!(properties));
            }
            if !required.is_empty() {
                schema.insert("required".into(), json!(required));
            }
            schema.extend(others.map(|others| ("additionalProperties".to_owned(), others)));
            schema.extend(
                pattern.map(|pattern| ("patternProperties".to_owned(), json!({ "^[cd]$": pattern }))),
            );
            schema
        },
    )
}

fn schema() -> impl Strategy<Value = Value> {
    let simple = prop_oneof![
        6 => object().prop_map(Value::Object),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => Just(json!({ "$ref": "#/$defs/object" })),
    ];
    let nested = simple.prop_recursive(2, 12, 3, |inner| {
        let keyword = select(vec!["anyOf", "oneOf", "allOf", "not", "if", "unevaluatedProperties"]);
        (object(), vec((keyword, vec(inner, 1..4)), 1..3)).prop_map(|(mut schema, combinations)| {
            for (keyword, schemas) in combinations {
                let is_list = keyword.ends_with("Of");
                let value = if is_list { Value::from(schemas) } else { schemas[0].clone() };
                schema.insert(keyword.into(), value);
            }
            Value::Object(schema)
        })
    });
    (nested, leaf(), object()).prop_map(|(mut schema, leaf, object)| {
        if let Value::Object(fields) = &mut schema {
            let anchored = json!({ "$anchor": "anchor", "type": "integer" });
            fields.insert("$defs".into(), json!({ "leaf": leaf, "object": object, "anchored": anchored }));
        }
        schema
    })
}

fn value() -> impl Strategy<Value = Value> {
    select(vec![
        json!("x"),
        json!("y"),
        json!(1),
        json!(3),
        json!(1.5),
        json!(null),
        json!([1, "x"]),
        json!({ "a": "x" }),
        json!({ "a": { "a": 3 } }),
        json!({}),
    ])
}

fn objects() -> impl Strategy<Value = Vec<Value>> {
    vec(btree_map(select(NAMES.to_vec()), value(), 0..5).prop_map(|fields| json!(fields)), 40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn what_models_are_told_accepts_every_object_that_the_original_accepts(schema in schema(), objects in objects()) {
        let told = serde_json::to_value(ArgumentSchema::from(schema.clone())).unwrap();
        prop_assert_eq!(&told["type"], "object");
        prop_assert!(told.get("properties").is_none_or(Value::is_object));
        for refused in ["anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref"] {
            prop_assert!(told.get(refused).is_none(), "{} in {}", refused, told);
        }
        // References that lead nowhere, or round and round, are no schema that anything could be checked against.
        let Ok(original) = jsonschema::validator_for(&schema) else { return Ok(()) };
        prop_assume!(petasos_core::json_schema::check_bounds(&schema).is_ok());
        let told_validator = jsonschema::validator_for(&told);
        prop_assert!(told_validator.is_ok(), "{} became {}", schema, told);
        let told_validator = told_validator.unwrap();
        for object in objects {
            prop_assert!(
                !original.is_valid(&object) || told_validator.is_valid(&object),
                "{} is accepted by {} and not by {}", object, schema, told
            );
        }
    }
}
