//! How a command reaches a server: the one it was told, the one that runs in the home, or one of its own.
//!
//! All commands speak HTTP to whichever it is, so that there is one way in which things are done.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use petasos_store::sqlite::SqliteStore;
use secrecy::SecretString;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::admin_key::{AdminKey, Source};
use crate::api::Api;
use crate::args::ConnectArgs;
use crate::config::{self, Config};
use crate::embedded::Embedded;
use crate::env::{self, Environment};
use crate::home::Home;
use crate::server_file::{Owner, ServerFile};
use crate::successor::Successor;
use crate::{database, logging, output};

const LOG_LEVEL: &str = "warn";
/// How long to wait for a server that is just starting, or for another command that is just ending.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for another command that has the database for a whole turn.
const TURN_PATIENCE: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(20);

/// What a server is needed for, which says what one of the command's own has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To look and to change. Turns that a killed server left behind stay as they are.
    Administer,
    /// To run one turn. Others wait until it is done, and turns that a killed server left behind stay as they are:
    /// a command that is about to end would only cut them again.
    Run,
    /// To talk for a while. Other commands find this server and use it.
    Chat,
}

/// A way to a server.
pub(crate) struct Connection {
    /// The server.
    pub(crate) api: Api,
    embedded: Option<Embedded>,
    /// A server that takes the place of another chat's.
    successor: Option<Arc<Successor>>,
}

impl Connection {
    /// Finds a server or starts one.
    pub(crate) async fn open(
        args: &ConnectArgs,
        environment: &Environment,
        purpose: Purpose,
    ) -> Result<Connection> {
        let home = Home::find(args.home.data_dir.as_deref(), environment)?;
        let url = match &args.server {
            Some(url) => Some(url.clone()),
            None => environment.text(env::URL)?,
        };
        if let Some(url) = url.as_deref().map(with_scheme) {
            if !is_address(&url) {
                bail!("{url} is no address of a server; write it like http://127.0.0.1:7380");
            }
            let key = key_for(&url, args, &home, environment)?;
            let net = config::net_of_environment(environment)?;
            let api = Api::new(&url, key, args.tenant.clone()).reached_by(&net);
            return Ok(Connection { api, embedded: None, successor: None });
        }
        let config = Config::read(args.home.config.as_deref(), &home, environment)?;
        let level = config.log_level.as_deref().unwrap_or(LOG_LEVEL);
        logging::start(level, config.log_format, environment.colours(), None)?;
        match find(args, &home, purpose).await? {
            Found::Server(server) => {
                let successor = successor(args, &home, environment, &server, purpose)?;
                let key = given_key(args).or(AdminKey::find(&home, environment)?.map(|found| found.key));
                let key = key.or_else(|| server.key.map(SecretString::from));
                let key = key.with_context(|| no_key(&server.url))?;
                let api = Api::new(&server.url, key, args.tenant.clone()).found_in(home, successor.clone());
                Ok(Connection { api, embedded: None, successor })
            }
            Found::Store(store, database) => {
                let admin = AdminKey::find(&home, environment)?.unwrap_or_else(AdminKey::make);
                let started = Embedded::start(store, &database, config, home, environment, &admin, purpose);
                let embedded = Box::pin(started).await?;
                let key = given_key(args).unwrap_or(admin.key);
                let api = Api::new(&embedded.url, key, args.tenant.clone());
                Ok(Connection { api, embedded: Some(embedded), successor: None })
            }
        }
    }

    /// Where the server is, unless it is this command's own and so has the environment of this command.
    pub(crate) fn running_server(&self) -> Option<String> {
        self.embedded.is_none().then(|| self.api.url())
    }

    /// Ends the server, if it is this command's own.
    pub(crate) async fn close(self) -> Result<()> {
        // The connections must be gone first, or the server would wait for them.
        drop(self.api);
        if let Some(embedded) = self.embedded {
            embedded.close().await?;
        }
        match self.successor {
            Some(successor) => successor.close().await,
            None => Ok(()),
        }
    }
}

/// What a turn needs to go on by itself when the chat whose server it uses ends.
fn successor(
    args: &ConnectArgs,
    home: &Home,
    environment: &Environment,
    server: &ServerFile,
    purpose: Purpose,
) -> Result<Option<Arc<Successor>>> {
    let kept = AdminKey::find(home, environment)?;
    let made = server.key.clone().map(|key| AdminKey { key: key.into(), source: Source::New });
    let Some(admin) = kept.or(made).filter(|_| purpose != Purpose::Administer && server.owner == Owner::Chat)
    else {
        return Ok(None);
    };
    Ok(Some(Arc::new(Successor {
        config: args.home.config.clone(),
        database: server.database.clone(),
        home: home.clone(),
        environment: environment.clone(),
        admin,
        embedded: Mutex::default(),
    })))
}

/// What the home has to offer.
enum Found {
    Server(ServerFile),
    Store(SqliteStore, PathBuf),
}

/// Finds the running server by the lock that it holds on its database, or opens the database.
async fn find(args: &ConnectArgs, home: &Home, purpose: Purpose) -> Result<Found> {
    home.create()?;
    let start = Instant::now();
    let mut told = false;
    loop {
        let server = ServerFile::read(home)?;
        let path = database_path(args, home, server.as_ref())?;
        match database::open(path.clone()).await? {
            Ok(store) => {
                ServerFile::remove_stale(home, &path)?;
                return Ok(Found::Store(store, path));
            }
            Err(error @ petasos_store::Error::InUse { .. }) => {
                // Read again: it may be newer than what was read before the lock was tried.
                if let Some(server) = ServerFile::read(home)? {
                    return Ok(Found::Server(server));
                }
                let patience = if purpose == Purpose::Administer { PATIENCE } else { TURN_PATIENCE };
                if start.elapsed() >= patience {
                    return Err(error).context("no server tells where it is, and the database is not free");
                }
                if start.elapsed() >= PATIENCE && !std::mem::replace(&mut told, true) {
                    output::note("Waiting for another petasos command that uses this home.");
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

/// A server's address as a URL: one that names no scheme is spoken to in plain HTTP.
pub(crate) fn with_scheme(address: &str) -> String {
    let address = address.trim();
    if address.contains("://") { address.to_owned() } else { format!("http://{address}") }
}

/// Whether a URL can be the address of a server.
fn is_address(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#', ':']))
}

/// Whether a URL leads to this machine.
pub(crate) fn is_local(url: &str) -> bool {
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
    fn an_address_without_a_scheme_is_http() {
        assert_eq!(with_scheme("127.0.0.1:7380"), "http://127.0.0.1:7380");
        assert_eq!(with_scheme("https://agents.example/x"), "https://agents.example/x");
    }

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
