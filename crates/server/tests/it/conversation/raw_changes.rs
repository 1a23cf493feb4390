//! What was said is changed afterwards: events are deleted, and get other metadata. The log only grows.

use petasos_store::{EventQuery, Order};
use petasos_testkit::{Answer, Gate, Reply};
use serde_json::{Value, json};

use super::{Talk, story};

fn raw(talk: &Talk) -> String {
    format!("/parlant/sessions/{}", talk.session)
}

async fn read(talk: &Talk) -> Vec<Value> {
    let path = format!("{}/events?wait_for_data=0", raw(talk));
    talk.server.client.get(&path).await.expect(200).as_array().unwrap().clone()
}

async fn delete_from(talk: &Talk, offset: &Value) -> Answer {
    talk.server.client.delete(&format!("{}/events?min_offset={offset}", raw(talk))).await
}

/// Says something, and returns all events of the turn that answers it.
async fn turn(talk: &Talk, text: &str, answer: &str) -> Vec<Value> {
    talk.server.model.script([Reply::text(answer)]);
    let posted = talk.say(text).await;
    talk.until_over(posted["offset"].as_u64().unwrap()).await
}

#[tokio::test]
async fn deleted_events_are_gone_for_every_reader_and_the_model() {
    let talk = Talk::start().await;
    let first = turn(&talk, "My name is Anna.", "Hello, Anna.").await;
    let second = turn(&talk, "My card is 4711.", "Noted: 4711.").await;
    let all = read(&talk).await;
    let middle = delete_from(&talk, &second[1]["offset"]).await;
    assert!(middle.expect(422)["detail"].as_str().unwrap().contains("middle of a turn"));
    delete_from(&talk, &json!(1000)).await.expect(204);
    assert_eq!(read(&talk).await, all, "nothing was deleted so far");

    delete_from(&talk, &second[0]["offset"]).await.expect(204);
    assert_eq!(talk.read("wait_for_data=0").await, first);
    assert_eq!(read(&talk).await, all[..first.len()]);
    let gone = format!("{}/events/{}", raw(&talk), all[first.len()]["id"].as_str().unwrap());
    talk.server.client.get(&gone).await.expect(404);
    let herm = talk.server.client.events(&talk.session).await;
    assert!(!json!(herm).to_string().contains("4711"), "{herm:?}");
    let session = talk.server.client.get(&format!("/v1/sessions/{}", talk.session)).await.expect(200);
    assert_eq!(session["messages"].as_array().unwrap().len(), 2, "{session}");

    let restarted = Talk { server: talk.server.restart().await, ..talk };
    let third = turn(&restarted, "Who am I?", "Anna.").await;
    let last = second.last().unwrap()["offset"].as_u64().unwrap();
    assert!(third[0]["offset"].as_u64().unwrap() > last, "no offset is used again");
    let asked = restarted.server.model.requests().last().unwrap().body["messages"].to_string();
    assert!(asked.contains("My name is Anna.") && !asked.contains("4711"), "{asked}");
    let shown = restarted.read("wait_for_data=0").await;
    assert_eq!(shown, [first, third].concat());
    assert_eq!(story(&restarted.read(&format!("min_offset={last}&wait_for_data=0")).await).len(), 6);
    // The log has everything, and says what was deleted.
    let (order, limit, max_bytes) = (Order::Ascending, 1000, usize::MAX);
    let query = EventQuery { after: None, before: None, types: vec![], order, limit, max_bytes };
    let id = restarted.session.parse().unwrap();
    let log = petasos_store::EventLog::events(restarted.server.store(), &id, query).await.unwrap();
    assert!(format!("{log:?}").contains("4711"));
    delete_from(&restarted, &json!(0)).await.expect(204);
    assert!(read(&restarted).await.is_empty());
    let nothing = restarted.server.client.delete(&format!("{}/events", raw(&restarted))).await;
    nothing.expect(422);
    restarted.server.client.delete("/parlant/sessions/none/events?min_offset=0").await.expect(404);
}

#[tokio::test]
async fn labels_that_are_added_at_the_same_time_are_all_there() {
    let talk = Talk::start().await;
    let path = raw(&talk);
    for round in 0..5 {
        let label = |number: usize| format!("{round}-{number}");
        let added = (0..6).map(|number| json!({ "labels": { "upsert": [label(number)] } }));
        let sends = added.map(|change| talk.server.client.patch(&path, change));
        for answer in futures_util::future::join_all(sends).await {
            answer.expect(200);
        }
        let labels = talk.server.client.get(&path).await.expect(200)["labels"].clone();
        let missing: Vec<String> =
            (0..6).map(label).filter(|label| !labels.as_array().unwrap().contains(&json!(label))).collect();
        assert_eq!(missing, [""; 0], "{labels}");
    }
    let many: Vec<String> = (0..60).map(|number| format!("more-{number}")).collect();
    let refused = talk.server.client.patch(&path, json!({ "labels": { "upsert": many } })).await.expect(422);
    assert!(refused["detail"].as_str().unwrap().contains("labels: must be at most 64"), "{refused}");
}

