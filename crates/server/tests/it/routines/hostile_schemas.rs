//! Schemas that mean harm: refused when they are taken in, bounded when they are used, and everybody else is served.

use std::time::Duration;

use petasos_core::ids::TenantId;
use petasos_net::Method;
use petasos_store::RoutineStore;
use petasos_testkit::{Client, TestServer, within};
use serde_json::{Map, Value, json};

use super::{CALLBACK, decides, emits, failure, refused, runs, start, trigger, triggered};

/// Definitions that each apply the next one ten times: 10^levels checks of one value.
fn multiplying(levels: usize, keyword: &str) -> Value {
    let mut defs = Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        let applied = match keyword {
            "not" => json!({ "not": { "anyOf": vec![next; 10] } }),
            "if" => {
                json!({ "if": next, "then": { "allOf": [next, next] }, "else": { "anyOf": [next, next] } })
            }
            "dependentSchemas" => {
                json!({ "dependentSchemas": (0..10).map(|n| (n.to_string(), next.clone())).collect::<Map<_, _>>() })
            }
            list => json!({ list: vec![next; 10] }),
        };
        defs.insert(format!("d{level}"), applied);
    }
    defs.insert(format!("d{levels}"), json!({ "type": "object" }));
    json!({ "type": "object", "$ref": "#/$defs/d0", "$defs": defs })
}

fn anchored(keyword: &str, anchor: &str) -> Value {
    let mut defs = Map::new();
    for level in 0..13 {
        let next = json!({ keyword: format!("#a{}", level + 1) });
        defs.insert(format!("d{level}"), json!({ anchor: format!("a{level}"), "allOf": vec![next; 10] }));
    }
    defs.insert("d13".to_owned(), json!({ anchor: "a13", "type": "object" }));
    json!({ keyword: "#a0", "$defs": defs })
}

/// A key of another tenant, which may use everything but what administrators do.
async fn stranger(server: &TestServer) -> Client {
    let scopes = ["agents:read", "agents:write", "sessions:read", "sessions:write"];
    let body = json!({ "tenant": "acme", "scopes": scopes });
    let key = server.client.post("/v1/keys", body).await.expect(201);
    server.client_with(key["key"].as_str().unwrap())
}

/// The server answers at once, for everybody.
async fn is_responsive(server: &TestServer) {
    let health = tokio::time::timeout(Duration::from_secs(20), server.client.get("/health")).await;
    health.expect("/health answers").expect(200);
    server.client.get("/v1/agents").await.expect(200);
}

#[tokio::test]
async fn schemas_that_multiply_are_refused_with_their_place() {
    let server = TestServer::start().await;
    let mut bombs: Vec<Value> = ["allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas"]
        .into_iter()
        .map(|keyword| multiplying(13, keyword))
        .collect();
    bombs.extend([
        multiplying(6, "allOf"),
        anchored("$ref", "$anchor"),
        anchored("$dynamicRef", "$dynamicAnchor"),
    ]);
    bombs.push(json!({ "type": "object", "allOf": [{ "$ref": "#" }] }));
    let stranger = stranger(&server).await;
    for bomb in bombs {
        for field in ["input_schema", "output_schema"] {
            let answer = stranger.put("/routines/bomb", decides(json!({ field: bomb }))).await;
            let message = answer.body["message"].as_str().unwrap_or_default().to_owned();
            refused(answer, 422, "invalid_request");
            assert!(message.starts_with(field), "{message}");
            assert!(message.contains("expands to more than") || message.contains("without end"), "{message}");
        }
        let tool = json!({ "type": "custom_tool", "name": "t", "inputSchema": bomb });
        let agent = json!({ "name": "A", "model": "demo/echo", "tools": [tool] });
        let refused = stranger.post("/v1/agents", agent).await.expect_error(400, "validation_error");
        assert!(refused["message"].as_str().unwrap().starts_with("tools[0].inputSchema"), "{refused}");
    }
    is_responsive(&server).await;
}

