use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// Definitions `d0` to `d{levels}`, each of which applies the next ten times by way of `keyword`.
fn levels(levels: usize, apply: impl Fn(Vec<Value>) -> Value) -> Value {
    let mut defs = Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        defs.insert(format!("d{level}"), apply(vec![next; 10]));
    }
    defs.insert(format!("d{levels}"), json!({ "type": "object" }));
    json!({ "$ref": "#/$defs/d0", "$defs": defs })
}

fn problem(schema: &Value) -> String {
    SchemaIndex::new(schema).map_or_else(|problem| problem.to_string(), |_| "none".to_owned())
}

#[test]
fn references_that_multiply_are_refused() {
    let list = |keyword: &'static str| move |refs: Vec<Value>| json!({ keyword: refs });
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let found = problem(&levels(13, list(keyword)));
        assert!(found.contains("expands to more than 10000 checks"), "{keyword}: {found}");
        assert_eq!(problem(&levels(2, list(keyword))), "none", "{keyword}");
    }
    let named = |refs: Vec<Value>| {
        let named: Map<String, Value> =
            refs.into_iter().enumerate().map(|(n, schema)| (n.to_string(), schema)).collect();
        json!({ "dependentSchemas": named })
    };
    assert!(problem(&levels(13, named)).contains("expands"));
    let conditional = |refs: Vec<Value>| json!({ "if": refs[0], "then": { "not": refs[0] }, "else": { "not": { "not": refs[0] } } });
    assert!(problem(&levels(13, conditional)).contains("expands"));
    let anchored = |keyword: &'static str, anchor: &'static str| {
        let mut defs = Map::new();
        for level in 0..13 {
            let next = json!({ keyword: format!("#a{}", level + 1) });
            defs.insert(format!("d{level}"), json!({ anchor: format!("a{level}"), "allOf": vec![next; 10] }));
        }
        defs.insert("d13".to_owned(), json!({ anchor: "a13" }));
        json!({ keyword: "#a0", "$defs": defs })
    };
    assert!(problem(&anchored("$ref", "$anchor")).contains("expands"));
    assert!(problem(&anchored("$dynamicRef", "$dynamicAnchor")).contains("expands"));
}

#[test]
fn a_schema_may_repeat_itself_only_in_parts_of_the_value() {
    for endless in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/b" }] }, "b": { "not": { "$ref": "#/$defs/a" } } } }),
    ] {
        assert!(problem(&endless).contains("without end"), "{endless}");
    }
    let tree = json!({
        "$id": "https://example.com/tree", "type": "object",
        "properties": { "left": { "$ref": "#" }, "right": { "$ref": "tree" } },
        "items": { "$ref": "https://example.com/tree" },
    });
    let index = SchemaIndex::new(&tree).unwrap();
    assert_eq!(index.broken_reference(), None);
    assert_eq!(index.target(&tree["properties"]["right"], "$ref"), Some(&tree));
    assert_eq!(index.place(&tree["properties"]["right"]), "/properties/right");
}

#[test]
fn each_bound_is_named_with_its_place() {
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "items": inner }));
    let chain: Map<String, Value> =
        (0..200).map(|n| (format!("d{n}"), json!({ "$ref": format!("#/$defs/d{}", n + 1) }))).collect();
    let many = |count: usize| {
        let named = (0..count).map(|n| (format!("p{n}"), json!(true))).collect::<Map<_, _>>();
        json!({ "properties": named })
    };
    let patterns: Map<String, Value> = (0..51).map(|n| (format!("^p{n}$"), json!(true))).collect();
    let references: Map<String, Value> =
        (0..1001).map(|n| (format!("p{n}"), json!({ "$ref": "#/$defs/a" }))).collect();
    for (schema, expected) in [
        (deep, "nested more than 64 levels"),
        (json!({ "$defs": chain, "$ref": "#/$defs/d0" }), "more than 100 schemas apply one another"),
        (many(5_001), "more than 5000 subschemas"),
        (json!({ "description": "d".repeat(MAX_BYTES) }), "at most 262144 are allowed"),
        (json!({ "properties": { "a": { "enum": vec![1; 10_001] } } }), "(at /properties/a/enum)"),
        (json!({ "items": { "pattern": "a".repeat(1_025) } }), "(at /items)"),
        (json!({ "patternProperties": patterns }), "more than 50 patterns"),
        (json!({ "properties": references, "$defs": { "a": true } }), "more than 1000 references"),
    ] {
        let found = problem(&schema);
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn a_reference_reaches_nothing_beyond_its_schema() {
    for reference in
        ["https://example.com/s.json", "file:///etc/passwd", "other.json", "#/$defs/gone", "#gone", "#%"]
    {
        let schema = json!({ "$ref": reference });
        assert!(SchemaIndex::new(&schema).unwrap().broken_reference().is_some(), "{reference}");
    }
    for reference in
        ["#/$defs/a~1b%20c", "#name", "other", "/other", "https://h/other#", "https://h/other#/$defs/x"]
    {
        let schema = json!({ "$id": "https://h/root", "properties": { "p": { "$ref": reference } }, "$defs": {
            "a/b c": { "$anchor": "name" }, "o": { "$id": "https://h/other", "$defs": { "x": {} } },
        } });
        assert_eq!(SchemaIndex::new(&schema).unwrap().broken_reference(), None, "{reference}");
    }
}

/// Counts by writing everything out.
fn written_out(schema: &Value, root: &Value) -> u64 {
    let Value::Object(fields) = schema else { return 1 };
    let mut count = 1;
    for (keyword, value) in fields {
        match (keyword.as_str(), value) {
            ("$ref", Value::String(reference)) => {
                count += written_out(root.pointer(&reference[1..]).unwrap(), root);
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => {
                count += list.iter().map(|schema| written_out(schema, root)).sum::<u64>();
            }
            ("not" | "if" | "then" | "else", schema) => count += written_out(schema, root),
            ("dependentSchemas", Value::Object(named)) => {
                count += named.values().map(|schema| written_out(schema, root)).sum::<u64>();
            }
            _ => {}
        }
    }
    count
}

/// A schema whose references name definitions after `level`, so that they end.
fn schema_at(level: usize) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!({ "type": "object" })),
        ((level + 1)..=5usize).prop_map(|next| json!({ "$ref": format!("#/$defs/d{next}") })),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            (
                prop::sample::select(vec!["allOf", "anyOf", "oneOf"]),
                prop::collection::vec(inner.clone(), 1..4)
            )
                .prop_map(|(keyword, list)| json!({ keyword: list })),
            (prop::sample::select(vec!["not", "if", "then", "items"]), inner.clone())
                .prop_map(|(keyword, one)| json!({ keyword: one })),
            (prop::sample::select(vec!["dependentSchemas", "properties"]), inner.clone(), inner)
                .prop_map(|(keyword, one, other)| json!({ keyword: { "a": one, "b": other } })),
        ]
    })
}

proptest! {
    #[test]
    fn expansion_is_what_writing_out_gives(
        root in schema_at(0), one in schema_at(1), two in schema_at(2), three in schema_at(3), four in schema_at(4),
    ) {
        let defs = json!({ "d1": one, "d2": two, "d3": three, "d4": four, "d5": { "type": "string" } });
        let schema = json!({ "allOf": [root], "$defs": defs });
        let expected = written_out(&schema, &schema);
        match SchemaIndex::new(&schema) {
            Ok(index) => prop_assert_eq!(expansion::root_expansion(&index), expected),
            Err(problem) => prop_assert!(expected > MAX_EXPANSION || problem.problem.contains("expands"), "{}", problem),
        }
    }
}
