//! Checks of the home, the disk, the configuration, the key, the store and the agents' files.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use petasos_store::RecoveryStore;

use crate::admin_key::{AdminKey, Source};
use crate::agent_files::AgentFiles;
use crate::api::{Api, path};
use crate::args::DoctorArgs;
use crate::config::{self, Config};
use crate::connect::with_scheme;
use crate::database;
use crate::env::{self, Environment};
use crate::home::Home;
use crate::routine_files::RoutineFiles;
use crate::server_file::ServerFile;

use super::Check;

/// How long a server may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Less room than this is worth a word.
const LITTLE_ROOM: u64 = 1024 * 1024 * 1024;
/// With less room than this, writing will fail soon.
const NO_ROOM: u64 = 32 * 1024 * 1024;

/// The home and who may look into it.
pub(super) fn home(home: &Home) -> Check {
    let shown = home.path().display().to_string();
    let metadata = match std::fs::metadata(home.path()) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Check::ok("home", format!("{shown} is not there yet; the first command makes it"));
        }
        Err(error) => {
            return Check::fail(
                "home",
                format!("{shown}: {error}"),
                "let this user use it, or name another with --data-dir",
            );
        }
    };
    if !metadata.is_dir() {
        return Check::fail(
            "home",
            format!("{shown} is no directory"),
            "remove it, or name another with --data-dir",
        );
    }
    if is_open(&metadata) {
        return Check::warn(
            "home",
            format!("others can look into {shown}"),
            format!("run: chmod 700 {shown}"),
        );
    }
    Check::ok("home", shown)
}

