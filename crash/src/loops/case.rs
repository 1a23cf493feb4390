//! The life of a piece of work that kills the server.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use petasos_testkit::{Client, ModelServer, within};
use serde_json::Value;
use tempfile::TempDir;

use crate::process::{Process, Start};
use crate::shim::{Rule, Shim};
use crate::{check, recording};

/// How long the server is up before it tries what is set aside.
const SETTLED: Duration = Duration::from_secs(10);

/// A kind of work, and how it is made to kill the server.
pub(super) trait Case: Default {
    /// What it is called in `setAside`.
    const KIND: &'static str;

    /// The content of `config.yaml`.
    fn config(&self) -> Value {
        Value::Object(serde_json::Map::new())
    }

    /// What models answer.
    fn answer(&self, model: &ModelServer) {
        model.respond(crate::model::reply);
    }

    /// Makes everything ready, before the rule holds.
    async fn prepare(&mut self, client: &Client);

    /// Whether the server stops in good order before the work begins, so that everything is in the database.
    fn stops_first(&self) -> bool {
        false
    }

    /// In which call the server dies.
    fn rule(&self) -> Rule;

    /// Begins the work. The server may be gone before it answers.
    async fn begin(&mut self, client: &Client);

    /// Checks that the work was done after all.
    async fn check_done(&self, client: &Client, home: &Path);

    /// How often the server dies until the work is given up.
    fn last_deaths(&self) -> u32 {
        1
    }

    /// Whether `setAside` shows the work after it was given up.
    fn shows_given_up(&self) -> bool {
        true
    }

    /// Checks that the work was given up, while the rule does not hold any more, and does what takes it off the list.
    async fn check_given_up(&self, client: &Client, home: &Path);

    /// Whether a server that runs can take it off the list.
    fn can_be_mended(&self) -> bool {
        true
    }
}

/// How it ends when the work is tried by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Success,
    GivenUp,
}

struct Lab<'a> {
    binary: &'a Path,
    home: TempDir,
    model: ModelServer,
    shim: Shim,
}

impl Lab<'_> {
    async fn launch(&self) -> Result<Start> {
        Process::launch(self.binary, self.home.path(), &self.model, Some(&self.shim)).await
    }

    async fn start(&self) -> Result<Process> {
        match self.launch().await? {
            Start::Ready(process) => Ok(process),
            Start::Refused(message) => anyhow::bail!("the server refuses to start: {message}"),
            Start::Killed => anyhow::bail!("the server dies at its start although the work is set aside"),
        }
    }

    /// Starts the server, which dies of the work by itself.
    async fn dies(&self) -> Result<()> {
        match self.launch().await? {
            Start::Ready(process) => process.until_killed().await,
            Start::Killed => Ok(()),
            Start::Refused(message) => anyhow::bail!("the server refuses to start: {message}"),
        }
    }
}

/// Takes a piece of work from its beginning to this ending.
pub(super) async fn crash_loop<C: Case>(binary: &Path, ending: Ending) -> Result<()> {
    live::<C>(binary, ending).await.with_context(|| format!("{}, {ending:?}", C::KIND))?;
    println!("crash loops: {} passed ({ending:?})", C::KIND);
    Ok(())
}

async fn live<C: Case>(binary: &Path, ending: Ending) -> Result<()> {
    let (home, shim, model) = (tempfile::tempdir()?, Shim::build().await?, ModelServer::start().await);
    let lab = Lab { binary, home, model, shim };
    let mut case = C::default();
    case.answer(&lab.model);
    std::fs::write(lab.home.path().join("config.yaml"), case.config().to_string())?;
    let server = lab.start().await?;
    case.prepare(&server.client()).await;
    if case.stops_first() {
        let client = server.client();
        server.stop().await?;
        case.begin(&client).await;
        lab.shim.set(&[case.rule()])?;
        lab.dies().await?;
    } else {
        lab.shim.set(&[case.rule()])?;
        case.begin(&server.client()).await;
        server.until_killed().await?;
    }
    for _ in 0..2 {
        lab.dies().await?;
    }

    let began = Instant::now();
    let server = lab.start().await?;
    let client = server.client();
    let listed = only_work(&client, C::KIND).await;
    assert_eq!(listed["givenUp"], false, "{listed}");
    let sessions = recording::sessions(&client, 1).await;
    check::takes_another_turn(&client, &sessions[0]).await;
    match ending {
        Ending::Success => {
            lab.shim.set(&[])?;
            until_nothing_is_set_aside(&client).await;
            assert!(began.elapsed() >= SETTLED, "it was tried after {:?}", began.elapsed());
            case.check_done(&client, lab.home.path()).await;
            server.stop().await?;
        }
        Ending::GivenUp => {
            server.until_killed().await?;
            assert!(began.elapsed() >= SETTLED, "it was tried after {:?}", began.elapsed());
            for _ in 1..case.last_deaths() {
                lab.dies().await?;
            }
            let server = lab.start().await?;
            lab.shim.set(&[])?;
            let client = server.client();
            check::takes_another_turn(&client, &sessions[0]).await;
            if case.shows_given_up() {
                let listed = only_work(&client, C::KIND).await;
                assert_eq!(listed["givenUp"], true, "{listed}");
            }
            case.check_given_up(&client, lab.home.path()).await;
            if case.can_be_mended() {
                until_nothing_is_set_aside(&client).await;
            }
            server.stop().await?;
        }
    }
    // Whatever it came to, the next start is an ordinary one.
    let server = lab.start().await?;
    assert_eq!(health(&server.client()).await["setAside"], serde_json::json!([]));
    server.stop().await?;
    Ok(())
}

pub(super) async fn health(client: &Client) -> Value {
    client.get("/health").await.expect(200)
}

/// The one piece of work that is set aside.
async fn only_work(client: &Client, kind: &str) -> Value {
    let health = health(client).await;
    let listed = health["setAside"].as_array().unwrap();
    let kinds: Vec<_> = listed.iter().map(|work| work["kind"].as_str().unwrap()).collect();
    assert_eq!(
        (kinds.as_slice(), health["status"].as_str()),
        ([kind].as_slice(), Some("degraded")),
        "{health}"
    );
    listed[0].clone()
}

pub(super) async fn until_nothing_is_set_aside(client: &Client) {
    within("nothing to be set aside", async {
        while !health(client).await["setAside"].as_array().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(health(client).await["status"], "ok");
}
