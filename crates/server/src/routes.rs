//! All routes, and the document that describes them.

use std::sync::OnceLock;

use axum::Json;
use axum::routing::get;
use petasos_core::key::KeyScope;
use serde_json::{Map, Value};

use crate::openapi::{self, Api, Operation};
use crate::{about, backup, deliveries, health, keys, metrics, schemas, surfaces, transfer};

/// Routes that need no key.
pub(crate) fn open() -> Api {
    health::api()
}

/// Routes that need one. A new surface is one more line here.
pub(crate) fn guarded() -> Api {
    surfaces::herm::api()
        .and(surfaces::aap::api())
        .and(surfaces::conversation::api())
        .and(surfaces::parlant::api())
        .and(deliveries::api())
        .and(schemas::api())
        .and(surfaces::routines::api())
        .and(keys::api())
        .and(about::api())
        .and(backup::api())
        .and(transfer::api())
        .and(description())
}

fn description() -> Api {
    let operation =
        Operation::new::<Map<String, Value>>("describe", "This description of the API.", KeyScope::Admin)
            .any_key();
    Api::default().get("/openapi.json", get(describe), operation)
}

async fn describe() -> Json<&'static Value> {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    Json(DOCUMENT.get_or_init(document))
}

/// The OpenAPI document of all routes.
fn document() -> Value {
    openapi::document(&open().and(guarded()).and(metrics::api()).into_parts().1)
}

#[cfg(test)]
mod tests {
    use super::document;

    /// The document is checked in, so that a change to the API is seen in review. `UPDATE=1` writes it again.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the test")]
    fn the_description_that_is_checked_in_is_true() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let now = format!("{:#}\n", document());
        if std::env::var("UPDATE").is_ok() {
            std::fs::write(path, &now).unwrap();
        }
        let checked_in = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            checked_in == now,
            "docs/openapi.json is old; run UPDATE=1 cargo test -p petasos-server --lib"
        );
    }
}
