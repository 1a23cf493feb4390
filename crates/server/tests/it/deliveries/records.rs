//! `/deliveries`.

use petasos_testkit::receiver::Reception;
use serde_json::{Value, json};

use super::{deliveries, session, settled, start, statuses, turn};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_delivery_shows_what_was_tried() {
    let (server, receiver) = start().await;
    let session = session(&server, &receiver.url).await;
    receiver.script([Reception::Status(500)]);
    turn(&server, &session, "Hello.").await;
    let all = settled(&server, &session).await;
    let id = all[0]["id"].as_str().unwrap();
    let delivery = server.client.get(&format!("/deliveries/{id}")).await.expect(200);
    assert_eq!(delivery, all[0]);
    let names = [
        "id",
        "kind",
        "session_id",
        "run_id",
        "offset",
        "url",
        "webhook_id",
        "status",
        "attempts",
        "next_attempt_at",
        "created_at",
        "replay_of",
    ];
    assert_eq!(keys(&delivery), names);
    assert_eq!(keys(&delivery["attempts"][0]), ["at", "status_code", "error", "duration_ms"]);
    assert_eq!((&delivery["kind"], &delivery["run_id"]), (&json!("event"), &Value::Null));
    assert_eq!((&delivery["offset"], &delivery["session_id"]), (&json!(0), &json!(session)));
}

#[tokio::test]
async fn deliveries_are_listed_in_pages_and_by_status() {
    let (server, receiver) = start().await;
    let session = session(&server, &receiver.url).await;
    receiver.script(vec![Reception::Status(410)]);
    turn(&server, &session, "Hello.").await;
    let all = settled(&server, &session).await;
    let dead = server.client.get("/deliveries?status=dead").await.expect(200);
    assert_eq!(dead["items"], json!([all[0]]));
    let first = server.client.get("/deliveries?limit=4").await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = server.client.get(&format!("/deliveries?limit=4&cursor={cursor}")).await.expect(200);
    assert_eq!(rest["items"], json!([all[0]]));
    assert_eq!(rest["next_cursor"], Value::Null);
    for query in ["status=lost", "limit=0", "limit=x", "cursor=x", "session_id=a%2Fb"] {
        let error = server.client.get(&format!("/deliveries?{query}")).await.expect(422);
        assert_eq!(error["code"], "invalid_request", "{query}");
        assert!(error["details"].is_object() && error["message"].is_string());
    }
}

#[tokio::test]
async fn a_dead_delivery_can_be_replayed() {
    let (server, receiver) = start().await;
    let session = session(&server, &receiver.url).await;
    receiver.script(vec![Reception::Status(410)]);
    turn(&server, &session, "Hello.").await;
    let before = settled(&server, &session).await;
    let id = before[0]["id"].as_str().unwrap();
    let replay = server.client.post(&format!("/deliveries/{id}/replay"), json!({})).await.expect(202);
    assert_eq!((&replay["replay_of"], &replay["status"]), (&json!(id), &json!("pending")));
    assert_eq!(replay["webhook_id"], before[0]["webhook_id"]);
    let received = receiver.wait_for(6).await;
    assert_eq!(received[5].body, received[0].body);
    assert_eq!(received[5].header("webhook-id"), received[0].header("webhook-id"));
    assert_eq!(received[5].header("webhook-attempt"), "1");
    let after = settled(&server, &session).await;
    assert_eq!(statuses(&after), ["dead", "delivered", "delivered", "delivered", "delivered", "delivered"]);
    assert_eq!(after[0], before[0]);
}

#[tokio::test]
async fn a_replay_goes_where_events_go_now() {
    let (server, receiver) = start().await;
    receiver.answer("/gone", Reception::Status(410));
    let session = session(&server, &receiver.at("/gone")).await;
    turn(&server, &session, "Hello.").await;
    let all = settled(&server, &session).await;
    super::set_url(&server, &session, receiver.at("/here").into()).await;
    let id = all[2]["id"].as_str().unwrap();
    server.client.post(&format!("/deliveries/{id}/replay"), json!({})).await.expect(202);
    let received = receiver.wait_for(6).await;
    assert_eq!((received[5].path.as_str(), &received[5].body), ("/here", &received[2].body));
}

#[tokio::test]
async fn deliveries_of_another_tenant_do_not_exist() {
    let (server, receiver) = start().await;
    let session = session(&server, &receiver.url).await;
    turn(&server, &session, "Hello.").await;
    let all = deliveries(&server, &session).await;
    let id = all[0]["id"].as_str().unwrap();
    let stranger = server.client.with_header("x-petasos-tenant", "other");
    assert_eq!(stranger.get("/deliveries").await.expect(200)["items"], json!([]));
    for answer in [
        stranger.get(&format!("/deliveries/{id}")).await,
        stranger.post(&format!("/deliveries/{id}/replay"), json!({})).await,
        server.client.get("/deliveries/dlv_none").await,
        server.client.get("/deliveries/a%2Fb").await,
    ] {
        assert_eq!(answer.expect(404)["code"], "not_found");
    }
    let nobody = server.client_with("");
    assert_eq!(nobody.get("/deliveries").await.expect(401)["code"], "unauthorized");
}
