//! Where deliveries may go.

use petasos_testkit::receiver::Receiver;
use petasos_testkit::{Setup, TestServer};
use serde_json::json;

use super::{session, settled, setup, statuses, turn};

/// What must never be accepted on a caller's word.
const REFUSED: [&str; 31] = [
    "",
    "/hook",
    "//example.com/hook",
    "example.com",
    "ftp://example.com/",
    "http://example.com/hook",
    "https:///hook",
    "https:example.com",
    " https://example.com/",
    "https://example.com/ ",
    "https://example.com/\n",
    "https://user@example.com/",
    "https://user:word@example.com/",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://a.localhost/",
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://017700000001/",
    "https://0x7f000001/",
    "https://127.1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://10.0.0.1/",
    "https://169.254.169.254/latest",
    "https://100.64.0.1/",
    "https://0.0.0.0/",
    "https://255.255.255.255/",
];

async fn with_token() -> TestServer {
    let setup = Setup { guard: Default::default(), delivery_token: Some("out".into()), ..setup() };
    TestServer::start_with(setup).await
}

#[tokio::test]
async fn what_may_not_be_reached_is_refused_when_it_is_named() {
    let server = with_token().await;
    let agent = server.agent_with(json!({})).await;
    let session = server.client.session(&agent).await;
    for url in REFUSED {
        let metadata = json!({ "metadata": { "event_webhook_url": url } });
        let sessions = format!("/v1/agents/{agent}/sessions");
        server.client.post(&sessions, metadata.clone()).await.expect_error(400, "egress_denied");
        let path = format!("/v1/sessions/{session}");
        server.client.patch(&path, metadata.clone()).await.expect_error(400, "egress_denied");
        let definition = json!({ "name": "A", "model": "demo/echo", "metadata": metadata["metadata"] });
        server.client.post("/v1/agents", definition).await.expect_error(400, "egress_denied");
        let agent_path = format!("/v1/agents/{agent}");
        server.client.patch(&agent_path, metadata.clone()).await.expect_error(400, "egress_denied");
        let body = json!({ "agent_id": agent, "metadata": metadata["metadata"] });
        let refused = server.client.post("/conversation/sessions", body).await.expect(422);
        assert_eq!(refused["code"], "egress_denied", "{url}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.starts_with("metadata.event_webhook_url: "), "{message}");
        let change = json!({ "metadata": { "set": metadata["metadata"] } });
        let refused =
            server.client.patch(&format!("/conversation/sessions/{session}"), change).await.expect(422);
        assert_eq!(refused["code"], "egress_denied", "{url}");
    }
    let odd = json!({ "metadata": { "event_webhook_url": 7 } });
    server.client.patch(&format!("/v1/sessions/{session}"), odd).await.expect_error(400, "egress_denied");
    let good = json!({ "metadata": { "event_webhook_url": "https://not-there.invalid/hook" } });
    server.client.patch(&format!("/v1/sessions/{session}"), good).await.expect(200);
}

#[tokio::test]
async fn a_name_is_checked_where_it_leads_at_every_attempt() {
    let receiver = Receiver::start().await;
    let server = with_token().await;
    // A name that is none of this machine's, and leads there all the same where a resolver says so.
    let port = receiver.url.rsplit(':').next().unwrap().split('/').next().unwrap();
    let session = session(&server, &format!("https://127.0.0.1.nip.invalid:{port}/hook")).await;
    turn(&server, &session, "Hello.").await;
    let all = settled(&server, &session).await;
    assert_eq!(statuses(&all), vec!["dead"; 5]);
    assert!(receiver.received().is_empty());
}
