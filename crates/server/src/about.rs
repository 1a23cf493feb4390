//! `GET /v1/server`: what this server is, for administrators.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use petasos_core::key::KeyScope;
use schemars::JsonSchema;
use serde::Serialize;

use crate::auth::Administers;
use crate::openapi::{Api, Operation};
use crate::problem::Problem;
use crate::server::App;

pub(crate) fn api() -> Api {
    let operation = Operation::new::<About>(
        "aboutServer",
        "What this server is and what confines commands.",
        KeyScope::Admin,
    );
    Api::default().get("/v1/server", get(about), operation)
}

/// What this server is.
#[derive(Serialize, JsonSchema)]
struct About {
    version: &'static str,
    /// The model providers that it has, without their keys and addresses.
    providers: Vec<Provider>,
    sandbox: Sandbox,
}

/// A model provider.
#[derive(Serialize, JsonSchema)]
struct Provider {
    /// What stands before the slash of a model.
    name: String,
    /// `openai`, `openai-responses`, `anthropic` or `demo`.
    kind: &'static str,
}

/// What confines the commands of agents.
#[derive(Serialize, JsonSchema)]
struct Sandbox {
    /// `full` if every promise is kept, `partial` if not, `none` if commands are not confined.
    level: &'static str,
    /// `landlock`, `bubblewrap`, `docker` or `none`.
    backend: &'static str,
    promises: Vec<Promise>,
}

/// Something that commands cannot do.
#[derive(Serialize, JsonSchema)]
struct Promise {
    promise: &'static str,
    /// Whether that is so here.
    kept: bool,
    /// What keeps it, such as `landlock`, `seccomp` or `namespace`.
    by: Option<&'static str>,
}

async fn about(_: Administers, State(app): State<App>) -> Result<Json<About>, Problem> {
    let sandbox = app.settings.sandbox.clone();
    // Right after the start it is still being found out.
    let report = move || sandbox.map(|sandbox| sandbox.report().clone()).unwrap_or_default();
    let report =
        tokio::task::spawn_blocking(report).await.map_err(|error| Problem::internal(&error.to_string()))?;
    let promises = report.promises.iter();
    let promises = promises.map(|told| Promise { promise: told.promise, kept: told.kept, by: told.by });
    let sandbox = Sandbox { level: report.level(), backend: report.backend, promises: promises.collect() };
    let providers = app.engine.providers().into_iter();
    let providers = providers.map(|(name, kind)| Provider { name: name.to_owned(), kind }).collect();
    Ok(Json(About { version: env!("CARGO_PKG_VERSION"), providers, sandbox }))
}
