//! Keeps the reference of the configuration true: its schema is generated and checked in, and its page names every
//! setting.

use serde_json::Value;

use super::file::File;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(File)).unwrap()
}

/// `UPDATE=1` writes it again.
#[test]
#[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the test")]
fn the_schema_that_is_checked_in_is_true() {
    let path = format!("{DOCS}/config.schema.json");
    let now = format!("{:#}\n", schema());
    if std::env::var("UPDATE").is_ok() {
        std::fs::write(&path, &now).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(checked_in == now, "docs/config.schema.json is old; run UPDATE=1 cargo test -p petasos config");
}

/// All keys below a schema.
fn keys(schema: &Value, keys: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == "properties" {
                    keys.extend(value.as_object().unwrap().keys().cloned());
                }
                self::keys(value, keys);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| self::keys(item, keys)),
        _ => {}
    }
}

#[test]
fn the_page_names_every_setting_and_its_example_is_one() {
    let page = std::fs::read_to_string(format!("{DOCS}/configuration.md")).unwrap();
    let models = std::fs::read_to_string(format!("{DOCS}/models.md")).unwrap();
    let mut settings = Vec::new();
    keys(&schema(), &mut settings);
    assert!(settings.len() > 30, "{settings:?}");
    for setting in settings {
        let named = format!("{setting}:");
        assert!(page.contains(&named) || models.contains(&named), "{setting} is on no page");
    }
    for page in [page, models] {
        for example in page.split("```yaml\n").skip(1) {
            let example = example.split("```").next().unwrap();
            let read: File = crate::yaml::parse(example, "the example").unwrap();
            drop(read);
        }
    }
}
