//! A server in the place of another chat's: when that chat has ended, one that used its server goes on with its own.
//!
//! Only for servers of chats, which end with them. What `petasos serve` ran is started again by whoever did so before,
//! and must find its home free.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use tokio::sync::Mutex;

use crate::admin_key::AdminKey;
use crate::config::Config;
use crate::connect::Purpose;
use crate::database;
use crate::embedded::Embedded;
use crate::env::Environment;
use crate::home::Home;
use crate::server_file::ServerFile;

/// What it takes to run a server like the one that is used.
pub(crate) struct Successor {
    /// The configuration, if it is not the home's.
    pub(crate) config: Option<PathBuf>,
    pub(crate) database: PathBuf,
    pub(crate) home: Home,
    pub(crate) environment: Environment,
    /// The key that everybody has who uses the server.
    pub(crate) admin: AdminKey,
    /// The server, once it runs here.
    pub(crate) embedded: Mutex<Option<Embedded>>,
}

impl Successor {
    /// Starts a server, unless one has the database. Where it is, the home tells.
    pub(crate) async fn take_over(self: &Arc<Self>) {
        let this = Arc::clone(self);
        // A task of its own: whoever waits for this may turn to something else, and half a server helps nobody.
        let started = tokio::spawn(async move { this.start().await }).await;
        if let Ok(Err(error)) = started {
            tracing::warn!("no server can be started in the place of the one that has ended: {error:#}");
        }
    }

    async fn start(&self) -> Result<()> {
        let mut embedded = self.embedded.lock().await;
        if embedded.is_some() {
            return Ok(());
        }
        let store = match database::open(self.database.clone()).await? {
            Ok(store) => store,
            Err(petasos_store::Error::InUse { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        ServerFile::remove_stale(&self.home, &self.database)?;
        let config = Config::read(self.config.as_deref(), &self.home, &self.environment)?;
        let (home, environment, purpose) = (self.home.clone(), &self.environment, Purpose::Chat);
        let admin = &self.admin;
        let started = Embedded::start(store, &self.database, config, home, environment, admin, purpose);
        *embedded = Some(Box::pin(started).await?);
        Ok(())
    }

    /// Ends the server, if there is one.
    pub(crate) async fn close(&self) -> Result<()> {
        match self.embedded.lock().await.take() {
            Some(embedded) => embedded.close().await,
            None => Ok(()),
        }
    }
}
