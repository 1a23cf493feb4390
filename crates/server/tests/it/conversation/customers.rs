//! Customers, and what the agent knows about them.

use petasos_testkit::Reply;
use serde_json::{Value, json};

use super::Talk;

async fn open(talk: &mut Talk, customer: &str) {
    let body = json!({ "customer_id": customer });
    let session = talk.server.client.post("/conversation/sessions", body).await.expect(201);
    talk.session = session["id"].as_str().unwrap().to_owned();
}

async fn asked(talk: &Talk, text: &str) -> Value {
    talk.server.model.script([Reply::text("Well.")]);
    let posted = talk.say(text).await;
    talk.until_over(posted["offset"].as_u64().unwrap()).await;
    talk.server.model.requests().last().unwrap().body["messages"].clone()
}

#[tokio::test]
async fn a_customer_is_registered_changed_and_forgotten() {
    let talk = Talk::start().await;
    let client = &talk.server.client;
    let body =
        json!({ "id": "anna", "name": "Anna", "metadata": { "crm": 7 }, "variables": { "plan": "pro" } });
    let anna = client.post("/conversation/customers", body.clone()).await.expect(201);
    for field in ["id", "name", "metadata", "variables"] {
        assert_eq!(anna[field], body[field]);
    }
    assert!(anna["created_at"].as_str().unwrap().ends_with('Z'));
    let again = client.post("/conversation/customers", body).await;
    assert_eq!((again.status, again.body["code"].as_str()), (409, Some("conflict")), "{}", again.body);
    let change = json!({ "name": "A.", "metadata": { "set": { "a": 1 }, "unset": ["crm"] },
        "variables": { "set": { "city": "Rome" }, "unset": ["plan", "nothing"] } });
    let changed = client.patch("/conversation/customers/anna", change).await.expect(200);
    assert_eq!((&changed["name"], &changed["metadata"]), (&json!("A."), &json!({ "a": 1 })));
    assert_eq!(changed["variables"], json!({ "city": "Rome" }));
    assert_eq!(client.get("/conversation/customers/anna").await.expect(200), changed);
    client.delete("/conversation/customers/anna").await.expect(204);
    for answer in [
        client.get("/conversation/customers/anna").await,
        client.delete("/conversation/customers/anna").await,
        client.patch("/conversation/customers/anna", json!({ "name": "B" })).await,
    ] {
        assert_eq!((answer.status, answer.body["code"].as_str()), (404, Some("not_found")));
    }
    for body in [
        json!({}),
        json!({ "name": "" }),
        json!({ "name": 5 }),
        json!({ "id": "", "name": "x" }),
        json!({ "id": "a\nb", "name": "x" }),
        json!({ "name": "x", "variables": [] }),
        json!({ "name": "x", "variables": { "long": "x".repeat(70_000) } }),
    ] {
        let answer = client.post("/conversation/customers", body).await;
        assert_eq!((answer.status, answer.body["code"].as_str()), (422, Some("invalid_request")));
    }
}

#[tokio::test]
async fn a_session_registers_its_customer_and_only_if_its_agent_is_there() {
    let mut talk = Talk::start().await;
    open(&mut talk, "ben/7").await;
    let ben = talk.server.client.get("/conversation/customers/ben%2F7").await.expect(200);
    assert_eq!((&ben["id"], &ben["name"]), (&json!("ben/7"), &json!("ben/7")));
    let body = json!({ "agent_id": "nobody", "customer_id": "carl" });
    talk.server.client.post("/conversation/sessions", body).await.expect(404);
    talk.server.client.get("/conversation/customers/carl").await.expect(404);
    let stranger = talk.server.client.with_header("x-petasos-tenant", "other");
    stranger.get("/conversation/customers/ben%2F7").await.expect(404);
}

#[tokio::test]
async fn the_model_is_told_what_is_known_once_for_each_change() {
    let mut talk = Talk::start().await;
    let body = json!({ "id": "anna", "name": "Anna", "metadata": { "secret": "crm-7" }, "variables": { "plan": "pro" } });
    talk.server.client.post("/conversation/customers", body).await.expect(201);
    open(&mut talk, "anna").await;
    let first = asked(&talk, "one").await;
    let told = |messages: &Value| messages.to_string().matches("What is known about the customer").count();
    assert!(first.to_string().contains("plan: pro") && !first.to_string().contains("crm-7"), "{first}");
    let second = asked(&talk, "two").await;
    assert_eq!((told(&first), told(&second)), (1, 1), "{second}");
    let change = json!({ "variables": { "set": { "plan": "free" } } });
    talk.server.client.patch("/conversation/customers/anna", change).await.expect(200);
    let third = asked(&talk, "three").await;
    assert_eq!(told(&third), 2);
    assert!(third.to_string().contains("plan: free"), "{third}");
    // What was said before stays as it was said, so that providers can reuse what they have read.
    let (before, after) = (second.as_array().unwrap(), third.as_array().unwrap());
    assert_eq!(before[..], after[..before.len()]);
    let restarted = Talk { server: talk.server.restart().await, ..talk };
    let fourth = asked(&restarted, "four").await;
    assert_eq!(told(&fourth), 2);
    let gone = json!({ "variables": { "unset": ["plan"] } });
    restarted.server.client.patch("/conversation/customers/anna", gone).await.expect(200);
    let fifth = asked(&restarted, "five").await;
    assert!(fifth.to_string().contains("Nothing is known about the customer any more"), "{fifth}");
}
