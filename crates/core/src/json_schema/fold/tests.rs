//! That vendors refuse such schemas is told in notion-mcp-server#341, cloudflare/mcp-server-cloudflare#224 and gitlab-mcp#552.

use serde_json::{Value, json};

use super::plain_object;

#[track_caller]
fn folded(schema: Value) -> Value {
    let folded = plain_object(&schema).expect("a folded schema");
    assert_eq!(plain_object(&folded), None, "{folded}");
    folded
}

#[test]
fn plain_objects_stay_as_they_are() {
    for schema in [
        json!({ "type": "object" }),
        json!({ "type": "object", "properties": {} }),
        json!({ "type": "object", "properties": { "anyOf": { "anyOf": [{ "type": "string" }] } }, "required": [] }),
    ] {
        assert_eq!(plain_object(&schema), None);
    }
}

#[test]
fn closed_forms_are_one_list_of_properties_with_what_all_need() {
    let form = |kind: &str, name: &str| {
        json!({
            "type": "object", "required": ["kind", name], "additionalProperties": false,
            "properties": {
                "kind": { "type": "string", "const": kind },
                name: { "type": "string", "description": format!("The {name}.") },
            },
        })
    };
    let schema = json!({ "description": "Opens.", "oneOf": [form("page", "url"), form("file", "path")] });
    let expected = json!({
        "description": "Opens.\nGive the arguments of one of these forms: url; or path.",
        "type": "object",
        "properties": {
            "kind": { "type": "string", "enum": ["page", "file"] },
            "url": { "type": "string", "description": "The url." },
            "path": { "type": "string", "description": "The path." },
        },
        "required": ["kind"],
        "additionalProperties": false,
    });
    assert_eq!(folded(schema), expected);
}

#[test]
fn properties_of_the_root_stay_as_they_are_beside_forms_of_what_is_needed() {
    let properties = json!({ "a": { "type": "string" }, "b": { "type": "integer" }, "c": true });
    let schema = json!({
        "type": "object", "properties": properties, "required": ["c"],
        "anyOf": [{ "required": ["a"] }, { "required": ["b"], "title": "By number" }],
    });
    let folded = folded(schema);
    assert_eq!((&folded["properties"], &folded["required"]), (&properties, &json!(["c"])));
    let description = "Give the arguments of one of these forms: a; or b (By number).";
    assert_eq!(folded["description"], description);
}

#[test]
fn what_one_open_form_does_not_know_stays_a_hint() {
    let schema = json!({ "anyOf": [{ "properties": { "a": { "type": "string" } } }, { "properties": { "b": true } }] });
    let expected = json!({ "a": { "anyOf": [{ "type": "string" }, {}] }, "b": true });
    assert_eq!(folded(schema)["properties"], expected);
}

#[test]
fn all_of_needs_what_each_part_needs() {
    let schema = json!({ "allOf": [
        { "properties": { "a": { "type": "string" } }, "required": ["a"] },
        { "properties": { "a": { "maxLength": 3 }, "b": { "type": "integer" } }, "required": ["b", "a"] },
    ] });
    let expected = json!({
        "type": "object",
        "properties": { "a": { "type": "string", "maxLength": 3 }, "b": { "type": "integer" } },
        "required": ["a", "b"],
    });
    assert_eq!(folded(schema), expected);
}

#[test]
fn references_still_lead_where_they_led() {
    let schema = json!({
        "$ref": "#/definitions/Root",
        "definitions": {
            "Root": { "type": "object", "description": "D.", "properties": {
                "node": { "$ref": "#/definitions/Node" },
                "name": { "$ref": "#/definitions/Root/properties/label" },
                "label": { "type": "string" },
                "odd": { "$ref": "https://elsewhere/", "description": "Kept." },
            } },
            "Node": { "type": "object", "properties": { "next": { "$ref": "#/definitions/Node" } } },
            "Unused": {},
        },
    });
    let expected = json!({
        "description": "D.", "type": "object",
        "properties": {
            "node": { "$ref": "#/$defs/Node" },
            "name": { "$ref": "#/$defs/part-2" },
            "label": { "type": "string" },
            "odd": { "description": "Kept." },
        },
        "$defs": {
            "Node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } } },
            "part-2": { "type": "string" },
        },
    });
    let mut folded = folded(schema);
    // The names depend on the order in which properties are read.
    if folded["$defs"].get("part-2").is_none() {
        let text = folded.to_string().replace("part-1", "part-2");
        folded = serde_json::from_str(&text).unwrap();
    }
    assert_eq!(folded, expected);
}

#[test]
fn roots_that_are_no_objects_become_objects() {
    let nothing = json!({ "type": "object", "properties": {} });
    for schema in [json!(true), json!(null), json!({}), json!({ "type": "string" }), json!({ "enum": [1] })] {
        assert_eq!(folded(schema), nothing);
    }
    assert_eq!(folded(json!({ "type": ["object", "null"] })), nothing);
    let described = json!({ "description": "D.", "anyOf": [{ "type": "null" }, { "required": ["a"] }] });
    assert_eq!(folded(described)["required"], json!(["a"]));
}

#[test]
fn schemas_that_pass_a_bound_ask_for_nothing() {
    let forms: Vec<Value> = (0..6_000).map(|number| json!({ "required": [number.to_string()] })).collect();
    assert_eq!(folded(json!({ "anyOf": forms })), json!({ "type": "object", "properties": {} }));
    let loops = json!({ "allOf": [{ "$ref": "#" }] });
    assert_eq!(folded(loops), json!({ "type": "object", "properties": {} }));
}
