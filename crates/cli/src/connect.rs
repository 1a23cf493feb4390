//! How a command reaches a server: the one it was told, the one that runs in the home, or one of its own.
//!
//! All commands speak HTTP to whichever it is, so that there is one way in which things are done.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use petasos_store::sqlite::SqliteStore;
use secrecy::SecretString;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::admin_key::AdminKey;
use crate::api::Api;
use crate::args::ConnectArgs;
use crate::config::Config;
use crate::env::{self, Environment};
use crate::home::Home;
use crate::instance::{Instance, Stopped};
use crate::server_file::ServerFile;
use crate::{database, logging};

const LOG_LEVEL: &str = "warn";
/// How long to wait for a server that is just starting, or for another command that is just ending.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// A way to a server.
pub(crate) struct Connection {
    /// The server.
    pub(crate) api: Api,
    embedded: Option<Embedded>,
}

/// A server that runs in this process while the command does.
struct Embedded {
    shutdown: CancellationToken,
    running: JoinHandle<Stopped>,
}

impl Connection {
    /// Finds a server or starts one.
    pub(crate) async fn open(args: &ConnectArgs, environment: &Environment) -> Result<Connection> {
        let home = Home::find(args.home.data_dir.as_deref(), environment)?;
        let url = match &args.server {
            Some(url) => Some(url.clone()),
            None => environment.text(env::URL)?,
        };
        if let Some(url) = url {
            let key = key_for(&url, args, &home, environment)?;
            return Connection::to(&url, key, args);
        }
        let config = Config::read(args.home.config.as_deref(), &home, environment)?;
        logging::start(config.log_level.as_deref().unwrap_or(LOG_LEVEL), config.log_format)?;
        match find(args, &home).await? {
            Found::Server(server) => {
                let key = given_key(args).or(AdminKey::find(&home, environment)?.map(|found| found.key));
                let key = key.with_context(|| no_key(&server.url))?;
                Connection::to(&server.url, key, args)
            }
            Found::Store(store) => Connection::embed(config, store, args, &home, environment).await,
        }
    }

    fn to(url: &str, key: SecretString, args: &ConnectArgs) -> Result<Connection> {
        Ok(Connection { api: Api::new(url, key, args.tenant.clone())?, embedded: None })
    }

    async fn embed(
        config: Config,
        store: SqliteStore,
        args: &ConnectArgs,
        home: &Home,
        environment: &Environment,
    ) -> Result<Connection> {
        // A key that is made here lives as long as the command; the first one to keep is made by `serve`.
        let admin = AdminKey::find(home, environment)?.unwrap_or_else(AdminKey::make).key;
        let instance = Instance::bind(config, store, "127.0.0.1:0", admin.clone()).await?;
        let api = Api::new(&instance.url(), given_key(args).unwrap_or(admin), args.tenant.clone())?;
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(instance.run(shutdown.clone()));
        Ok(Connection { api, embedded: Some(Embedded { shutdown, running }) })
    }

    /// Ends the server, if it is this command's own.
    pub(crate) async fn close(self) -> Result<()> {
        // The connections must be gone first, or the server would wait for them.
        drop(self.api);
        if let Some(embedded) = self.embedded {
            embedded.shutdown.cancel();
            let stopped = embedded.running.await.context("end the embedded server")?;
            stopped.close().await?;
        }
        Ok(())
    }
}

/// What the home has to offer.
enum Found {
    Server(ServerFile),
    Store(SqliteStore),
}

/// Finds the running server by the lock that it holds on its database, or opens the database.
async fn find(args: &ConnectArgs, home: &Home) -> Result<Found> {
    home.create()?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let server = ServerFile::read(home)?;
        let path = database_path(args, home, server.as_ref())?;
        match database::open(path.clone()).await? {
            Ok(store) => {
                ServerFile::remove_stale(home, &path)?;
                return Ok(Found::Store(store));
            }
            Err(error @ petasos_store::Error::InUse { .. }) => {
                // Read again: it may be newer than what was read before the lock was tried.
                if let Some(server) = ServerFile::read(home)? {
                    return Ok(Found::Server(server));
                }
                if Instant::now() >= deadline {
                    return Err(error).context("no server tells where it is, and the database is not free");
                }
                tokio::time::sleep(POLL).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The database: the named one, else the one that the home's server uses, else the usual one.
fn database_path(args: &ConnectArgs, home: &Home, server: Option<&ServerFile>) -> Result<PathBuf> {
    match (args.home.database_url.as_deref(), server) {
        (None, Some(server)) => Ok(server.database.clone()),
        (url, _) => database::path(url, home),
    }
}

fn given_key(args: &ConnectArgs) -> Option<SecretString> {
    args.key.as_deref().map(|key| SecretString::from(key.trim()))
}

/// The key for a server that was named. The home's own key is only sent to this machine.
fn key_for(url: &str, args: &ConnectArgs, home: &Home, environment: &Environment) -> Result<SecretString> {
    if let Some(key) = given_key(args) {
        return Ok(key);
    }
    if let Some(key) = environment.secret(env::API_KEY)? {
        return Ok(key);
    }
    match AdminKey::find(home, environment)? {
        Some(found) if is_local(url) => Ok(found.key),
        _ => bail!(no_key(url)),
    }
}

fn no_key(url: &str) -> String {
    format!("there is no key for the server at {url}; give one with --key or {}", env::API_KEY)
}

/// Whether a URL leads to this machine.
fn is_local(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or_default();
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    !authority.contains('@')
        && (host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        for url in ["http://127.0.0.1:7380", "http://localhost/x", "https://[::1]:1", "http://127.3.2.1"] {
            assert!(is_local(url), "{url}");
        }
        for url in [
            "http://localhost@evil.com",
            "http://127.0.0.1:80@evil.com/",
            "http://localhost.evil.com",
            "http://0.0.0.0:1",
            "ftp://localhost",
            "localhost:1",
            "http://evil.com/localhost",
        ] {
            assert!(!is_local(url), "{url}");
        }
    }
}
