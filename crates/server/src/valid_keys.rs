//! How long an answer may go on: until the server stops, or until the key that asked for it is revoked.
//!
//! A request is let in by its key once, and a stream may be open for days. Every revocation passes through this server,
//! so it is told here and nothing looks at the store again; with several nodes, each has to hear of it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use petasos_engine::{Error, hash_key};
use tokio_util::sync::CancellationToken;

use crate::auth;
use crate::problem::Problem;
use crate::server::App;

/// The keys that answers go on for. They are no more than there are keys.
pub(crate) struct ValidKeys {
    stopping: CancellationToken,
    /// By the hash of a key; a token that is cancelled stays, for requests that were let in just before.
    held: Mutex<HashMap<String, CancellationToken>>,
}

impl ValidKeys {
    pub(crate) fn new(stopping: CancellationToken) -> Self {
        ValidKeys { stopping, held: Mutex::default() }
    }

    fn token(&self, hash: String) -> CancellationToken {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.entry(hash).or_insert_with(|| self.stopping.child_token()).clone()
    }

    /// Ends all answers that still go on for a key.
    pub(crate) fn revoke(&self, hash: &str) {
        self.token(hash.to_owned()).cancel();
    }
}

/// Until when the answer to a request may go on.
#[derive(Clone)]
pub(crate) struct Until {
    over: CancellationToken,
    stopping: CancellationToken,
}

impl Until {
    /// What is cancelled when it is over.
    pub(crate) fn into_token(self) -> CancellationToken {
        self.over
    }

    /// Waits until it is over, and says why.
    pub(crate) async fn over(&self) -> Problem {
        self.over.cancelled().await;
        if self.stopping.is_cancelled() { Error::ShuttingDown.into() } else { auth::revoked() }
    }

    /// Waits until the key is revoked. An answer that is on its way when the server stops may still arrive.
    pub(crate) async fn revoked(&self) -> Problem {
        self.over.cancelled().await;
        if self.stopping.is_cancelled() {
            std::future::pending::<()>().await;
        }
        auth::revoked()
    }
}

impl FromRequestParts<App> for Until {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let key = auth::bearer(&parts.headers).ok_or_else(auth::revoked)?;
        let stopping = app.settings.stopping.clone();
        Ok(Until { over: app.settings.valid_keys.token(hash_key(key)), stopping })
    }
}
