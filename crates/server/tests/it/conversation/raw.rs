//! The raw dialect: the same sessions in another shape.

use petasos_testkit::{Answer, Gate, Reply, Setup};
use serde_json::{Value, json};

use super::Talk;

fn raw(talk: &Talk) -> String {
    format!("/parlant/sessions/{}", talk.session)
}

async fn post(talk: &Talk, event: Value) -> Answer {
    talk.server.client.post(&format!("{}/events", raw(talk)), event).await
}

async fn read(talk: &Talk, query: &str) -> Vec<Value> {
    let events = talk.server.client.get(&format!("{}/events?{query}", raw(talk))).await.expect(200);
    events.as_array().unwrap().clone()
}

fn customer(text: &str) -> Value {
    json!({ "kind": "message", "source": "customer", "message": text })
}

#[tokio::test]
async fn typed_and_raw_events_are_the_same_facts() {
    let allow = json!([{ "type": "agent_toolset", "defaultConfig": { "permissionPolicy": { "type": "always_allow" } } }]);
    let talk = Talk::with(Setup::default(), json!({ "tools": allow })).await;
    let call = Reply::text("Let me see.").and_tool_call("todo", json!({ "todos": ["x"] }));
    talk.server.model.script([call, Reply::text("Done.")]);
    let posted = post(&talk, customer("hello")).await.expect(201);
    let typed = talk.until_over(0).await;
    let raw = read(&talk, "min_offset=0").await;
    assert_eq!(raw[0], posted);
    assert_eq!(typed.len(), raw.len());
    for (typed, raw) in typed.iter().zip(&raw) {
        assert_eq!((&typed["offset"], &typed["created_at"]), (&raw["offset"], &raw["creation_utc"]));
        assert_eq!(raw["trace_id"], raw["correlation_id"]);
        assert_eq!(raw["trace_id"], posted["trace_id"], "one turn has one trace");
        assert_eq!(raw["trace_id"].as_str().unwrap().len(), 32);
        let said = |kind: &str, source: &str| {
            (raw["kind"].as_str(), raw["source"].as_str()) == (Some(kind), Some(source))
        };
        match typed["kind"].as_str().unwrap() {
            "user_message" => assert!(said("message", "customer")),
            "preamble" => {
                assert!(said("message", "ai_agent"));
                assert_eq!(raw["data"]["tags"], json!(["__preamble__"]));
            }
            "assistant_message" => {
                assert!(said("message", "ai_agent"));
                assert_eq!(raw["data"]["message"], typed["text"]);
            }
            "status" => {
                assert!(said("status", "ai_agent"));
                assert_eq!(raw["data"]["status"], typed["status"]);
            }
            "tool" => {
                assert!(said("tool", "system"));
                let (raw, typed) = (&raw["data"]["tool_calls"][0], &typed["tool_calls"][0]);
                assert_eq!((&raw["tool_id"], &raw["arguments"]), (&typed["tool_id"], &typed["arguments"]));
                let result = json!({ "data": typed["result"], "metadata": {}, "control": {} });
                assert_eq!(raw["result"], result);
            }
            other => panic!("{other}"),
        }
        // Whoever comes in the middle of the turn is told the same.
        assert_eq!(read(&talk, &format!("min_offset={}", raw["offset"])).await[0], *raw);
        let one = format!("{}/events/{}", self::raw(&talk), raw["id"].as_str().unwrap());
        assert_eq!(talk.server.client.get(&one).await.expect(200), *raw);
    }
    assert_eq!(raw.last().unwrap()["data"]["data"]["stage"], "completed");
    talk.server.model.script([Reply::text("Again.")]);
    let next = post(&talk, customer("more")).await.expect(201);
    assert_ne!(next["trace_id"], posted["trace_id"]);
    let of_turn = read(&talk, &format!("trace_id={}", posted["trace_id"].as_str().unwrap())).await;
    assert_eq!(of_turn, raw);
    assert_eq!(read(&talk, "source=system&kinds=tool").await.len(), 1);
}

