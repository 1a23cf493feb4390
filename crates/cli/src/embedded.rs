//! A server that runs in the process of a command, for as long as the command does.

use std::path::Path;

use anyhow::{Context, Result};
use petasos_store::sqlite::SqliteStore;
use secrecy::ExposeSecret;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admin_key::{AdminKey, Source};
use crate::config::Config;
use crate::connect::Purpose;
use crate::env::Environment;
use crate::home::Home;
use crate::instance::{COMMAND_GRACE, Instance, Stopped};
use crate::server_file::{Owner, ServerFile};
use crate::user_code::{Extent, UserCode};

/// A server of a command's own.
pub(crate) struct Embedded {
    /// Where it is.
    pub(crate) url: String,
    home: Home,
    shutdown: CancellationToken,
    running: JoinHandle<Stopped>,
}

impl Embedded {
    /// Runs a server in this process. A key that was made just now lives as long as the command: the first one to
    /// keep is made by `serve`.
    pub(crate) async fn start(
        store: SqliteStore,
        database: &Path,
        config: Config,
        home: Home,
        environment: &Environment,
        admin: &AdminKey,
        purpose: Purpose,
    ) -> Result<Embedded> {
        let extent = match purpose {
            Purpose::Administer => Extent::Configured,
            Purpose::Run | Purpose::Chat => Extent::Turns,
        };
        let user_code = UserCode::start(&config, &home, environment, extent).await?;
        let (listen, key) = ("127.0.0.1:0", admin.key.clone());
        let mut instance = Instance::bind(config, store, &home, listen, key, user_code).await?;
        instance.read_routines().await;
        let url = instance.url();
        if purpose == Purpose::Chat {
            instance.recover().await?;
            let key = (admin.source == Source::New).then(|| admin.key.expose_secret().to_owned());
            ServerFile::write(&home, url.clone(), database, key, Owner::Chat)?;
        }
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(instance.run(shutdown.clone(), COMMAND_GRACE));
        Ok(Embedded { url, home, shutdown, running })
    }

    /// Ends it.
    pub(crate) async fn close(self) -> Result<()> {
        self.shutdown.cancel();
        let stopped = self.running.await.context("end the embedded server")?;
        let removed = ServerFile::remove_own(&self.home);
        stopped.close().await.and(removed)
    }
}
