//! Routines as they are kept, and a run from beginning to end.

use serde_json::{Value, json};

use super::{CALLBACK, approved, decides, id, refused, run_until, runs, settled, start, trigger, triggered};

#[tokio::test]
async fn a_run_goes_from_trigger_to_output() {
    let server = start(json!({})).await;
    server.model.script([approved()]);
    let fields = json!({ "input": { "applicant": "Ada" }, "metadata": { "ticket": "OPS-441" } });
    let run = trigger(&server, fields).await.expect(202);
    let run_id = id(&run);
    assert_eq!((&run["status"], &run["routine_id"]), (&json!("accepted"), &json!("kyc")));
    assert_eq!(
        (&run["started_at"], &run["output"], &run["error"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let hex = |text: &str, length: usize| {
        text.len() == length
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    assert!(hex(run_id.strip_prefix("run_").unwrap(), 24), "{run_id}");
    assert!(hex(run["trace_id"].as_str().unwrap(), 32) && hex(run["idempotency_key"].as_str().unwrap(), 32));

    let run = settled(&server, &run_id).await;
    assert_eq!((&run["status"], &run["output"]), (&json!("succeeded"), &json!({ "decision": "approved" })));
    assert_eq!((&run["error"], &run["metadata"]), (&Value::Null, &json!({ "ticket": "OPS-441" })));
    assert_eq!((&run["schema_version"], &run["origin_service"]), (&json!(1), &json!("agent-server")));
    assert_eq!(run["callback"]["url"], CALLBACK);
    for name in ["created_at", "started_at", "completed_at"] {
        assert!(run[name].as_str().unwrap().ends_with("+00:00"), "{run}");
    }
    assert_eq!(runs(&server).await.iter().map(id).collect::<Vec<_>>(), [run_id]);
}

#[tokio::test]
async fn the_model_reads_the_routine_and_its_input_and_has_emit_output() {
    let server = start(json!({})).await;
    server.model.script([approved()]);
    let run = trigger(&server, json!({ "input": { "b": 1, "a": [true] } })).await.expect(202);
    settled(&server, &id(&run)).await;
    let request = &server.model.requests()[0];
    assert_eq!(request.last_user_text(), r#"{"b":1,"a":[true]}"#);
    let system = request.body["messages"][0]["content"].to_string();
    for part in ["Be fair.", "KYC decision", "Decide whether the applicant passes."] {
        assert!(system.contains(part), "{system}");
    }
    let tools: Vec<&Value> =
        request.body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert!(tools.contains(&&json!("emit_output")), "{tools:?}");
    for name in ["clarify", "request_secret"] {
        assert!(!tools.contains(&&json!(name)), "{tools:?}");
    }
}

#[tokio::test]
async fn the_session_of_a_run_goes_when_the_run_has_no_callback_any_more() {
    let server = start(json!({ "schedule": { "cron": "* * * * * *" } })).await;
    server.model.respond(|_| approved());
    let newest = petasos_testkit::within("a scheduled run", async {
        loop {
            if let Some(run) = runs(&server).await.pop() {
                return run;
            }
        }
    })
    .await;
    let run = settled(&server, &id(&newest)).await;
    assert_eq!(run["callback"], json!({ "url": null, "status": "none", "delivery_id": null }));
    let session = format!("/v1/sessions/{}", run["session_id"].as_str().unwrap());
    petasos_testkit::within("the session to go", async {
        while server.client.get(&session).await.status != 404 {}
    })
    .await;
    // The run outlives it.
    run_until(&server, &id(&run), |run| run["status"] == "succeeded").await;
}

#[tokio::test]
async fn routines_are_kept_listed_and_removed() {
    let server = start(json!({})).await;
    let client = &server.client;
    let shown = client.get("/routines/kyc").await.expect(200);
    assert_eq!((&shown["id"], &shown["timeout_seconds"]), (&json!("kyc"), &json!(60)));
    assert_eq!((&shown["max_engine_iterations"], &shown["on_tool_error"]), (&json!(5), &json!("continue")));
    // What was read can be written, with a change.
    let mut changed = shown.clone();
    changed["timeout_seconds"] = json!(90);
    let changed = client.put("/routines/kyc", changed).await.expect(200);
    assert_eq!((&changed["timeout_seconds"], &changed["created_at"]), (&json!(90), &shown["created_at"]));
    let agent = server.agent_with(json!({})).await;
    client.put("/routines/other", json!({ "agent": agent })).await.expect(201);
    let listed = client.get("/routines").await.expect(200);
    let ids: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|routine| &routine["id"]).collect();
    assert_eq!(ids, ["kyc", "other"]);
    client.delete("/routines/kyc").await.expect(204);
    refused(client.get("/routines/kyc").await, 404, "not_found");
    refused(client.delete("/routines/kyc").await, 404, "not_found");
    refused(trigger(&server, json!({})).await, 404, "not_found");
    refused(client.get("/routines/kyc/runs").await, 404, "not_found");
}

#[tokio::test]
async fn a_routine_that_was_removed_can_be_made_again() {
    let server = start(json!({})).await;
    server.client.delete("/routines/kyc").await.expect(204);
    super::put(&server, json!({})).await;
    server.model.script([approved()]);
    let run_id = triggered(&server, json!({})).await;
    assert_eq!(settled(&server, &run_id).await["status"], "succeeded");
}

#[tokio::test]
async fn routines_and_runs_of_another_tenant_do_not_exist() {
    let server = start(json!({})).await;
    server.model.script([approved()]);
    let run = trigger(&server, json!({})).await.expect(202);
    let other = server.client.with_header("x-petasos-tenant", "acme");
    assert_eq!(other.get("/routines").await.expect(200)["items"], json!([]));
    refused(other.get("/routines/kyc").await, 404, "not_found");
    refused(other.get(&format!("/runs/{}", id(&run))).await, 404, "not_found");
    refused(other.get(&format!("/routines/kyc/runs/{}", id(&run))).await, 404, "not_found");
    refused(other.post(&format!("/runs/{}/cancel", id(&run)), json!({})).await, 404, "not_found");
    refused(other.post("/routines/kyc/trigger", json!({ "callback_url": CALLBACK })).await, 404, "not_found");
}

#[tokio::test]
async fn a_routine_that_cannot_be_used_is_refused() {
    let server = start(json!({})).await;
    for (fields, field) in [
        (json!({ "agent": "nobody" }), "agent"),
        (json!({ "agent": { "model": "scripted" } }), "agent.model"),
        (json!({ "input_schema": { "type": "objekt" } }), "input_schema"),
        (json!({ "output_schema": { "$ref": "https://example.com/x.json" } }), "output_schema"),
        (json!({ "timeout_seconds": 0 }), "timeout_seconds"),
        (json!({ "schedule": { "cron": "x" } }), "schedule"),
        (json!({ "colour": "blue" }), "body"),
        (json!({ "timeout_seconds": "soon" }), "timeout_seconds"),
    ] {
        let details = refused(
            server.client.put("/routines/new", decides(fields.clone())).await,
            422,
            "invalid_request",
        );
        assert!(
            details["field"].as_str().unwrap().starts_with(field) || field == "body",
            "{fields} {details:?}"
        );
    }
    refused(server.client.put("/routines/a%20b", decides(json!({}))).await, 422, "invalid_request");
    refused(server.client.get("/routines/new").await, 404, "not_found");
}
