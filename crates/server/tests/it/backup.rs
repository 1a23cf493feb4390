//! Backups while the server runs.

use std::path::Path;

use petasos_store::SessionStore;
use petasos_store::sqlite::{Options, SqliteStore};
use petasos_testkit::{Gate, Reply, TestServer};
use serde_json::json;

#[tokio::test]
async fn a_backup_in_the_middle_of_a_turn_has_what_was_acknowledged() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let gate = Gate::new();
    server.model.script([Reply::text("Later.").gate(&gate)]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    gate.reached().await;
    let made = server.client.post("/v1/backup", json!({})).await.expect(201);
    gate.open();
    stream.until_idle().await;

    let path = Path::new(made["path"].as_str().unwrap());
    assert_eq!(path.parent().unwrap(), server.home().join("backups"));
    assert_eq!(made["bytes"], std::fs::metadata(path).unwrap().len());
    assert!(made["createdAt"].is_string());
    let copy = SqliteStore::open(Options::new(path)).unwrap();
    let running = copy.running_sessions().await.unwrap();
    assert_eq!(running.len(), 1, "a server on the copy goes on with the turn");
    assert_eq!(running[0].1.as_str(), session);
}

#[tokio::test]
async fn the_newest_backups_stay_and_what_others_put_there() {
    let server = TestServer::start().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        let copied = server.client.post("/v1/backup", json!({})).await.expect(201);
        let path = Path::new(copied["path"].as_str().unwrap()).to_owned();
        std::fs::write(path.with_file_name("petasos-before-the-move.db"), "mine").unwrap();
        made.push(path);
    }
    assert_eq!(made.iter().filter(|path| path.exists()).collect::<Vec<_>>(), [&made[2], &made[3], &made[4]]);
    assert!(made[0].with_file_name("petasos-before-the-move.db").exists());
}

#[tokio::test]
async fn only_administrators_make_backups() {
    let server = TestServer::start().await;
    let key = server.client.post("/v1/keys", json!({})).await.expect(201);
    let client = server.client_with(key["key"].as_str().unwrap());
    let problem = client.post("/v1/backup", json!({})).await.expect_error(403, "forbidden");
    assert_eq!(problem["scope"], "admin");
    assert!(!server.home().join("backups").exists());
    server.client.get("/v1/backup").await.expect_error(405, "method_not_allowed");
}
