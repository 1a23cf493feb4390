//! `petasos serve`.

use anyhow::Result;
use tokio_util::sync::CancellationToken;

use crate::admin_key::AdminKey;
use crate::args::ServeArgs;
use crate::banner::{self, Banner, Reader};
use crate::config::Config;
use crate::env::Environment;
use crate::home::Home;
use crate::instance::{Instance, SERVER_GRACE};
use crate::server_file::{Owner, ServerFile};
use crate::talk::DEFAULT_MODEL;
use crate::traces::Traces;
use crate::user_code::{Extent, UserCode};
use crate::{database, logging, output, signals};

const LOG_LEVEL: &str = "info";

/// Runs the server until a signal ends it.
pub(crate) async fn run(args: ServeArgs, environment: &Environment) -> Result<()> {
    let home = Home::find(args.home.data_dir.as_deref(), environment)?;
    let config = Config::read(args.home.config.as_deref(), &home, environment)?;
    let colours = environment.colours();
    let traces = config.traces.as_ref().map(|traces| Traces::start(traces, &config.net)).transpose()?;
    let level = config.log_level.as_deref().unwrap_or(LOG_LEVEL);
    logging::start(level, config.log_format, colours, traces.as_ref())?;
    #[cfg(unix)]
    crate::open_files::allow_as_many_as_possible();
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let user_code = UserCode::start(&config, &home, environment, Extent::All).await?;
    let database = database::path(args.home.database_url.as_deref(), &home)?;
    home.create()?;
    let store = database::open(database.clone()).await??;
    ServerFile::remove_stale(&home, &database)?;

    let admin_key = match AdminKey::find(&home, environment)? {
        Some(key) => key,
        None => AdminKey::make(),
    };
    let default_model = config.default_model.clone();
    let listen = args.listen.unwrap_or_else(|| config.listen.clone());
    let mut instance =
        Instance::bind(config, store, &home, &listen, admin_key.key.clone(), user_code).await?;
    // Only now: a start that fails must not use up the one time that a new key is shown.
    admin_key.keep(&home)?;

    let shutdown = CancellationToken::new();
    signals::watch(shutdown.clone())?;
    instance.ensure_default_agent(default_model.as_deref().unwrap_or(DEFAULT_MODEL)).await?;
    instance.read_routines().await;
    let recovered = instance.recover().await?;
    ServerFile::write(&home, instance.url(), &database, None, Owner::Serve)?;
    let (url, address) = (instance.url(), instance.address());
    tracing::info!(version = env!("CARGO_PKG_VERSION"), %address, recovered, "ready");
    let reader = Reader::of_stdout();
    output::line(&banner::text(&Banner {
        url,
        address,
        home: &home,
        admin_key: &admin_key,
        reader,
        recovered,
    }))?;

    instance.tell_startup();
    let stopped = instance.run(shutdown, SERVER_GRACE).await;
    let removed = ServerFile::remove_own(&home);
    let closed = stopped.close().await;
    if let Some(traces) = traces {
        traces.finish().await;
    }
    closed.and(removed)
}
