//! How models are asked: settings of agents and sessions, models that stand in for others, calls that are cut.

use petasos_core::event::Payload;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::model::Stop;
use petasos_testkit::{Gate, Reply, TestServer};
use serde_json::{Value, json};

/// The entries of a session's log, internal ones too.
async fn log(server: &TestServer, session: &str) -> Vec<Payload> {
    let id: SessionId = session.parse().unwrap();
    let range = petasos_engine::LogRange::default();
    let mut part = server.engine.log_part(&TenantId::default_tenant(), &id, range).await.unwrap();
    let mut log = Vec::new();
    while let Some(event) = part.next().await.unwrap() {
        log.push(event.payload);
    }
    log
}

/// Says something and waits for the end of the turn.
async fn turn(server: &TestServer, session: &str, text: &str) -> Value {
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, text).await.expect(200);
    stream.until_idle().await.last().unwrap().data["payload"]["stop_reason"].clone()
}

async fn patch(server: &TestServer, session: &str, body: Value) -> petasos_testkit::Answer {
    server.client.patch(&format!("/v1/sessions/{session}"), body).await
}

#[tokio::test]
async fn settings_of_agents_are_versioned_shown_and_replaced_whole() {
    let server = TestServer::start().await;
    let agent = server
        .agent_with(json!({ "modelSettings": { "temperature": 0.5, "reasoningEffort": "xhigh" } }))
        .await;
    let path = format!("/v1/agents/{agent}");
    let shown = server.client.get(&path).await.expect(200);
    assert_eq!(shown["modelSettings"], json!({ "temperature": 0.5, "reasoningEffort": "xhigh" }));
    let changed = server.client.patch(&path, json!({ "modelSettings": { "seed": 7 } })).await.expect(200);
    assert_eq!(changed["version"], 2);
    assert_eq!(changed["modelSettings"], json!({ "seed": 7 }));
    let first = server.client.get(&format!("{path}?version=1")).await.expect(200);
    assert_eq!(first["modelSettings"]["temperature"], 0.5);
}

#[tokio::test]
async fn wrong_settings_are_refused_by_name() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({})).await;
    let session = server.client.session(&agent).await;
    for (settings, name) in [
        (json!({ "temprature": 1 }), "temprature"),
        (json!({ "temperature": 2.5 }), "temperature"),
        (json!({ "temperature": "hot" }), "temperature"),
        (json!({ "topP": -1 }), "topP"),
        (json!({ "maxOutputTokens": 0 }), "maxOutputTokens"),
        (json!({ "reasoningEffort": "extreme" }), "reasoningEffort"),
        (json!({ "stopSequences": ["a", ""] }), "stopSequences"),
        (json!({ "extraBody": 5 }), "extraBody"),
        (json!({ "fallbackModels": ["nameless"] }), "fallbackModels"),
        (json!(5), "modelSettings"),
    ] {
        let body = json!({ "name": "A", "model": "openai/m", "modelSettings": settings });
        let made = server.client.post("/v1/agents", body).await.expect_error(400, "validation_error");
        let path = format!("/v1/agents/{agent}/sessions");
        let opened = server.client.post(&path, json!({ "modelSettings": settings })).await;
        let opened = opened.expect_error(400, "validation_error");
        let changed = patch(&server, &session, json!({ "modelSettings": settings })).await;
        let changed = changed.expect_error(400, "validation_error");
        for refused in [made, opened, changed] {
            assert!(refused.to_string().contains(name), "{name}: {refused}");
        }
    }
    let refused = patch(&server, &session, json!({ "model": "nameless" })).await;
    assert!(refused.expect_error(400, "validation_error").to_string().contains("provider/model"));
}

