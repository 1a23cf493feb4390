//! `/v1/backup`: a copy of everything, for administrators.
//!
//! The copy stays on the server's machine: it holds the sessions of all tenants, and is no answer to a request.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use jiff::Timestamp;
use petasos_core::key::KeyScope;
use petasos_store::{Backup, Error};
use schemars::JsonSchema;
use serde::Serialize;

use crate::auth::Administers;
use crate::openapi::{Api, Operation};
use crate::problem::Problem;
use crate::server::App;

/// What makes backups, and where they are kept.
#[derive(Clone)]
pub struct Backups {
    /// The store, if it can copy itself.
    pub store: Arc<dyn Backup>,
    /// The directory that copies are written to. It is made when it is needed.
    pub directory: PathBuf,
    /// How many of them stay there; a new one takes the place of the oldest.
    pub keep: NonZero<usize>,
}

pub(crate) fn api() -> Api {
    let operation = Operation::new::<Copied>(
        "backUp",
        "Writes a copy of the whole database to the server's disk, while sessions go on.",
        KeyScope::Admin,
    );
    Api::default().post("/v1/backup", post(back_up), operation.creates())
}

/// A backup that is complete and on the disk.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Copied {
    /// Where it is on the server's machine.
    path: String,
    /// Its size.
    bytes: u64,
    /// Every event that was acknowledged before this is in it.
    created_at: String,
}

async fn back_up(State(app): State<App>, _: Administers) -> Result<(StatusCode, Json<Copied>), Problem> {
    let Some(backups) = &app.settings.backups else {
        let message = "This store is backed up with the tools of its own database.";
        return Err(Problem::new(StatusCode::NOT_IMPLEMENTED, "not_supported", message));
    };
    let created_at = Timestamp::now();
    let name = created_at.strftime("petasos-%Y%m%dT%H%M%S.%6fZ.db").to_string();
    let path = backups.directory.join(name);
    let shown = path.display().to_string();
    let bytes = backups.store.backup(path).await.map_err(problem)?;
    remove_oldest(backups.clone()).await;
    Ok((StatusCode::CREATED, Json(Copied { path: shown, bytes, created_at: created_at.to_string() })))
}

/// Removes backups of which there are newer ones enough. One that cannot be removed does no harm but take room.
async fn remove_oldest(backups: Backups) {
    let removing = tokio::task::spawn_blocking(move || {
        let names =
            fs::read_dir(&backups.directory)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        // What somebody else has put there stays.
        let mut made: Vec<String> =
            names.filter(|name| name.starts_with("petasos-2") && name.ends_with("Z.db")).collect();
        // Their names sort by time.
        made.sort_unstable();
        let excess = made.len().saturating_sub(backups.keep.get());
        made.iter().take(excess).try_for_each(|name| fs::remove_file(backups.directory.join(name)))
    });
    if let Err(error) = removing.await.unwrap_or_else(|bug| Err(io::Error::other(bug))) {
        tracing::warn!(%error, "old backups could not be removed");
    }
}

fn problem(error: Error) -> Problem {
    match error {
        Error::BackupUnderWay => {
            let message = "A backup is being made already; wait until it is done.";
            Problem::new(StatusCode::CONFLICT, "backup_in_progress", message).retry_after(1)
        }
        Error::Closed => petasos_engine::Error::ShuttingDown.into(),
        error => petasos_engine::Error::from(error).into(),
    }
}
