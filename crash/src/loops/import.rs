//! An import is one request. A server that dies of it has nothing to pick up again, and starts at once.

use std::path::Path;

use anyhow::Result;
use petasos_net::{Client as HttpClient, Method, Options};
use petasos_testkit::ModelServer;
use serde_json::json;

use super::case::health;
use crate::process::{KEY, Process};
use crate::shim::{Call, Rule, Shim};
use crate::{check, model, recording};

const MARK: &str = "imported-mark";
const PATH: &str = "/v1/sessions/import";

pub(super) async fn run(binary: &Path) -> Result<()> {
    let (home, shim, model) = (tempfile::tempdir()?, Shim::build().await?, ModelServer::start().await);
    model.respond(model::reply);
    let mut server = Process::start_with(binary, home.path(), &model, &shim).await?;
    let sessions = recording::sessions(&server.client(), 1).await;
    let lines = exported(&server, &sessions[0]).await?;
    shim.set(&[Rule::kill(Call::Write, "*/petasos.db-wal", MARK)])?;
    for _ in 0..3 {
        let answer = server.client().try_send(Method::Post, PATH, Some(lines.clone().into())).await;
        assert_eq!(answer, None, "the server dies of it");
        server.until_killed().await?;
        server = Process::start_with(binary, home.path(), &model, &shim).await?;
        let health = health(&server.client()).await;
        assert_eq!((&health["status"], &health["setAside"]), (&json!("ok"), &json!([])), "{health}");
        check::takes_another_turn(&server.client(), &sessions[0]).await;
    }
    // Nothing of it is there, so it can be sent again.
    shim.set(&[])?;
    let client = server.client();
    let imported = client.send(Method::Post, PATH, Some(lines.into())).await.expect(201);
    check::takes_another_turn(&client, imported["id"].as_str().unwrap()).await;
    server.stop().await?;
    println!("crash loops: import passed (nothing is picked up again)");
    Ok(())
}

/// A session with another id and a text that is nowhere else, as the lines of an export.
async fn exported(server: &Process, session: &str) -> Result<String> {
    check::takes_another_turn(&server.client(), session).await;
    let url = format!("http://{}/v1/sessions/{session}/export", server.address());
    let key = format!("Bearer {KEY}");
    let http = HttpClient::new(&Options::default());
    let export = http.request(Method::Get, &url, &[("authorization", key.as_str())], None).await?;
    let text = export.text_bounded(usize::MAX).await?;
    let other = format!("session_{}", "f".repeat(32));
    Ok(text.replace(session, &other).replace("finished plain-last", MARK))
}
