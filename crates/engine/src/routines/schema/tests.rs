use std::time::{Duration, Instant};

use petasos_core::json_schema::SchemaIndex;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

const STEPS: u64 = 1_000_000;

fn check(schema: &Value, value: &Value) -> Result<(), Stop> {
    Schema::read(schema).unwrap().check(value, STEPS)
}

fn mismatch(schema: &Value, value: &Value) -> Mismatch {
    match check(schema, value) {
        Err(Stop::Unfit(Some(mismatch))) => *mismatch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_mismatch_is_placed_in_value_and_schema() {
    let schema = json!({ "type": "object", "required": ["decision"], "properties": {
        "decision": { "type": "string" }, "0": { "type": "array", "items": { "type": "integer" } },
    } });
    assert!(check(&schema, &json!({ "decision": "yes" })).is_ok());
    let missing = mismatch(&schema, &json!({}));
    assert_eq!((missing.path, missing.schema_path), (vec![], vec![json!("required")]));
    assert!(missing.message.contains("decision"), "{}", missing.message);
    let wrong = mismatch(&schema, &json!({ "decision": "yes", "0": [1, "two"] }));
    assert_eq!(wrong.path, [json!("0"), json!(1)]);
    assert_eq!(wrong.schema_path, ["properties", "0", "items", "type"].map(Value::from));
}

#[test]
fn a_schema_reaches_nothing_beyond_itself() {
    for reference in ["https://example.com/s.json", "file:///etc/passwd", "other.json"] {
        let schema = json!({ "$ref": reference });
        assert!(Schema::read(&schema).is_err(), "{reference}");
        assert!(schema_problem(&schema).is_some(), "{reference}");
    }
    let own = json!({ "$ref": "#/$defs/n", "$defs": { "n": { "type": "number" } } });
    assert_eq!(mismatch(&own, &json!("x")).schema_path, ["$defs", "n", "type"].map(Value::from));
}

/// Each object applies the schema twice to the same member: written out, 2^80 checks.
#[test]
fn references_do_not_multiply_along_the_value() {
    let again = json!({ "$ref": "#" });
    let schema = json!({ "type": "object", "properties": { "a": { "allOf": [again, again] } } });
    let value = (0..80).fold(json!({}), |inner, _| json!({ "a": inner }));
    assert!(check(&schema, &value).is_ok());
    let wrong = (0..80).fold(json!(1), |inner, _| json!({ "a": inner }));
    assert_eq!(mismatch(&schema, &wrong).path.len(), 80);
    let choice =
        json!({ "properties": { "a": { "anyOf": [again, again] } }, "unevaluatedProperties": false });
    assert!(check(&choice, &value).is_ok());
}

#[test]
fn a_check_ends_when_its_steps_are_used_up() {
    let many = json!({ "items": { "enum": (0..1_000).collect::<Vec<_>>() } });
    assert!(matches!(check(&many, &json!(vec![-1; 10_000])), Err(Stop::Unfit(_))));
    assert!(matches!(check(&many, &json!(vec![999; 10_000])), Err(Stop::TooCostly(_))));
    for pattern in ["^(a+)+$", "(?=(a+)+$)b", r"^(a|a)*\1b"] {
        let schema = json!({ "pattern": pattern });
        let started = Instant::now();
        assert!(check(&schema, &json!(format!("{}!", "a".repeat(3_000)))).is_err(), "{pattern}");
        assert!(started.elapsed() < Duration::from_secs(20), "{pattern}");
    }
    for pattern in ["((a{100}){100}){100}", "(?=((a{100}){100}){100})", "(", &"(a|b)".repeat(200)] {
        let problem = schema_problem(&json!({ "properties": { "p": { "pattern": pattern } } }));
        assert_eq!(problem.is_some(), !pattern.starts_with("(a|b)"), "{pattern}: {problem:?}");
    }
}

#[test]
fn nesting_is_bounded_before_the_stack_is() {
    // Forty references at each level of the value.
    let mut defs: Map<String, Value> =
        (0..40).map(|n| (format!("d{n}"), json!({ "$ref": format!("#/$defs/d{}", n + 1) }))).collect();
    defs.insert("d40".to_owned(), json!({ "properties": { "a": { "$ref": "#/$defs/d0" } } }));
    let schema = json!({ "$ref": "#/$defs/d0", "$defs": defs });
    let value = (0..120).fold(json!({}), |inner, _| json!({ "a": inner }));
    assert!(matches!(check(&schema, &value), Err(Stop::TooCostly(_))));
    let plain = json!({ "properties": { "a": { "$ref": "#" } } });
    assert!(check(&plain, &value).is_ok());
}

#[tokio::test]
async fn a_long_check_is_finished_on_a_thread() {
    let schema = json!({ "items": { "enum": (0..1_000).collect::<Vec<_>>() } });
    assert_eq!(worker::check(&schema, &json!(vec![999; 1_000])).await, Ok(()));
    let refused = worker::check(&schema, &json!(vec![999; 100_000])).await;
    assert!(matches!(refused, Err(CheckError::Value(mismatch)) if mismatch.message.contains("more steps")));
    let endless = json!({ "allOf": [{ "$ref": "#" }] });
    assert!(matches!(worker::check(&endless, &json!({})).await, Err(CheckError::Schema(_))));
}

/// Small schemas that use nearly every keyword.
fn schemas() -> impl Strategy<Value = Value> {
    let number = || {
        prop_oneof![(-3i64..4).prop_map(Value::from), Just(json!(1.5)), Just(json!(1.0)), Just(json!(0.3))]
    };
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        Just(json!({ "$ref": "#/$defs/d" })),
        Just(json!({ "$ref": "#named" })),
        prop::sample::select(vec!["object", "array", "string", "integer", "number", "null", "boolean"])
            .prop_map(|kind| json!({ "type": kind })),
        Just(json!({ "type": ["string", "object"] })),
        values().prop_map(|value| json!({ "const": value })),
        prop::collection::vec(values(), 1..3).prop_map(|values| json!({ "enum": values })),
        (prop::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), number())
            .prop_map(|(keyword, bound)| json!({ keyword: bound })),
        prop::sample::select(vec![json!(2), json!(0.1), json!(1.5)])
            .prop_map(|of| json!({ "multipleOf": of })),
        (
            prop::sample::select(vec![
                "minLength",
                "maxLength",
                "minItems",
                "maxItems",
                "minProperties",
                "maxProperties"
            ]),
            0..3u32
        )
            .prop_map(|(keyword, bound)| json!({ keyword: bound })),
        prop::sample::select(vec!["^a", "b$", "^(?=a)", "[0-9]"])
            .prop_map(|pattern| json!({ "pattern": pattern })),
        Just(json!({ "uniqueItems": true })),
        prop::collection::vec(prop::sample::select(vec!["a", "b", "ab"]), 1..3).prop_map(|mut names| {
            names.dedup();
            names.sort_unstable();
            names.dedup();
            json!({ "required": names })
        }),
        Just(json!({ "dependentRequired": { "a": ["b"] } })),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        let one = || inner.clone();
        prop_oneof![
            (
                prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]),
                prop::collection::vec(one(), 1..3)
            )
                .prop_map(|(keyword, list)| json!({ keyword: list })),
            (
                prop::sample::select(vec![
                    "not",
                    "items",
                    "contains",
                    "additionalProperties",
                    "propertyNames",
                    "unevaluatedProperties",
                    "unevaluatedItems",
                ]),
                one()
            )
                .prop_map(|(keyword, one)| json!({ keyword: one })),
            (prop::sample::select(vec!["properties", "dependentSchemas"]), one(), one())
                .prop_map(|(keyword, a, b)| json!({ keyword: { "a": a, "b": b } })),
            (one(), one()).prop_map(
                |(a, rest)| json!({ "patternProperties": { "^a": a }, "additionalProperties": rest })
            ),
            (one(), one(), one()).prop_map(|(a, b, c)| json!({ "if": a, "then": b, "else": c })),
            (one(), 0..2u32, 1..3u32)
                .prop_map(|(a, min, max)| json!({ "contains": a, "minContains": min, "maxContains": max })),
            (one(), one()).prop_map(|(a, rest)| json!({ "anyOf": [a, { "properties": { "b": true } }],
                "properties": { "a": true }, "unevaluatedProperties": rest })),
            (one(), one()).prop_map(|(a, rest)| json!({ "allOf": [{ "prefixItems": [a] }],
                "contains": { "type": "string" }, "unevaluatedItems": rest })),
        ]
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        prop::sample::select(vec![
            json!(1.0),
            json!(1.5),
            json!(0.3),
            json!(1e3),
            json!("a"),
            json!("ab"),
            json!(""),
            json!("2é")
        ]),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(vec!["a", "b", "ab"]), inner), 0..3).prop_map(
                |members| {
                    members
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect::<Map<_, _>>()
                        .into()
                }
            ),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The library that is known to follow the specification, but has no bounds, decides.
    #[test]
    fn checks_agree_with_a_reference_implementation(
        schema in schemas(), kept in schemas(), named in schemas(), value in values(),
    ) {
        let mut named = named;
        if let Some(fields) = named.as_object_mut() {
            fields.insert("$anchor".to_owned(), json!("named"));
        } else {
            named = json!({ "$anchor": "named" });
        }
        let schema = json!({ "allOf": [schema], "$defs": { "d": kept, "n": named } });
        prop_assume!(SchemaIndex::new(&schema).is_ok());
        prop_assert_eq!(schema_problem(&schema), None);
        let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).offline();
        let expected = options.build(&schema).unwrap().is_valid(&value);
        match check(&schema, &value) {
            Ok(()) => prop_assert!(expected, "{} fits {}", value, schema),
            Err(Stop::Unfit(mismatch)) => {
                prop_assert!(!expected, "{} does not fit {}", value, schema);
                prop_assert!(mismatch.is_some());
            }
            Err(stop) => prop_assert!(false, "{:?}", stop),
        }
    }
}
