//! A tool call, a model call and a delivery: the server is killed from outside while they are not answered.

use std::path::Path;

use anyhow::{Context, Result};
use petasos_testkit::receiver::{Received, Receiver, Reception};
use petasos_testkit::{Client, Gate, ModelServer, Reply, within};
use serde_json::{Value, json};

use crate::process::Process;

/// Requests to the model until the model call is tried by itself: one for the tool call and three for the model call,
/// one that tells what came of the tool call, and one of somebody else.
const REQUESTS: usize = 6;

/// What the checks need.
struct Suite<'a> {
    binary: &'a Path,
    home: &'a Path,
    model: &'a ModelServer,
    receiver: &'a Receiver,
    page: &'a Receiver,
}

pub(super) async fn run(binary: &Path) -> Result<()> {
    let home = tempfile::tempdir()?;
    let (receiver, page) = (Receiver::start().await, Receiver::start().await);
    let config = json!({
        "egress": { "allow": ["127.0.0.1"] },
        "deliveries": { "event_webhook_url": receiver.url },
    });
    std::fs::write(home.path().join("config.yaml"), config.to_string())
        .context("cannot write the configuration")?;
    let model = ModelServer::start().await;
    // Nothing ever comes of these.
    receiver.answer("/hook", Reception::Silence);
    page.answer("/hook", Reception::Silence);
    let suite = Suite { binary, home: home.path(), model: &model, receiver: &receiver, page: &page };
    suite.run().await?;
    println!("crash loops: tool_call, model_call and delivery passed");
    Ok(())
}

impl Suite<'_> {
    async fn start(&self) -> Result<Process> {
        Process::start(self.binary, self.home, self.model).await.context("the server does not start again")
    }

    async fn run(&self) -> Result<()> {
        let mut server = self.start().await?;
        let agent = server.client().agent(json!({ "name": "Loops", "model": "openai/scripted" })).await;
        let reads = server.client().session(&agent).await;
        let asks = server.client().session(&agent).await;
        let gate = Gate::new();
        let input = json!({ "url": self.page.url });
        self.model.when("read", [Reply::tool_call("web_extract", input), Reply::text("Then not.")]);
        for _ in 0..4 {
            self.model.when("ask", [Reply::empty().gate(&gate)]);
        }
        server.client().message(&reads, "read").await.expect(200);
        server.client().message(&asks, "ask").await.expect(200);
        for kill in 1..=3 {
            self.page.wait_for(kill).await;
            self.receiver.wait_for(2 * kill).await;
            within("the model call", self.model.wait_for_requests(1 + kill)).await;
            server.kill().await?;
            server = self.start().await?;
        }
        let client = server.client();
        check_set_aside(
            &client,
            &[("tool_call", &reads), ("model_call", &asks), ("delivery", &asks), ("delivery", &reads)],
        )
        .await;
        self.serves_others(&client, &agent).await;
        until_idle(&client, &reads, "end_turn").await;
        assert_eq!(self.page.received().len(), 3, "the call is not made again");

        // After ten seconds the model call is tried by itself. The server dies of it.
        within("the model call to be tried", self.model.wait_for_requests(REQUESTS + 1)).await;
        server.kill().await?;
        let server = self.start().await?;
        let client = server.client();
        until_idle(&client, &asks, "error").await;
        // Deliveries are tried one by one, and go well. The session works again.
        self.receiver.forget();
        self.receiver.answer("/hook", Reception::Status(200));
        self.model.when("again", [Reply::text("Fine.")]);
        client.message(&asks, "again").await.expect(200);
        let of = |session: &str, received: &[Received]| {
            received.iter().any(|request| request.header("x-session-id") == session)
        };
        self.receiver.wait_until(|received| of(&asks, received) && of(&reads, received)).await;
        within("everything to succeed", async {
            while !health(&client).await["setAside"].as_array().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(health(&client).await["status"], "ok");
        server.stop().await?;
        Ok(())
    }

    async fn serves_others(&self, client: &Client, agent: &str) {
        let session = client.session(agent).await;
        self.model.when("somebody else", [Reply::text("Here.")]);
        client.message(&session, "somebody else").await.expect(200);
        until_idle(client, &session, "end_turn").await;
    }
}

async fn health(client: &Client) -> Value {
    client.get("/health").await.expect(200)
}

/// Checks that exactly this is set aside: kinds of work with the sessions that they are about.
async fn check_set_aside(client: &Client, expected: &[(&str, &String)]) {
    let health = health(client).await;
    assert_eq!(health["status"], "degraded");
    let shown = health["setAside"].as_array().unwrap().iter();
    let mut shown: Vec<_> =
        shown.map(|work| (work["kind"].as_str().unwrap(), work["sessionId"].as_str().unwrap())).collect();
    let mut expected: Vec<_> = expected.iter().map(|(kind, session)| (*kind, session.as_str())).collect();
    shown.sort_unstable();
    expected.sort_unstable();
    assert_eq!(shown, expected, "{health}");
}

async fn until_idle(client: &Client, session: &str, stop: &str) {
    let mut stream = client.stream(session, "?after=0").await;
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some(stop));
}
