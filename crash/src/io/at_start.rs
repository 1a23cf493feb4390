//! The disk fails when the server starts: it says so and ends, and starts when the disk works again.

use std::path::Path;

use anyhow::Result;
use petasos_testkit::ModelServer;

use super::{Fault, rules};
use crate::process::{Process, Start};
use crate::shim::Shim;
use crate::{model, recording};

pub(super) async fn run(binary: &Path) -> Result<()> {
    let (home, shim, model) = (tempfile::tempdir()?, Shim::build().await?, ModelServer::start().await);
    model.respond(model::reply);
    let mut server = Process::start_with(binary, home.path(), &model, &shim).await?;
    let sessions = recording::sessions(&server.client(), 2).await;
    let logs = recording::record(&server.client(), &sessions).await;
    server.kill().await?;
    for fault in Fault::ALL {
        shim.set(&rules(Some(fault)))?;
        match Process::launch(binary, home.path(), &model, Some(&shim)).await? {
            Start::Refused(message) => {
                let is_told = message.contains("disk") || message.contains("full");
                assert!(is_told && message.contains("petasos"), "{fault:?}: {message}");
            }
            Start::Ready(_) => panic!("{fault:?}: the server says that it is ready"),
            Start::Killed => panic!("something else killed the server"),
        }
    }
    shim.set(&[])?;
    let server = Process::start_with(binary, home.path(), &model, &shim).await?;
    for session in &sessions {
        assert_eq!(server.client().events(session).await, logs[session], "{session} is read as before");
    }
    server.stop().await?;
    println!("failing disks: a start is refused with the reason, and leaves everything as it is");
    Ok(())
}
