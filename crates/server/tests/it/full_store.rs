//! A store without room: requests that write are told so, reads go on, and `/health` says it until there is room.

use petasos_testkit::{Reply, Setup, TestServer};
use serde_json::json;

/// Room for a few sessions and no more.
const SMALL: u64 = 600_000;

async fn start() -> TestServer {
    TestServer::start_with(Setup { max_store_bytes: Some(SMALL), ..Setup::default() }).await
}

#[tokio::test]
async fn a_full_store_is_507_and_degraded_until_a_write_succeeds() {
    let server = start().await;
    let session = server.session().await;
    let health = server.client.get("/health").await.expect(200);
    assert_eq!((&health["status"], &health["problems"]), (&json!("ok"), &json!([])));

    let agent = json!({ "name": "Large", "model": "openai/scripted", "instructions": "x".repeat(700_000) });
    server.client.post("/v1/agents", agent).await.expect_error(507, "store_full");
    let health = server.client.get("/health").await.expect(200);
    assert_eq!(health["status"], "degraded");
    assert!(health["problems"][0].as_str().unwrap().contains("full"), "{health}");
    // What reads goes on.
    server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert!(server.client.events(&session).await.is_empty());

    server.model.script([Reply::text("Hello.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "hello").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    let health = server.client.get("/health").await.expect(200);
    assert_eq!((&health["status"], &health["problems"]), (&json!("ok"), &json!([])));
}

#[tokio::test]
async fn routines_say_that_the_store_is_full_in_their_own_shape() {
    let server = start().await;
    let large = "x".repeat(700_000);
    let agent = json!({ "model": "openai/scripted", "instructions": large });
    let routine = json!({ "title": "Large", "description": "Too large.", "agent": agent });
    let put = server.client.put("/routines/large", routine).await;
    assert_eq!((put.status, &put.body["code"]), (507, &json!("store_full")), "{:?}", put.body);
}

#[tokio::test]
async fn a_database_that_is_replaced_takes_no_more_writes() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let database = server.home().join("petasos.db");
    let aside = server.home().join("aside.db");
    std::fs::rename(&database, &aside).unwrap();
    let steer = json!({ "type": "user.steer", "message": "lost?" });
    server.client.event(&session, steer.clone()).await.expect_error(503, "store_replaced");
    std::fs::copy(&aside, &database).unwrap();
    server.client.event(&session, steer.clone()).await.expect_error(503, "store_replaced");
    let health = server.client.get("/health").await.expect(200);
    assert_eq!(health["status"], "degraded");
    assert!(health["problems"][0].as_str().unwrap().contains("restart the server"), "{health}");
    server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    std::fs::rename(&aside, &database).unwrap();
    server.client.event(&session, steer).await.expect(200);
    assert_eq!(server.client.get("/health").await.expect(200)["status"], "ok");
}
