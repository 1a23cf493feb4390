//! What receivers know deliveries by: different for each tenant, and never a key of the server.

use petasos_net::webhook::Signer;
use petasos_testkit::receiver::{Received, Receiver};
use petasos_testkit::{Client, Reply, Setup, TestServer};
use serde_json::{Value, json};

use super::setup;

const ADMIN_KEY: &str = "pk_admin_key_of_tests";

async fn tenant(server: &TestServer, name: &str) -> (Client, String) {
    let scopes = ["agents:read", "agents:write", "sessions:read", "sessions:write"];
    let key = server.client.post("/v1/keys", json!({ "tenant": name, "scopes": scopes })).await.expect(201);
    let key = key["key"].as_str().unwrap().to_owned();
    (server.client_with(&key), key)
}

async fn credentials(server: &TestServer, tenant: &str) -> Value {
    let client = server.client.with_header("x-petasos-tenant", tenant);
    client.get("/deliveries/credentials").await.expect(200)
}

/// Has a turn of a tenant's own agent whose events go to the receiver.
async fn turn(server: &TestServer, client: &Client, receiver: &Receiver) -> Vec<Received> {
    let metadata = json!({ "event_webhook_url": receiver.url });
    let agent = client.agent(json!({ "name": "A", "model": "openai/scripted", "metadata": metadata })).await;
    let session = client.session(&agent).await;
    server.model.script([Reply::text("Hello.")]);
    client.message(&session, "hi").await.expect(200);
    receiver.wait_for(4).await
}

fn is_signed_with(request: &Received, secret: &Value) -> bool {
    let signer: Signer = secret.as_str().unwrap().parse().unwrap();
    let timestamp = request.header("webhook-timestamp").parse().unwrap();
    signer.sign(request.header("webhook-id"), timestamp, &request.body) == request.header("webhook-signature")
}

#[tokio::test]
async fn every_tenant_has_a_token_and_a_secret_of_its_own() {
    let server = TestServer::start_with(Setup { delivery_token: Some("out".into()), ..setup() }).await;
    let own = [
        credentials(&server, "default").await,
        credentials(&server, "acme").await,
        credentials(&server, "b").await,
    ];
    assert_eq!(own[0], json!({ "token": "out", "secret": petasos_testkit::server::DELIVERY_SECRET }));
    for (index, tenant_name) in ["default", "acme", "b"].into_iter().enumerate() {
        let receiver = Receiver::start().await;
        let (client, key) = tenant(&server, tenant_name).await;
        for request in turn(&server, &client, &receiver).await {
            let bearer = request.header("authorization").to_owned();
            assert_eq!(bearer, format!("Bearer {}", own[index]["token"].as_str().unwrap()));
            assert!(!bearer.contains(ADMIN_KEY) && !bearer.contains(&key));
            for (other, credentials) in own.iter().enumerate() {
                assert_eq!(is_signed_with(&request, &credentials["secret"]), other == index, "{tenant_name}");
            }
        }
    }
}

#[tokio::test]
async fn no_key_is_sent_without_a_token_either() {
    let server = TestServer::start_with(setup()).await;
    let receiver = Receiver::start().await;
    let (client, key) = tenant(&server, "default").await;
    let token = credentials(&server, "default").await["token"].as_str().unwrap().to_owned();
    for request in turn(&server, &client, &receiver).await {
        assert_eq!(request.header("authorization"), format!("Bearer {token}"));
        assert!(token != ADMIN_KEY && token != key);
    }
    server.client_with(&token).get("/v1/agents").await.expect_error(401, "unauthorized");
}

#[tokio::test]
async fn only_administrators_see_credentials() {
    let server = TestServer::start_with(setup()).await;
    let (client, _) = tenant(&server, "acme").await;
    client.get("/deliveries/credentials").await.expect(403);
    server.client_with("").get("/deliveries/credentials").await.expect(401);
    let shown = server.client.get("/deliveries/credentials").await.expect(200);
    assert_eq!(shown, credentials(&server, "default").await);
}

#[tokio::test]
async fn public_targets_need_no_configured_token() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({})).await;
    let metadata = json!({ "metadata": { "event_webhook_url": "https://not-there.invalid/hook" } });
    server.client.post(&format!("/v1/agents/{agent}/sessions"), metadata).await.expect(201);
}