#[tokio::test]
async fn schemas_beyond_a_bound_are_refused() {
    let server = TestServer::start().await;
    let deep = (0..50).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
    let large = json!({ "type": "object", "description": "d".repeat(10 * 1024 * 1024) });
    let evil = json!({ "type": "object", "patternProperties": { "((a{100}){100}){100}": true } });
    let long = json!({ "properties": { "a": { "pattern": "a".repeat(2_000) } } });
    for schema in [deep, large, evil, long, json!({ "enum": vec![0; 20_000] })] {
        let routine = decides(json!({ "output_schema": schema }));
        refused(server.client.put("/routines/big", routine).await, 422, "invalid_request");
    }
    // Nobody reads so deep, however it is meant.
    let nested = format!("{}{{}}{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let body = format!(r#"{{"agent":"a","input_schema":{nested}}}"#);
    let answer = server.client.send(Method::Put, "/routines/deep", Some(body.into())).await;
    assert!((400..500).contains(&answer.status), "{}", answer.status);
    is_responsive(&server).await;
}

/// Each level applies itself twice to the same member: 2^50 checks without a memory.
#[tokio::test]
async fn a_value_cannot_make_a_small_schema_costly() {
    let again = json!({ "$ref": "#" });
    let schema =
        json!({ "type": "object", "properties": { "a": { "anyOf": [{ "allOf": [again, again] }, again] } } });
    let server = start(json!({ "input_schema": schema })).await;
    let deep = |end: Value| (0..50).fold(end, |inner, _| json!({ "a": inner }));
    server.model.respond(|_| super::approved());
    trigger(&server, json!({ "input": deep(json!({})) })).await.expect(202);
    refused(trigger(&server, json!({ "input": deep(json!(1)) })).await, 422, "input_validation_failed");

    let patterns = json!({ "type": "object", "patternProperties": { "^(?=(x+x+)+y)": true }, "properties": {
        "list": { "type": "array", "uniqueItems": true, "items": { "enum": (0..5_000).collect::<Vec<_>>() } },
    } });
    server.client.put("/routines/kyc", decides(json!({ "input_schema": patterns }))).await.expect(200);
    let name = json!({ "input": { "x".repeat(2_000): 1 } });
    let list = json!({ "input": { "list": (0..100_000).collect::<Vec<_>>() } });
    // Whether the pattern can be decided within its bound or not, there is an answer.
    let answer = within("an answer", trigger(&server, name)).await;
    assert!(matches!(answer.status, 202 | 422), "{}", answer.body);
    let answer = within("an answer", trigger(&server, list)).await;
    refused(answer, 422, "input_validation_failed");
    is_responsive(&server).await;
}

/// A release that did not check may have stored anything.
#[tokio::test]
async fn schemas_that_are_stored_already_fail_their_runs() {
    let schedule = json!({ "cron": "0 0 1 1 *", "missed": "latest" });
    let server = start(json!({ "schedule": schedule })).await;
    let (tenant, id) = (TenantId::default_tenant(), "kyc".parse().unwrap());
    let mut routine = server.store().routine(&tenant, &id).await.unwrap().unwrap();
    routine.definition.input_schema = multiplying(13, "allOf");
    routine.scheduled_through = "2020-06-01T00:00:00Z".parse().unwrap();
    server.store().put_routine(routine.clone()).await.unwrap();
    let server = server.restart().await;
    is_responsive(&server).await;
    let answer = trigger(&server, json!({})).await;
    assert!(answer.body["message"].as_str().unwrap().contains("expands to more than"), "{}", answer.body);
    refused(answer, 422, "invalid_request");
    let scheduled = within("the scheduled run", async {
        loop {
            if let Some(run) = runs(&server).await.pop() {
                return run["run_id"].as_str().unwrap().to_owned();
            }
        }
    })
    .await;
    let error = failure(&server, &scheduled).await;
    assert_eq!(error["code"], "input_validation_failed", "{error}");

    routine.definition.input_schema = json!({ "type": "object" });
    routine.definition.schedule = None;
    routine.definition.output_schema = multiplying(6, "allOf");
    server.store().put_routine(routine).await.unwrap();
    server.model.respond(|_| emits(json!({ "decision": "approved" })));
    let error = failure(&server, &triggered(&server, json!({ "callback_url": CALLBACK })).await).await;
    assert!(error["message"].as_str().unwrap().contains("expands to more than"), "{error}");
    is_responsive(&server).await;
}