#[tokio::test]
async fn a_deletion_ends_the_turn_that_it_takes_away() {
    let talk = Talk::start().await;
    let gate = Gate::new();
    talk.server.model.script([Reply::text("Sl").and_text("ow").gate(&gate), Reply::text("Fresh.")]);
    let posted = talk.say("slow").await;
    gate.reached().await;
    delete_from(&talk, &posted["offset"]).await.expect(204);
    gate.open();
    talk.server.wait_until_asleep().await;
    assert!(read(&talk).await.is_empty());
    let again = talk.say("again").await;
    let events = talk.until_over(again["offset"].as_u64().unwrap()).await;
    assert_eq!(
        story(&events),
        [
            "user_message again",
            "status acknowledged",
            "status processing",
            "status typing",
            "assistant_message Fresh.",
            "status ready"
        ]
    );
    let asked = talk.server.model.requests().last().unwrap().body["messages"].to_string();
    assert!(!asked.contains("slow"), "{asked}");
}

#[tokio::test]
async fn events_have_metadata_that_can_be_changed() {
    let talk = Talk::start().await;
    talk.server.model.script([Reply::text("Hello.")]);
    let body =
        json!({ "kind": "message", "source": "customer", "message": "hi", "metadata": { "a": 1, "b": 2 } });
    let posted = talk.server.client.post(&format!("{}/events", raw(&talk)), body).await.expect(201);
    assert_eq!(posted["metadata"], json!({ "a": 1, "b": 2 }));
    talk.until_over(0).await;
    let path = format!("{}/events/{}", raw(&talk), posted["id"].as_str().unwrap());
    let change = json!({ "metadata": { "set": { "seen": true }, "unset": ["a"] } });
    let changed = talk.server.client.patch(&path, change).await.expect(200);
    assert_eq!(changed["metadata"], json!({ "b": 2, "seen": true }));
    assert_eq!(talk.server.client.get(&path).await.expect(200), changed);
    let answer = read(&talk)
        .await
        .into_iter()
        .find(|event| event["source"] == "ai_agent" && event["kind"] == "message");
    let answer = format!("{}/events/{}", raw(&talk), answer.unwrap()["id"].as_str().unwrap());
    let rated = json!({ "metadata": { "set": { "rating": "good" } } });
    talk.server.client.patch(&answer, rated.clone()).await.expect(200);
    let talk = Talk { server: talk.server.restart().await, ..talk };
    let events = read(&talk).await;
    assert_eq!(events[0], changed);
    assert!(json!(events).to_string().contains(r#"{"rating":"good"}"#), "{events:?}");
    assert_eq!(talk.server.client.patch(&path, json!({})).await.expect(200), changed);
    // The model sees nothing of it.
    talk.server.model.script([Reply::text("Yes.")]);
    let said = talk.say("still there?").await;
    talk.until_over(said["offset"].as_u64().unwrap()).await;
    let asked = talk.server.model.requests().last().unwrap().body["messages"].to_string();
    assert!(!asked.contains("rating") && !asked.contains("seen"), "{asked}");
    let unknown = format!("{}/events/{}", raw(&talk), "evt_none");
    talk.server.client.patch(&unknown, rated).await.expect(404);
    let much: serde_json::Map<String, Value> = (0..1000).map(|key| (key.to_string(), json!(1))).collect();
    talk.server.client.patch(&path, json!({ "metadata": { "set": much } })).await.expect(422);
}

#[tokio::test]
async fn a_change_of_a_session_is_made_whole_or_not_at_all() {
    let talk = Talk::start().await;
    let before = talk.server.client.get(&talk.path()).await.expect(200);
    let denied = json!({ "set": { "event_webhook_url": "http://localhost/" } });
    let change = json!({ "title": "New", "mode": "manual", "metadata": denied });
    let answer = talk.server.client.patch(&talk.path(), change).await.expect(422);
    assert_eq!(answer["code"], "egress_denied");
    assert_eq!(talk.server.client.get(&talk.path()).await.expect(200), before);
    let change = json!({ "title": "New", "mode": "manual", "metadata": { "set": { "a": 1 } } });
    let after = talk.server.client.patch(&talk.path(), change).await.expect(200);
    assert_eq!(
        (&after["title"], &after["mode"], &after["metadata"]),
        (&json!("New"), &json!("manual"), &json!({ "a": 1 }))
    );
    let (order, limit, max_bytes) = (Order::Ascending, 10, usize::MAX);
    let query = EventQuery { after: None, before: None, types: vec![], order, limit, max_bytes };
    let id = talk.session.parse().unwrap();
    let log = petasos_store::EventLog::events(talk.server.store(), &id, query).await.unwrap().events;
    assert_eq!(log.len(), 3, "{log:?}");
    assert!(log.iter().all(|event| event.created_at == log[0].created_at), "one append: {log:?}");
}

#[tokio::test]
async fn sessions_without_a_customer_are_those_of_the_guest() {
    let talk = Talk::start().await;
    let client = &talk.server.client;
    let body = json!({ "agent_id": "interactiveAgent", "customer_id": "anna" });
    let annas = client.post("/parlant/sessions", body).await.expect(201);
    let listed = async |query: &str| {
        let sessions = client.get(&format!("/parlant/sessions?{query}")).await.expect(200);
        let ids: Vec<String> = sessions
            .as_array()
            .unwrap()
            .iter()
            .map(|session| session["id"].as_str().unwrap().to_owned())
            .collect();
        ids
    };
    assert_eq!(listed("customer_id=guest").await, [talk.session.as_str()]);
    assert_eq!(listed("customer_id=anna").await, [annas["id"].as_str().unwrap()]);
    let page = client.get("/parlant/sessions?customer_id=guest&limit=5").await.expect(200);
    assert_eq!((&page["total_count"], &page["items"][0]["customer_id"]), (&json!(1), &json!("guest")));
    assert_eq!(client.get("/parlant/customers/guest").await.expect(200)["name"], "Guest");
    client.delete("/parlant/sessions?customer_id=guest").await.expect(204);
    assert_eq!(listed("").await, [annas["id"].as_str().unwrap()]);
}

#[tokio::test]
async fn what_is_not_known_about_a_customer_is_as_it_is_for_all() {
    let talk = Talk::start().await;
    let client = &talk.server.client;
    let body = json!({ "name": "plan" });
    let variable = client.post("/parlant/context-variables", body).await.expect(201);
    let value = |key: &str| format!("/parlant/context-variables/{}/{key}", variable["id"].as_str().unwrap());
    client.put(&value("DEFAULT"), json!({ "data": "free" })).await.expect(200);
    client.put(&value("anna"), json!({ "data": "pro" })).await.expect(200);
    let asked = async |customer: Value, text: &str| {
        let body = json!({ "agent_id": "interactiveAgent", "customer_id": customer });
        let session = client.post("/parlant/sessions", body).await.expect(201);
        talk.server.model.script([Reply::text("Yes.")]);
        let path = format!("/parlant/sessions/{}/events", session["id"].as_str().unwrap());
        let message = json!({ "kind": "message", "source": "customer", "message": text });
        client.post(&path, message).await.expect(201);
        talk.server.wait_until_asleep().await;
        talk.server.model.requests().last().unwrap().body["messages"].to_string()
    };
    for (customer, plan) in
        [(Value::Null, "plan: free"), (json!("ben"), "plan: free"), (json!("anna"), "plan: pro")]
    {
        let told = asked(customer, "hello").await;
        assert!(told.contains(plan), "{told}");
    }
    let known = client.get("/conversation/customers/ben").await.expect(200);
    assert_eq!(known["variables"], json!({}), "what holds for all is not known about one");
}

#[tokio::test]
async fn the_tags_of_many_customers_are_read() {
    let talk = Talk::start().await;
    let client = &talk.server.client;
    let tag = client.post("/parlant/tags", json!({ "name": "vip" })).await.expect(201)["id"].clone();
    let ids: Vec<String> = (0..201).map(|number| format!("c{number}")).collect();
    let make =
        |id: &String| client.post("/parlant/customers", json!({ "id": id, "name": id, "tags": [tag] }));
    for made in futures_util::future::join_all(ids.iter().map(make)).await {
        made.expect(201);
    }
    let listed = client.get("/parlant/customers").await.expect(200);
    let tagged = listed.as_array().unwrap().iter().filter(|customer| customer["tags"] == json!([tag]));
    assert_eq!(tagged.count(), ids.len());
}