#[tokio::test]
async fn a_note_is_read_by_the_agent_and_not_by_the_user() {
    let talk = Talk::start().await;
    let note = |text: &str, trigger: bool| {
        json!({ "kind": "message", "source": "internal_note", "message": text,
        "participant": { "display_name": "Ann" }, "trigger_processing": trigger })
    };
    let kept = post(&talk, note("VIP", false)).await.expect(201);
    assert_eq!((&kept["source"], &kept["data"]["message"]), (&json!("internal_note"), &json!("VIP")));
    talk.server.wait_until_asleep().await;
    assert!(talk.server.model.requests().is_empty());
    // A note that asks for action opens a turn, and ends the one under way.
    let gate = Gate::new();
    talk.server.model.script([Reply::text("Sl").and_text("ow").gate(&gate), Reply::text("At once.")]);
    post(&talk, customer("hello")).await.expect(201);
    gate.reached().await;
    let posted = post(&talk, note("Offer a refund", true)).await.expect(201);
    let events = talk.until_over(posted["offset"].as_u64().unwrap()).await;
    gate.open();
    let told = ["status acknowledged", "status processing", "status typing", "assistant_message At once."];
    assert_eq!(super::story(&events), [&told[..], &["status ready"]].concat());
    let asked = talk.server.model.requests().last().unwrap().body.to_string();
    assert!(asked.contains("VIP") && asked.contains("Offer a refund"), "{asked}");
    let messages = read(&talk, "kinds=message").await;
    let sources: Vec<&str> = messages.iter().map(|event| event["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["internal_note", "customer", "internal_note", "ai_agent"]);
    assert_eq!(messages[2]["trace_id"], messages[3]["trace_id"]);
    // While a person answers, no note opens a turn.
    talk.server.client.patch(&raw(&talk), json!({ "mode": "manual" })).await.expect(200);
    post(&talk, note("later", true)).await.expect(201);
    talk.server.wait_until_asleep().await;
    assert_eq!(talk.server.model.requests().len(), 2);
}

#[tokio::test]
async fn people_and_applications_add_events() {
    let talk = Talk::start().await;
    let human = json!({ "kind": "message", "source": "human_agent", "message": "Hi, Ann here.",
        "participant": { "id": "op-1", "display_name": "Ann" } });
    let human = post(&talk, human).await.expect(201);
    assert_eq!(human["data"]["participant"], json!({ "id": "op-1", "display_name": "Ann" }));
    let agent = json!({ "kind": "message", "source": "human_agent_on_behalf_of_ai_agent", "message": "We are here." });
    assert_eq!(post(&talk, agent).await.expect(201)["source"], "human_agent_on_behalf_of_ai_agent");
    let custom = json!({ "kind": "custom", "source": "customer_ui", "data": { "page": "/cart" } });
    assert_eq!(post(&talk, custom).await.expect(201)["data"], json!({ "page": "/cart" }));
    let typing = json!({ "kind": "status", "source": "human_agent", "status": "typing", "data": {} });
    assert_eq!(post(&talk, typing).await.expect(201)["data"]["status"], "typing");
    let told = ["human_agent_message Hi, Ann here.", "assistant_message We are here.", "status typing"];
    assert_eq!(super::story(&talk.read("wait_for_data=0").await), told);
    talk.server.model.script([Reply::text("How are you?")]);
    let speak = json!({ "kind": "message", "source": "ai_agent",
        "guidelines": [{ "action": "ask how they are", "rationale": "follow_up" }] });
    let begun = post(&talk, speak).await.expect(201);
    assert_eq!((&begun["kind"], &begun["data"]["status"]), (&json!("status"), &json!("acknowledged")));
    talk.until_over(begun["offset"].as_u64().unwrap()).await;
    let asked = talk.server.model.requests()[0].body.to_string();
    assert!(asked.contains("ask how they are") && asked.contains("Hi, Ann here."), "{asked}");
    assert!(!asked.contains("/cart"), "{asked}");
}

#[tokio::test]
async fn a_title_is_as_long_as_parlant_lets_it_be() {
    let talk = Talk::start().await;
    let client = &talk.server.client;
    for (length, created, changed) in [(200, 201, 200), (201, 422, 422)] {
        let title = "ä".repeat(length);
        let body = json!({ "agent_id": "interactiveAgent", "title": title });
        client.post("/parlant/sessions", body).await.expect(created);
        client.patch(&raw(&talk), json!({ "title": title })).await.expect(changed);
    }
    client.patch(&talk.path(), json!({ "title": "ä".repeat(500) })).await.expect(200);
}

#[tokio::test]
async fn sessions_have_labels_offsets_and_guests() {
    let talk = Talk::start().await;
    let client = &talk.server.client;
    let open = async |body: Value| client.post("/parlant/sessions?allow_greeting=false", body).await;
    let body =
        json!({ "agent_id": "interactiveAgent", "customer_id": "anna", "title": null, "labels": ["b", "a"] });
    let anna = open(body).await.expect(201);
    assert_eq!((&anna["customer_id"], &anna["labels"]), (&json!("anna"), &json!(["a", "b"])));
    assert_eq!(anna["consumption_offsets"], json!({ "client": null }));
    let guest = open(json!({ "agent_id": "interactiveAgent" })).await.expect(201);
    assert_eq!(guest["customer_id"], "guest");
    let path = format!("/parlant/sessions/{}", anna["id"].as_str().unwrap());
    let change = json!({ "consumption_offsets": { "client": 4 }, "labels": { "upsert": ["c"], "remove": ["a"] },
        "title": "T", "mode": "manual", "metadata": { "set": { "k": "v" } }, "customer_id": "anna" });
    let changed = client.patch(&path, change).await.expect(200);
    assert_eq!((&changed["labels"], &changed["mode"]), (&json!(["b", "c"]), &json!("manual")));
    assert_eq!((&changed["consumption_offsets"]["client"], &changed["title"]), (&json!(4), &json!("T")));
    assert_eq!(client.get(&path).await.expect(200), changed);
    let listed = client.get("/parlant/sessions").await.expect(200);
    let ids: Vec<&Value> = listed.as_array().unwrap().iter().map(|session| &session["id"]).collect();
    assert_eq!(ids, [&json!(talk.session), &anna["id"], &guest["id"]], "all of them, oldest first");
    let page = client.get("/parlant/sessions?limit=1&sort=desc&customer_id=anna").await.expect(200);
    assert_eq!(
        (&page["items"], &page["total_count"], &page["has_more"]),
        (&json!([changed]), &json!(1), &json!(false))
    );
    let page = client.get("/parlant/sessions?labels=b&labels=c&limit=5").await.expect(200);
    assert_eq!((&page["items"][0]["id"], &page["total_count"]), (&anna["id"], &json!(1)));
    assert_eq!(client.get("/parlant/sessions?labels=a").await.expect(200), json!([]));
    client.delete("/parlant/sessions?customer_id=anna").await.expect(204);
    let gone = client.get(&path).await;
    assert_eq!((gone.status, gone.body["detail"].is_string()), (404, true));
    client.get(&format!("/parlant/sessions/{}", guest["id"].as_str().unwrap())).await.expect(200);
}

#[tokio::test]
async fn variables_are_those_of_customers() {
    let talk = Talk::start().await;
    let client = &talk.server.client;
    let plan = client.post("/parlant/context-variables", json!({ "name": "plan" })).await.expect(201);
    let again = client.post("/parlant/context-variables", json!({ "name": "plan" })).await;
    assert_eq!((again.status, again.body["detail"].is_string()), (409, true));
    let path = format!("/parlant/context-variables/{}", plan["id"].as_str().unwrap());
    client.get(&format!("{path}/anna")).await.expect(404);
    let put =
        async |data: Value| client.put(&format!("{path}/anna"), json!({ "data": data })).await.expect(200);
    assert_eq!(put(json!("pro")).await["data"], "pro");
    let customer =
        client.post("/parlant/customers", json!({ "id": "anna", "name": "Anna" })).await.expect(201);
    assert_eq!((&customer["metadata"], &customer["tags"]), (&json!({}), &json!([])));
    let typed = client.get("/conversation/customers/anna").await.expect(200);
    assert_eq!(typed["variables"], json!({ "plan": "pro" }));
    let read = client.get(&path).await.expect(200);
    assert_eq!(read["key_value_pairs"]["anna"]["data"], "pro");
    let renamed = client.patch(&path, json!({ "name": "tariff" })).await.expect(200);
    assert_eq!(renamed["name"], "tariff");
    let typed = client
        .patch("/conversation/customers/anna", json!({ "variables": { "set": { "tariff": "x" } } }))
        .await;
    assert_eq!(typed.expect(200)["variables"], json!({ "tariff": "x" }));
    client.delete(&format!("{path}/anna")).await.expect(204);
    client.delete(&path).await.expect(204);
    assert_eq!(client.get("/parlant/context-variables").await.expect(200), json!([]));
    let agents = client.get("/parlant/agents").await.expect(200);
    assert_eq!(agents[0]["id"], "interactiveAgent");
    client.get("/parlant/agents/interactiveAgent").await.expect(200);
    let customers = client.get("/parlant/customers?limit=1").await.expect(200);
    assert_eq!((&customers["items"], &customers["total_count"]), (&json!([customer]), &json!(1)));
    client.delete("/parlant/customers/anna").await.expect(204);
}

#[tokio::test]
async fn what_is_too_long_is_refused_by_its_name() {
    let talk = Talk::start().await;
    let long = |length: usize| "x".repeat(length);
    let by = |participant: Value, source: &str| json!({ "kind": "message", "source": source, "message": "x", "participant": participant });
    for (event, field) in [
        (
            json!({ "kind": "message", "source": "ai_agent", "guidelines": [{ "action": long(100_001) }] }),
            "guidelines",
        ),
        (
            json!({ "kind": "message", "source": "ai_agent",
                    "guidelines": vec![json!({ "action": long(1_000) }); 101] }),
            "guidelines",
        ),
        (json!({ "kind": "custom", "source": "system", "data": { "a": long(300_000) } }), "data"),
        (
            json!({ "kind": "status", "source": "system", "status": "typing", "data": { "a": long(300_000) } }),
            "data",
        ),
        (by(json!({ "display_name": long(257) }), "internal_note"), "participant.display_name"),
        (by(json!({ "display_name": long(257) }), "human_agent"), "participant.display_name"),
        (by(json!({ "display_name": "Ann", "id": long(257) }), "human_agent"), "participant.id"),
    ] {
        let refused = post(&talk, event).await.expect(422)["detail"].clone();
        assert!(refused.as_str().unwrap().starts_with(&format!("{field}: has ")), "{refused}");
    }
    assert!(read(&talk, "wait_for_data=0").await.is_empty());
    let custom = json!({ "kind": "custom", "source": "system", "data": { "a": long(250_000) } });
    post(&talk, custom).await.expect(201);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_a_detail() {
    let talk = Talk::start().await;
    let client = &talk.server.client;
    let refused = |answer: Answer, status: u16| {
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.body["detail"].as_str().is_some_and(|text| !text.is_empty()), "{}", answer.body);
        assert_eq!(answer.body.as_object().unwrap().len(), 1);
    };
    for event in [
        json!({ "kind": "message", "source": "customer" }),
        json!({ "kind": "message", "source": "customer", "message": "" }),
        json!({ "kind": "message", "source": "ai_agent", "message": "I say" }),
        json!({ "kind": "message", "source": "human_agent", "message": "x" }),
        json!({ "kind": "message", "source": "system", "message": "x" }),
        json!({ "kind": "message", "source": "nobody", "message": "x" }),
        json!({ "kind": "custom", "source": "customer_ui" }),
        json!({ "kind": "custom", "source": "nobody", "data": {} }),
        json!({ "kind": "status", "source": "human_agent" }),
        json!({ "kind": "status", "source": "human_agent", "status": "asleep" }),
        json!({ "kind": "status", "source": "human_agent", "status": "typing", "data": [] }),
        json!({ "kind": "tool", "source": "system" }),
        json!({ "source": "customer" }),
    ] {
        refused(post(&talk, event).await, 422);
    }
    for query in ["kinds=user_message", "min_offset=-1", "wait_for_data=x", "sse=perhaps"] {
        refused(client.get(&format!("{}/events?{query}", raw(&talk))).await, 422);
    }
    assert!(read(&talk, "wait_for_data=0").await.is_empty());
    let timed_out = client.get(&format!("{}/events?wait_for_data=1", raw(&talk))).await;
    assert_eq!((timed_out.status, &timed_out.body), (504, &json!({ "detail": "Request timed out" })));
    for path in [
        "/parlant/sessions/none",
        "/parlant/customers/none",
        "/parlant/context-variables/none",
        "/parlant/agents/none",
    ] {
        refused(client.get(path).await, 404);
    }
    refused(client.get(&format!("{}/events/evt_none_1", raw(&talk))).await, 404);
    refused(client.get("/parlant/sessions/none/events?sse=true").await, 404);
    refused(client.post("/parlant/sessions", json!({ "agent_id": "nobody" })).await, 404);
    refused(client.post("/parlant/sessions", json!({})).await, 422);
    refused(client.patch(&raw(&talk), json!({ "customer_id": "other" })).await, 422);
    refused(client.patch(&raw(&talk), json!({ "mode": "asleep" })).await, 422);
    refused(client.get("/parlant/sessions?limit=0").await, 422);
    refused(client.post("/parlant/customers", json!({ "name": "" })).await, 422);
    let customer = json!({ "id": "anna", "name": "Anna" });
    client.post("/parlant/customers", customer.clone()).await.expect(201);
    refused(client.post("/parlant/customers", customer).await, 409);
    refused(talk.server.client_with("").get("/parlant/sessions").await, 401);
    refused(client.get("/parlant/nothing").await, 404);
}
