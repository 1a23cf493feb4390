//! What confines the commands of agents.

use std::path::Path;
use std::time::Duration;

use petasos_sandbox::{Backend, Command, Confine, Fallback, FileWrites, Sandbox, Streams, Supervisor};
use tokio::io::AsyncReadExt;

use super::Check;
use crate::args::DoctorArgs;
use crate::config::Config;
use crate::home::Home;
use crate::{SUPERVISOR, database, own_files};

/// How long a command that does nothing may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Says if commands could write to what is the server's own, with which it does not start.
pub(super) fn writable(args: &DoctorArgs, config: &Config, home: &Home) -> Option<Check> {
    // A database that cannot be named is told by the check of the store.
    let database = database::path(args.home.database_url.as_deref(), home).ok()?;
    let refused = own_files::refuse_writable(&config.sandbox, home, &[database]).err()?;
    Some(Check::failed("sandbox.write", &refused))
}

/// What confines the commands of agents, found out by doing it.
pub(super) async fn check(config: Config) -> Vec<Check> {
    let what = "sandbox";
    let sandbox = Sandbox::new(config.sandbox, Supervisor::this_program(&[SUPERVISOR]));
    let report = sandbox.report().clone();
    let backend = report.backend;
    if let Some(missing) = report.missing {
        let cure = "use a newer kernel, or set sandbox.backend to bubblewrap or docker";
        return vec![match report.fallback {
            Fallback::Refuse => {
                Check::warn(what, format!("{backend}: {missing}; agents cannot run commands"), cure)
            }
            Fallback::Unconfined => Check::warn(
                what,
                format!("{backend}: {missing}; agents run commands without a sandbox"),
                cure,
            ),
        }];
    }
    if sandbox.settings().backend == Backend::Bubblewrap
        && let Err(problem) = try_out(&sandbox).await
    {
        let cure = "let bwrap make namespaces (the kernel or a container may forbid it), or set another sandbox.backend";
        return vec![Check::warn(what, format!("{backend}: {problem}; agents cannot run commands"), cure)];
    }
    let cure = "use a kernel that is newer or allows user namespaces, another sandbox.backend, or stricter settings of sandbox";
    let mut checks = vec![Check::ok(what, format!("{backend}: {}", report.has.join(", ")))];
    checks.extend(report.promises.iter().map(|promise| match promise.by {
        Some(by) => Check::ok(what, format!("{} ({by})", promise.promise)),
        None => Check::warn(what, format!("not kept: {}", promise.promise), cure),
    }));
    checks
}

/// Runs a command that does nothing.
async fn try_out(sandbox: &Sandbox) -> Result<(), String> {
    let workspace = std::env::temp_dir().join(format!("petasos-doctor-{}", std::process::id()));
    std::fs::create_dir_all(&workspace).map_err(|error| error.to_string())?;
    let tried = tokio::time::timeout(PATIENCE, run(sandbox, &workspace)).await;
    drop(petasos_tools::remove_tree(&workspace, None));
    tried.unwrap_or_else(|_| Err(format!("a command that does nothing ran for {} s", PATIENCE.as_secs())))
}

async fn run(sandbox: &Sandbox, workspace: &Path) -> Result<(), String> {
    let command = Command {
        arguments: vec!["true".to_owned()],
        env: Default::default(),
        workspace: workspace.to_owned(),
        directory: workspace.to_owned(),
        streams: Streams::Merged,
        confine: Confine::AsSet,
        files: FileWrites::Limited,
    };
    let mut process = sandbox.start(command).map_err(|error| error.to_string())?;
    let mut said = String::new();
    process.stdout.read_to_string(&mut said).await.map_err(|error| error.to_string())?;
    let ended = process.wait().await;
    match (ended.code, ended.problem) {
        (Some(0), None) => Ok(()),
        (_, Some(problem)) => Err(problem),
        (_, None) => Err(said.trim().to_owned()),
    }
}