#[cfg(unix)]
fn is_open(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open(_metadata: &std::fs::Metadata) -> bool {
    false
}

/// Whether the disk takes what is written, and has room.
pub(super) fn disk(home: &Home) -> Vec<Check> {
    if !home.path().is_dir() {
        return Vec::new();
    }
    let mut checks = vec![match write_and_sync(home.path()) {
        Ok(time) => Check::ok("disk", format!("a write reaches it in {:.1} ms (fsync)", time * 1000.0)),
        Err(error) => Check::fail(
            "disk",
            format!("{} cannot be written: {error}", home.path().display()),
            "free some room, mount it for writing, or name another home with --data-dir",
        ),
    }];
    if let Some(room) = room(home.path()) {
        let detail = format!("{} MB are free", room / (1024 * 1024));
        checks.push(match room {
            room if room < NO_ROOM => Check::fail("room", detail, "free some room: writes will fail soon"),
            room if room < LITTLE_ROOM => Check::warn("room", detail, "free some room before it runs out"),
            _ => Check::ok("room", detail),
        });
    }
    checks
}

/// Writes a small file as the store would, and returns the seconds that it took.
fn write_and_sync(directory: &Path) -> std::io::Result<f64> {
    let file = directory.join(format!(".doctor-{}", std::process::id()));
    let start = std::time::Instant::now();
    let written = File::create(&file).and_then(|mut file| {
        file.write_all(&[0; 4096])?;
        file.sync_all()
    });
    let time = start.elapsed().as_secs_f64();
    crate::private_file::remove(&file)?;
    written.map(|()| time)
}

#[cfg(unix)]
fn room(directory: &Path) -> Option<u64> {
    let disk = nix::sys::statvfs::statvfs(directory).ok()?;
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    Some(disk.blocks_available() as u64 * disk.fragment_size() as u64)
}

#[cfg(not(unix))]
fn room(_directory: &Path) -> Option<u64> {
    None
}

/// The admin key.
pub(super) fn admin_key(home: &Home, environment: &Environment) -> Vec<Check> {
    let what = "admin key";
    let file = home.admin_key().display().to_string();
    match AdminKey::find(home, environment) {
        Err(error) => vec![Check::failed(what, &error)],
        Ok(None) => vec![Check::ok(what, "none yet; the first petasos serve makes one")],
        Ok(Some(AdminKey { source: Source::Environment, .. })) => {
            vec![Check::ok(what, format!("is the one in {}", env::API_KEY))]
        }
        Ok(Some(_)) if std::fs::metadata(home.admin_key()).is_ok_and(|metadata| is_open(&metadata)) => {
            vec![Check::warn(what, format!("others can read {file}"), format!("run: chmod 600 {file}"))]
        }
        Ok(Some(_)) => vec![Check::ok(what, format!("is in {file}"))],
    }
}

/// The configuration, which the other checks need.
pub(super) fn config(
    args: &DoctorArgs,
    home: &Home,
    environment: &Environment,
    checks: &mut Vec<Check>,
) -> Option<Config> {
    match Config::read(args.home.config.as_deref(), home, environment) {
        Ok(config) => {
            let file = args.home.config.clone().unwrap_or_else(|| home.config());
            let there = if file.exists() { "is valid" } else { "is not there; the defaults hold" };
            checks.push(Check::ok("config", format!("{} {there}", file.display())));
            for warning in &config.warnings {
                checks.push(Check::warn("config", warning, "set it, or take out what needs it"));
            }
            Some(config)
        }
        Err(error) => {
            checks.push(Check::failed("config", &error));
            None
        }
    }
}

/// Which search engine agents have.
pub(super) fn web_search(config: &Config) -> Check {
    Check::ok("web_search", &config.search.reason)
}

/// Whether there is such an address as the server is to listen on.
pub(super) async fn listen(config: &Config) -> Option<Check> {
    let found = tokio::time::timeout(ANSWER_TIME, tokio::net::lookup_host(&config.listen)).await;
    let problem = match found {
        Ok(Ok(_)) => return None,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "its name is not found in 5 seconds".to_owned(),
    };
    let cure = "name an address of this machine under listen: in config.yaml, or 0.0.0.0 for all";
    Some(Check::fail("listen", format!("{} cannot be listened on: {problem}", config.listen), cure))
}

/// The store: it opens, or a server has it open and answers.
pub(super) async fn store(args: &DoctorArgs, home: &Home, environment: &Environment) -> Vec<Check> {
    let mut set_aside = Vec::new();
    let store = open_store(args, home, environment, &mut set_aside).await;
    [store].into_iter().chain(set_aside).collect()
}

async fn open_store(
    args: &DoctorArgs,
    home: &Home,
    environment: &Environment,
    set_aside: &mut Vec<Check>,
) -> Check {
    let what = "store";
    let server = ServerFile::read(home).ok().flatten();
    let path = match (&args.home.database_url, &server) {
        (None, Some(server)) => Ok(server.database.clone()),
        (url, _) => database::path(url.as_deref(), home),
    };
    let path = match path {
        Ok(path) => path,
        Err(error) => return Check::failed(what, &error),
    };
    let shown = path.display().to_string();
    if !path.exists() {
        return Check::ok(what, format!("{shown} is not there yet; the first command makes it"));
    }
    match database::open(path).await {
        Ok(Ok(store)) => {
            let work = store.last_start().await.map(|last| last.work).unwrap_or_default();
            set_aside.extend(work.iter().filter_map(super::running::recorded));
            match store.close().await {
                Ok(()) => Check::ok(what, format!("{shown} opens")),
                Err(error) => Check::failed(what, &error.into()),
            }
        }
        Ok(Err(petasos_store::Error::InUse { .. })) => match server {
            Some(server) => running(&server, home, environment).await,
            None => Check::warn(
                what,
                format!("{shown} is in use, and no server tells where it is"),
                "wait until the petasos command that has it open ends",
            ),
        },
        Ok(Err(error)) => Check::failed(what, &error.into()),
        Err(error) => Check::failed(what, &error),
    }
}

async fn running(server: &ServerFile, home: &Home, environment: &Environment) -> Check {
    let what = "server";
    let key = AdminKey::find(home, environment).ok().flatten().map(|found| found.key);
    let Some(key) = key.or_else(|| server.key.clone().map(Into::into)) else {
        return Check::fail(
            what,
            format!("{} runs, and there is no key for it", server.url),
            "set PETASOS_API_KEY",
        );
    };
    let answer = async { Api::new(&server.url, key, None).get(&path(&["agents"]), &[("limit", "1")]).await };
    match answer.await {
        Ok(_) => Check::ok(what, format!("runs at {} and has the store open", server.url)),
        Err(error) => Check::fail(
            what,
            format!(
                "process {} has the store open, but {} does not serve: {error:#}",
                server.pid, server.url
            ),
            "look at its log, or start it again",
        ),
    }
}

/// The server that commands were told to use, if there is one.
pub(super) async fn named_server(environment: &Environment) -> Option<Check> {
    let url = match environment.text(env::URL) {
        Ok(url) => url?,
        Err(error) => return Some(Check::failed(env::URL, &error)),
    };
    let url = with_scheme(&url);
    let url = url.trim_end_matches('/');
    let net = match config::net_of_environment(environment) {
        Ok(net) => net,
        Err(error) => return Some(Check::failed(env::URL, &error)),
    };
    let health = async {
        let client = petasos_net::Client::new(&net);
        client.request(petasos_net::Method::Get, &format!("{url}/health"), &[], None).await
    };
    let cure = format!("start it, or unset {}", env::URL);
    Some(match tokio::time::timeout(ANSWER_TIME, health).await {
        Ok(Ok(response)) if response.status() == 200 => Check::ok(env::URL, format!("{url} is healthy")),
        Ok(Ok(response)) => Check::fail(env::URL, format!("{url} answers {}", response.status()), cure),
        Ok(Err(error)) => Check::fail(env::URL, format!("{url} cannot be reached: {error}"), cure),
        Err(_) => Check::fail(env::URL, format!("{url} does not answer within 5 seconds"), cure),
    })
}

/// Python, which runs the scripts of agents.
pub(super) fn python() -> Check {
    match petasos_sandbox::find("python3") {
        Some(path) => Check::ok("python3", format!("{} runs scripts of execute_code", path.display())),
        None => Check::warn("python3", "is not installed; execute_code does not work", "install Python 3"),
    }
}

/// The agents' files.
pub(super) fn agent_files(home: &Home) -> Vec<Check> {
    let cure = "mend the file; until then its agent stays as it was";
    definition_files("agent files", &home.agents(), AgentFiles::check(&home.agents()), cure)
}

/// The routines' files.
pub(super) fn routine_files(home: &Home) -> Vec<Check> {
    let cure = "mend the file; until then its routine stays as it was";
    definition_files("routine files", &home.routines(), RoutineFiles::check(&home.routines()), cure)
}

fn definition_files<T>(
    what: &'static str,
    directory: &Path,
    read: Result<Vec<Result<T>>>,
    cure: &'static str,
) -> Vec<Check> {
    let read = match read {
        Ok(read) => read,
        Err(error) => return vec![Check::failed(what, &error)],
    };
    let good = read.iter().filter(|read| read.is_ok()).count();
    let mut checks = vec![Check::ok(what, format!("{good} in {}", directory.display()))];
    for error in read.into_iter().filter_map(Result::err) {
        checks.push(Check::fail(what, format!("{error:#}"), cure));
    }
    checks
}
