//! The body of `POST …/events`: read or refused, and the same whichever of its forms it has.

use petasos_server::fuzzing::read_events;
use serde_json::{Value, json};

use crate::Target;

/// A body.
pub fn target() -> Target {
    Box::new(check)
}

fn check(bytes: &[u8]) {
    let Ok(body) = serde_json::from_slice::<Value>(bytes) else { return };
    let read = read_events(body.clone());
    if let Ok(events) = &read {
        assert!((1..=100).contains(&events.len()));
    }
    if let Some(field) = read.as_ref().err() {
        assert!(!field.is_empty(), "a refusal names what is wrong");
    }
    match &body {
        Value::Array(_) => assert_eq!(read_events(json!({ "events": body })), read),
        Value::Object(fields) if !fields.contains_key("events") => {
            assert_eq!(read_events(json!([body])), read);
        }
        _ => {}
    }
}