#[tokio::test]
async fn a_session_lies_its_own_model_and_settings_over_the_agents() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({ "modelSettings": { "temperature": 0.5, "seed": 7 } })).await;
    let made = json!({ "model": "responses/big", "modelSettings": { "temperature": 0.0, "topP": null } });
    let made = server.client.post(&format!("/v1/agents/{agent}/sessions"), made).await.expect(201);
    let session = made["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/sessions/{session}");
    for shown in [&made, &server.client.get(&path).await.expect(200)] {
        assert_eq!(shown["model"], "responses/big");
        assert_eq!(shown["modelSettings"], json!({ "temperature": 0.0 }));
    }
    server.model.script([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    turn(&server, &session, "go").await;
    let entries = log(&server, &session).await.len();
    // Giving the same again appends nothing.
    patch(&server, &session, json!({ "model": "responses/big", "modelSettings": {} })).await.expect(200);
    patch(&server, &session, json!({ "modelSettings": { "temperature": 0 } })).await.expect(200);
    assert_eq!(log(&server, &session).await.len(), entries);

    let changed = json!({ "model": null, "modelSettings": { "temperature": null, "maxOutputTokens": 99 } });
    let changed = patch(&server, &session, changed).await.expect(200);
    assert_eq!(
        (&changed["model"], &changed["modelSettings"]),
        (&Value::Null, &json!({ "maxOutputTokens": 99 }))
    );
    turn(&server, &session, "go on").await;
    let changed = patch(&server, &session, json!({ "modelSettings": null })).await.expect(200);
    assert_eq!((&changed["model"], &changed["modelSettings"]), (&Value::Null, &Value::Null));
    assert_eq!(changed["agentVersion"], 1);

    let requests = server.model.requests();
    assert_eq!((requests[0].path.as_str(), &requests[0].body["temperature"]), ("/v1/responses", &json!(0.0)));
    assert_eq!(requests[1].path, "/v1/chat/completions");
    assert_eq!(requests[1].body["temperature"], 0.5);
    assert_eq!(requests[1].body["seed"], 7);
    assert_eq!(requests[1].body["max_tokens"], 99);
    // A setting without a field is named once for each model.
    let left_out: Vec<_> = log(&server, &session)
        .await
        .into_iter()
        .filter_map(|payload| match payload {
            Payload::ModelSettingsLeftOut(named) => Some((named.model, named.settings)),
            _ => None,
        })
        .collect();
    assert_eq!(left_out, [("responses/big".to_owned(), vec!["seed".to_owned()])]);

    let restarted = server.restart().await;
    let shown = restarted.client.get(&path).await.expect(200);
    assert_eq!((&shown["model"], &shown["modelSettings"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn the_model_changes_only_between_turns() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let gate = Gate::new();
    server.model.script([Reply::text("Wait").gate(&gate).and_text(".")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    gate.reached().await;
    for body in [json!({ "model": "openai/other" }), json!({ "modelSettings": { "seed": 1 } })] {
        patch(&server, &session, body).await.expect_error(409, "turn_in_progress");
    }
    patch(&server, &session, json!({ "title": "Still allowed" })).await.expect(200);
    gate.open();
    stream.until_idle().await;
    patch(&server, &session, json!({ "model": "openai/other" })).await.expect(200);
}

#[tokio::test]
async fn another_model_answers_when_one_fails_before_it_has_said_anything() {
    let server = TestServer::start().await;
    let fallbacks = json!({ "fallbackModels": ["unheard/of", "responses/spare"] });
    let agent = server.agent_with(json!({ "model": "openai/first", "modelSettings": fallbacks })).await;
    let session = server.client.session(&agent).await;
    server.model.script([Reply::status(400), Reply::text("Here I am.")]);
    assert_eq!(turn(&server, &session, "go").await, json!({ "type": "end_turn" }));
    let models: Vec<String> = log(&server, &session)
        .await
        .into_iter()
        .filter_map(|payload| match payload {
            Payload::ModelFinished(finished) => Some(finished.model),
            _ => None,
        })
        .collect();
    assert_eq!(models, ["responses/spare"]);
    // The last error names all of them.
    server.model.script([Reply::status(401), Reply::status(404)]);
    let stop = turn(&server, &session, "again").await;
    assert_eq!(stop["code"], "model_not_found");
    let message = stop["message"].as_str().unwrap();
    assert!(message.ends_with("(models tried: openai/first, unheard/of, responses/spare)"), "{message}");
    // What has begun is not said again by another.
    server.model.script([Reply::text("Half a").and_text(" word").cut_after_chunks(3)]);
    server.model.script((0..9).map(|_| Reply::text("Half a").and_text(" word").cut_after_chunks(3)));
    let before = server.model.requests().len();
    assert_eq!(turn(&server, &session, "and again").await["type"], "error");
    let asked = server.model.requests();
    assert!(asked[before..].iter().all(|request| request.body["model"] == "first"));
}

#[tokio::test]
async fn whole_calls_of_a_cut_answer_run_and_the_model_hears_of_the_cut_one() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let todo = json!({ "todos": ["x"] });
    server.model.script([
        Reply::tool_calls([("todo", todo.clone()), ("todo", json!("{\"todos\": [\"y"))])
            .stop(Stop::MaxTokens),
        Reply::tool_calls([("todo", json!(""))]).stop(Stop::MaxTokens),
        Reply::text("Done."),
    ]);
    assert_eq!(turn(&server, &session, "go").await, json!({ "type": "end_turn" }));
    let results = |index: usize| -> Vec<String> {
        let messages = server.model.requests()[index].body["messages"].as_array().unwrap().clone();
        let results = messages.into_iter().rev().take_while(|message| message["role"] == "tool");
        results.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    };
    let first = results(1);
    assert_eq!(first.len(), 2);
    assert!(first[0].contains("did not run"), "{first:?}");
    assert!(!first[1].contains("did not run"), "{first:?}");
    assert!(results(2)[0].contains("output limit"));
}

#[tokio::test]
async fn a_turn_that_is_cut_again_and_again_ends() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.model.script((0..3).map(|index| {
        Reply::tool_calls([("todo", json!(format!("{{\"todos\": [\"{index}")))]).stop(Stop::MaxTokens)
    }));
    assert_eq!(turn(&server, &session, "go").await, json!({ "type": "end_turn", "reason": "max_tokens" }));
    assert_eq!(server.model.requests().len(), 3);
    server.model.script([Reply::text("Fine.")]);
    assert_eq!(turn(&server, &session, "go on").await, json!({ "type": "end_turn" }));
}

#[tokio::test]
async fn the_same_failing_call_is_told_the_third_time_and_ends_the_turn_the_fifth() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.model.script((0..5).map(|_| Reply::tool_call("read_file", json!({ "path": "missing" }))));
    let stop = turn(&server, &session, "go").await;
    assert_eq!((&stop["type"], &stop["code"]), (&json!("error"), &json!("tool_loop")));
    assert!(stop["message"].as_str().unwrap().contains("read_file"), "{stop}");
    let requests = server.model.requests();
    assert_eq!(requests.len(), 5);
    let told: Vec<bool> = requests[1..]
        .iter()
        .map(|request| request.body["messages"].as_array().unwrap().last().unwrap().to_string())
        .map(|last| last.contains("with the same arguments"))
        .collect();
    assert_eq!(told, [false, false, true, true]);
}

#[tokio::test]
async fn arguments_that_are_no_json_are_told_to_the_model_which_tries_again() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.model.script([
        Reply::tool_calls([("todo", json!("{\"todos\": oops"))]),
        Reply::tool_call("todo", json!({ "todos": ["x"] })),
        Reply::text("Done."),
    ]);
    assert_eq!(turn(&server, &session, "go").await, json!({ "type": "end_turn" }));
    let told = server.model.requests()[1].body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(told.contains("not JSON"), "{told}");
}
